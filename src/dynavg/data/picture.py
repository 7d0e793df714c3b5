"""The picture of a partition: which learner has how many samples of which label.

Up to 30 learners are shown as stacked bars, in which both sizes and labels can be read; more as a
map of labels × learners under a strip of sizes. Figures are made without pyplot, whose state
belongs to the user.
"""

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

__all__ = ["partition_picture"]

MOST_BARS = 30
MOST_COLOURS = 20


def partition_picture(labels: NDArray[np.generic], counts: NDArray[np.int64], title: str) -> Figure:
    """A figure of `counts` (labels × learners).

    >>> figure = partition_picture(np.array([0, 1]), np.array([[3, 1], [0, 2]]), "two learners")
    >>> figure.axes[0].get_ylabel()
    'samples'
    """
    kinds, learners = counts.shape
    figure = Figure(figsize=(9, 4.5), dpi=150, layout="constrained")
    figure.suptitle(title, fontsize=10)
    if learners <= MOST_BARS and kinds <= MOST_COLOURS:
        _bars(figure.add_subplot(), labels, counts)
        return figure
    grid = figure.add_gridspec(2, 2, height_ratios=(1, 3), width_ratios=(60, 1))
    sizes, table = figure.add_subplot(grid[0, 0]), figure.add_subplot(grid[1, 0])
    sizes.sharex(table)
    sizes.bar(np.arange(learners), counts.sum(axis=0), width=1.0, color="#4c72b0")
    sizes.set_ylabel("samples")
    sizes.tick_params(labelbottom=False)
    sizes.yaxis.set_major_locator(MaxNLocator(3, integer=True))
    _plain(sizes)
    image = table.imshow(
        np.where(counts > 0, counts, np.nan),
        aspect="auto",
        interpolation="nearest",
        cmap="viridis_r",
        vmin=0,
    )
    table.set_xlabel("learner")
    table.set_ylabel("label")
    if kinds <= MOST_COLOURS:
        table.set_yticks(range(kinds), [str(label) for label in labels])
    table.xaxis.set_major_locator(MaxNLocator(11, integer=True))
    figure.colorbar(image, cax=figure.add_subplot(grid[1, 1]), label="samples (white: none)")
    return figure


def _bars(axes: Axes, labels: NDArray[np.generic], counts: NDArray[np.int64]) -> None:
    kinds, learners = counts.shape
    colours = colormaps["tab10" if kinds <= 10 else "tab20"]
    floor = np.zeros(learners, dtype=np.int64)
    for kind in range(kinds):
        axes.bar(
            np.arange(learners),
            counts[kind],
            bottom=floor,
            width=0.8,
            color=colours(kind),
            edgecolor="white",
            linewidth=0.4,
            label=str(labels[kind]),
        )
        floor += counts[kind]
    axes.set_xticks(range(learners))
    axes.set_xlabel("learner")
    axes.set_ylabel("samples")
    handles, names = axes.get_legend_handles_labels()
    axes.legend(
        handles[::-1], names[::-1], title="label", loc="center left", bbox_to_anchor=(1, 0.5),
        frameon=False, fontsize=8, title_fontsize=8,
    )  # fmt: skip
    _plain(axes)


def _plain(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
