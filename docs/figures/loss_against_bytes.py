"""The README's picture: what each operator pays in bytes for how little loss.

Twenty learners classify points of thirty clusters into ten classes; in round 501 the classes change
places. From the project's root: `.venv/bin/python docs/figures/loss_against_bytes.py`, about four
minutes of processor time. It prints the numbers and writes the picture beside itself. With another
seed than 0 as its argument it only prints.
"""

import sys
from pathlib import Path

import matplotlib as mpl
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import nn

import dynavg

LEARNERS, ROUNDS, DRIFT = 20, 1000, 501
COLOURS = {
    "dynamic": "#c1272d",
    "periodic": "#2b6ca3",
    "FedAvg": "#7a7a7a",
    "nosync": "#222222",
}
PERIODIC = [dynavg.Periodic(every=b) for b in (1, 2, 5, 10, 25, 50)]
FEDAVG = [dynavg.FedAvg(every=5, fraction=fraction) for fraction in (0.3, 0.5, 0.7)]
DYNAMIC = [dynavg.Dynamic(delta=delta) for delta in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)]


def streams(seed: int) -> dynavg.data.Permuted:
    """Points around thirty centres, three to a class, dealt out anew in every epoch."""
    generator = torch.Generator().manual_seed(seed)
    centres = torch.randn(30, 20, generator=generator)
    cluster = torch.randint(30, (40_000,), generator=generator)
    x = centres[cluster] + 0.5 * torch.randn(40_000, 20, generator=generator)
    dealt = dynavg.data.split((x, cluster % 10), learners=LEARNERS, batch_size=10, seed=seed)
    return dynavg.data.Permuted(dealt, classes=10, drifts=(DRIFT,), drift_seed=seed)


def network() -> nn.Module:
    """1,994 weights."""
    return nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 10))


def run(operator: object, seed: int) -> dynavg.Result:
    """One run; only the operator differs."""
    result = dynavg.simulate(
        model=network,
        loss=nn.functional.cross_entropy,
        optimizer=lambda parameters: torch.optim.SGD(parameters, lr=0.1),
        streams=streams(seed),
        operator=operator,
        rounds=ROUNDS,
        seed=seed,
        progress=False,
    )
    print(f"{result.cumulative_loss:10,.0f} {result.bytes() / 1e6:8.2f} MB  {operator}", flush=True)
    return result


def front(
    axes: Axes, name: str, runs: list[dynavg.Result], labels: list[str], below: list[str]
) -> None:
    """The runs of one operator under several settings."""
    x = [result.bytes() / 1e6 for result in runs]
    y = [result.cumulative_loss / 1e3 for result in runs]
    axes.plot(x, y, "o-", color=COLOURS[name], markersize=5, linewidth=1.6, label=name)
    for label, *place in zip(labels, x, y, strict=True):
        above = label not in below
        axes.annotate(
            label, place, xytext=(5, 4) if above else (-5, -4), textcoords="offset points",
            ha="left" if above else "right", va="bottom" if above else "top",
            fontsize=7.5, color=COLOURS[name],
        )  # fmt: skip


def main(seed: int) -> None:
    """Run all, draw two panels."""
    alone = run(dynavg.NoSync(), seed)
    periodic, fedavg, dynamic = (
        [run(operator, seed) for operator in operators] for operators in (PERIODIC, FEDAVG, DYNAMIC)
    )
    if seed == 0:
        draw(alone, periodic, fedavg, dynamic).savefig(Path(__file__).with_suffix(".png"))


def draw(
    alone: dynavg.Result,
    periodic: list[dynavg.Result],
    fedavg: list[dynavg.Result],
    dynamic: list[dynavg.Result],
) -> Figure:
    """Left: loss against bytes. Right: bytes over rounds, of two runs with about the same loss."""

    mpl.rcParams.update({"font.size": 9, "font.family": "DejaVu Sans"})
    figure = Figure(figsize=(9, 3.9), dpi=120, layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))

    left.axhline(alone.cumulative_loss / 1e3, color=COLOURS["nosync"], linestyle=":", linewidth=1.2)
    left.annotate(
        "nosync: 0 bytes", (0.98, alone.cumulative_loss / 1e3), fontsize=8, va="bottom", ha="right",
        xycoords=("axes fraction", "data"), color=COLOURS["nosync"],
        xytext=(0, 2), textcoords="offset points",
    )  # fmt: skip
    front(left, "periodic", periodic, [f"b = {op.every}" for op in PERIODIC], ["b = 10"])
    front(left, "FedAvg", fedavg, [f"C = {op.fraction}" for op in FEDAVG], [])
    deltas = [f"Δ = {op.delta:g}" for op in DYNAMIC]
    front(left, "dynamic", dynamic, deltas, deltas)
    left.set_xscale("log")
    left.margins(y=0.09)
    left.set_xlim(min(r.bytes() for r in dynamic) / 2.3e6, 700)
    left.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    left.set_xlabel("bytes sent, MB (logarithmic)")
    left.set_ylabel("cumulative loss, thousands")
    left.set_title("Loss against bytes: lower left is better", fontsize=9.5, loc="left")
    left.legend(frameon=False, loc="lower left", fontsize=8)

    pairs = (
        ("periodic", periodic[1], "periodic, b = 2", (838, 159)),
        ("dynamic", dynamic[1], "dynamic, Δ = 0.02", (ROUNDS, 62)),
    )
    for name, result, label, place in pairs:
        checks = result.history.checks
        right.step(
            checks["round"], checks["bytes"].cum_sum() / 1e6, where="post",
            color=COLOURS[name], linewidth=1.6,
        )  # fmt: skip
        right.annotate(
            f"{label}\n{result.bytes() / 1e6:.0f} MB, loss {result.cumulative_loss / 1e3:.1f} k",
            place, ha="right", va="top", fontsize=8, color=COLOURS[name],
        )  # fmt: skip
    right.axvline(DRIFT, color="#999999", linewidth=1, linestyle="--")
    right.annotate(
        "classes change places", (DRIFT, 6), fontsize=8, color="#666666", xytext=(5, 0),
        textcoords="offset points", va="center",
    )  # fmt: skip
    right.set_xlabel("round")
    right.set_ylabel("bytes sent so far, MB")
    right.set_title("When it is sent", fontsize=9.5, loc="left")
    right.set_xlim(0, ROUNDS * 1.01)
    right.set_ylim(0)

    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color="#e6e6e6", linewidth=0.6)
        axes.set_axisbelow(True)
    return figure


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
