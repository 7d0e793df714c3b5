"""Figures of finished runs, with matplotlib; nothing global is touched."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from dynavg.protocol.ledger import readable_bytes
from dynavg.records import Record

__all__ = ["comparison"]

COLOURS = ("#4e79a7", "#e15759", "#59a14f", "#f28e2b", "#76b7b2", "#b07aa1", "#9c755f", "#edc948")


def comparison(runs: Mapping[str, Record], path: Path) -> Figure:
    """Loss against bytes, and both over time, for runs on the same data; written to `path`."""
    figure = Figure(figsize=(12, 4), layout="constrained")
    front, loss, sent = figure.subplots(1, 3)
    for colour, (name, run) in zip(COLOURS, runs.items(), strict=False):
        summary = run.summary
        per_round = (
            run.rounds.group_by("round", maintain_order=True)
            .agg(pl.col("loss").sum(), pl.col("samples").sum())
            .sort("round")
        )
        samples = per_round["samples"].cum_sum().to_numpy() / summary["learners"]
        lost = per_round["loss"].cum_sum().to_numpy() / summary["learners"]
        front.plot(
            summary["bytes"]["total"],
            summary["loss_per_learner"],
            "o",
            color=colour,
            markersize=9,
            label=name,
        )
        loss.plot(samples, lost, color=colour, label=name)
        _steps(sent, run, samples, colour)
    _label(front, "bytes sent", "cumulative loss per learner", "Less is better on both axes")
    _label(loss, "samples per learner", "cumulative loss per learner", "Loss over time")
    _label(sent, "samples per learner", "bytes sent", "Communication over time")
    in_bytes = FuncFormatter(lambda number, _: readable_bytes(number))
    front.xaxis.set_major_formatter(in_bytes)
    sent.yaxis.set_major_formatter(in_bytes)
    front.margins(0.12)
    front.legend(fontsize=8, frameon=False)
    figure.savefig(path, dpi=150)
    return figure


def _steps(
    axes: Axes, run: Record, samples: "np.ndarray[tuple[int], np.dtype[np.float64]]", colour: str
) -> None:
    """Bytes so far: flat while nobody speaks."""
    per_round = np.zeros(len(samples))
    if len(run.checks):
        per_round[run.checks["round"].to_numpy() - 1] = run.checks["bytes"].to_numpy()
    axes.step(samples, per_round.cumsum(), where="post", color=colour)


def _label(axes: Axes, x: str, y: str, title: str) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title, fontsize=10, loc="left")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
