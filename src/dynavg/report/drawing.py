"""Charts for print: matplotlib, without pyplot, whose state belongs to the user."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from dynavg.protocol.ledger import readable_bytes
from dynavg.report.charts import Bars, Chart, Drawing, Grid, Series

__all__ = ["COLOURS", "draw", "draw_all"]

COLOURS = (
    "#4e79a7", "#e15759", "#59a14f", "#f28e2b", "#b07aa1", "#76b7b2", "#9c755f", "#edc948",
    "#ff9da7", "#499894", "#d37295", "#8cd17d", "#79706e", "#a0cbe8", "#b6992d",
)  # fmt: skip
"""Colours of a report, in order; readable on white and on black."""

ENDINGS = (".png", ".svg")


def draw_all(drawings: Iterable[Drawing], folder: Path) -> list[Path]:
    """Each drawing as PNG and SVG in the folder; the PNGs' paths."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for drawing in drawings:
        figure = draw(drawing)
        for ending in ENDINGS:
            figure.savefig(folder / f"{drawing.name}{ending}", dpi=150)
        made.append(folder / f"{drawing.name}.png")
    return made


def draw(drawing: Drawing) -> Figure:
    """A drawing as a figure.

    >>> figure = draw(Bars("a", "A title", "how many", ("x", "y"), {"part": [1.0, 2.0]}))
    >>> figure.axes[0].get_ylabel()
    'how many'
    """
    figure = Figure(figsize=(8.5, 4.8), layout="constrained")
    axes = figure.add_subplot()
    match drawing:
        case Chart():
            _chart(axes, drawing)
        case Bars():
            _bars(axes, drawing)
        case Grid():
            _grid(figure, axes, drawing)
    axes.set_title(drawing.title, fontsize=10, loc="left")
    axes.set_ylabel(drawing.y)
    return figure


def _chart(axes: Axes, chart: Chart) -> None:
    for number, mark in enumerate(chart.marks):
        label = chart.marks_mean if number == 0 else None
        axes.axvline(mark, color="#888888", linewidth=0.8, linestyle=":", label=label)
    for series in chart.series:
        _series(axes, series)
    axes.set_xlabel(chart.x)
    for axis, unit, scale in (
        (axes.xaxis, chart.x_unit, axes.set_xscale),
        (axes.yaxis, chart.y_unit, axes.set_yscale),
    ):
        if unit == "log":
            scale("log")
        elif unit:
            axis.set_major_formatter(FuncFormatter(lambda number, _: readable_bytes(number)))
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    _legend(axes)


def _series(axes: Axes, series: Series) -> None:
    colour = COLOURS[series.colour % len(COLOURS)]
    if series.kind == "steps":
        axes.step(series.x, series.y, where="post", color=colour, label=series.name)
    elif series.kind in ("line", "dashed"):
        style = "--" if series.kind == "dashed" else "-"
        axes.plot(series.x, series.y, style, color=colour, label=series.name)
    else:
        axes.errorbar(
            series.x,
            series.y,
            yerr=series.spread if series.spread is not None and series.spread.any() else None,
            fmt="o-" if series.joined else "o",
            linewidth=1,
            capsize=2,
            markersize=10 if series.hollow else 5,
            markerfacecolor="none" if series.hollow else colour,
            color=colour,
            label=series.name,
        )
        for n, (x, y, text) in enumerate(zip(series.x, series.y, series.texts, strict=False)):
            place = (4, -10 if n % 2 else 5)  # by turns below and above: neighbours are close
            axes.annotate(
                text, (x, y), textcoords="offset points", xytext=place, fontsize=6.5, color=colour
            )


def _bars(axes: Axes, bars: Bars) -> None:
    floor = np.zeros(len(bars.labels))
    for colour, (name, heights) in zip(COLOURS, bars.parts.items(), strict=False):
        axes.bar(bars.labels, heights, bottom=floor, label=name, color=colour, width=0.7)
        floor += np.array(heights)
    axes.tick_params(axis="x", labelrotation=30 if len(bars.labels) > 3 else 0, labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    _legend(axes)


def _grid(figure: Figure, axes: Axes, grid: Grid) -> None:
    image = axes.imshow(grid.values, aspect="auto", cmap="viridis", origin="lower")
    axes.set_xticks(range(len(grid.columns)), grid.columns)
    axes.set_yticks(range(len(grid.rows)), grid.rows)
    axes.set_xlabel(grid.x)
    middle = (np.nanmax(grid.values) + np.nanmin(grid.values)) / 2
    for (row, column), value in np.ndenumerate(grid.values):
        colour = "black" if value > middle else "white"
        axes.text(column, row, f"{value:.2f}", ha="center", va="center", color=colour, fontsize=8)
    figure.colorbar(image, ax=axes)


def _legend(axes: Axes) -> None:
    handles, names = axes.get_legend_handles_labels()
    if len(names) > 6:
        axes.legend(handles, names, fontsize=7, frameon=False, loc="center left",
                    bbox_to_anchor=(1, 0.5))  # fmt: skip
    elif names:
        axes.legend(handles, names, fontsize=8, frameon=False)
