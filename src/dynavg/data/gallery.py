"""Pictures of whole datasets: some samples of each class, and drifts over time."""

from collections.abc import Sequence

import numpy as np
import torch
from matplotlib.figure import Figure

from dynavg.data.graphical import Segment
from dynavg.data.pictures import Pictures

__all__ = ["samples_figure", "segments_figure"]

COLUMNS = 20


def samples_figure(pictures: Pictures, title: str) -> Figure:
    """The first pictures of each class, a row for each.

    >>> pictures = Pictures(torch.zeros(5, 1, 2, 2, dtype=torch.uint8), torch.arange(5), train=3)
    >>> len(samples_figure(pictures, "five blank pictures").axes)
    1
    """
    x, y = pictures.tensors
    classes = y.unique()
    height, width = x.shape[-2:]
    board = torch.zeros(len(classes) * height, COLUMNS * width, dtype=torch.uint8)
    for row, label in enumerate(classes):
        for column, picture in enumerate(x[y == label][:COLUMNS, 0]):
            board[row * height : (row + 1) * height, column * width : (column + 1) * width] = (
                picture
            )
    figure = Figure(figsize=(8, 0.4 * len(classes) + 0.6), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    axes.imshow(board.numpy(), cmap="gray_r", aspect="equal")
    axes.set_yticks(np.arange(len(classes)) * height + height / 2, [str(int(c)) for c in classes])
    axes.set_xticks([])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title(title, fontsize=10)
    return figure


def segments_figure(segments: Sequence[Segment], rounds: int, title: str) -> Figure:
    """The best classifier's error over time: it jumps at each drift.

    >>> figure = segments_figure([Segment(0, 1, 1, 0.1), Segment(1, 4, 31, 0.2)], 10, "one drift")
    >>> figure.axes[0].get_xlabel()
    'round'
    """
    figure = Figure(figsize=(8, 3), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    axes.stairs(
        [segment.bayes_error for segment in segments],
        [*(segment.round for segment in segments), rounds + 1],
        baseline=0,
        fill=True,
        color="#4c72b0",
        alpha=0.5,
    )
    for segment in segments[1:]:
        axes.axvline(segment.round, color="#555555", linewidth=0.8, linestyle=":")
    axes.set_xlabel("round")
    axes.set_ylabel("error of the best classifier")
    axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(title, fontsize=10)
    return figure
