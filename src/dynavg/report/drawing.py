"""Charts for print: matplotlib, without pyplot, whose state belongs to the user."""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from matplotlib.transforms import Bbox

from dynavg.protocol.ledger import readable_bytes
from dynavg.report.charts import Bars, Chart, Drawing, Grid, Series

__all__ = ["COLOURS", "draw", "draw_all"]

COLOURS = (
    "#4e79a7", "#e15759", "#59a14f", "#f28e2b", "#b07aa1", "#76b7b2", "#9c755f", "#edc948",
    "#ff9da7", "#499894", "#d37295", "#8cd17d", "#79706e", "#a0cbe8", "#b6992d",
)  # fmt: skip
"""Colours of a report, in order; readable on white and on black."""

ENDINGS = (".png", ".svg")
DOT = 3.5
PLACES: tuple[tuple[int, int, Literal["left", "right", "center"]], ...] = (
    (5, 4, "left"), (5, -9, "left"), (-5, 4, "right"), (-5, -9, "right"), (0, 8, "center"),
    (0, -14, "center"), (12, 12, "left"), (12, -17, "left"),
)  # fmt: skip
"""Where a point's text may be: points to the right, points up, and its side that is there."""


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
    if isinstance(drawing, Chart):
        _label(figure, axes, drawing)
    return figure


def _chart(axes: Axes, chart: Chart) -> None:
    for number, mark in enumerate(chart.marks):
        label = chart.marks_mean if number == 0 else None
        axes.axvline(mark, color="#888888", linewidth=0.8, linestyle=":", label=label)
    for series in chart.series:
        _series(axes, series)
    if chart.dots_mean:
        axes.plot([], [], "o", color="#888888", markersize=DOT, label=chart.dots_mean)
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
    again = series.colour >= len(COLOURS)
    style = "--" if series.kind == "dashed" or again else "-"
    if series.kind == "steps":
        axes.step(series.x, series.y, style, where="post", color=colour, label=series.name)
    elif series.kind in ("line", "dashed"):
        axes.plot(series.x, series.y, style, color=colour, label=series.name)
    elif series.kind == "dots":
        axes.plot(series.x, series.y, "o", color=colour, markersize=DOT)
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


def _label(figure: Figure, axes: Axes, chart: Chart) -> None:
    """Texts beside their points, each at the first place where it covers no other text and no
    point; one without such a place is left to the page, which shows it when pointed at.
    """
    labels = [
        (x, y, text, COLOURS[series.colour % len(COLOURS)])
        for series in chart.series
        for x, y, text in zip(series.x, series.y, series.texts, strict=False)
    ]
    if not labels:
        return
    FigureCanvasAgg(figure)  # measures texts
    figure.draw_without_rendering()
    frame = axes.get_window_extent()
    middles = axes.transData.transform([(x, y) for x, y, *_ in labels])
    taken = [Bbox.from_bounds(x - 3, y - 3, 6, 6) for x, y in middles]
    if (legend := axes.get_legend()) is not None:
        taken.append(legend.get_window_extent())
    for x, y, text, colour in labels:
        for across, up, side in PLACES:
            label = axes.annotate(
                text, (x, y), textcoords="offset points", xytext=(across, up), fontsize=6.5,
                color=colour, ha=side,
            )  # fmt: skip
            box = label.get_window_extent()
            if box.count_overlaps(taken) or not (frame.x0 <= box.x0 and box.x1 <= frame.x1):
                label.remove()
                continue
            taken.append(box)
            break


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
    if len(names) > 2:  # beside the axes it covers nothing
        axes.legend(handles, names, fontsize=7, frameon=False, loc="center left",
                    bbox_to_anchor=(1, 0.5))  # fmt: skip
    elif names:
        axes.legend(handles, names, fontsize=8, frameon=False)
