"""The only arithmetic on whole models: squared distance, weighted mean.

Both go block by block through vectors too large for the cache, so that a block is read once. A
result has the same bits for a vector alone, as a row of a matrix, and on any thread: blocks have
one fixed size, no single sum is long enough for torch to split it over threads, and what is added
up beyond that is added up in float64.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

__all__ = [
    "BLOCK",
    "SUMMED",
    "accumulate",
    "first_unsound",
    "is_finite",
    "mean",
    "squared_distance",
    "squared_distances",
]

SUMMED = 4_096
"""Squares summed in the models' own dtype; torch splits longer sums over threads."""

BLOCK = 64 * SUMMED
"""Numbers per torch call: fewer cost too many calls, more leave the cache (measured)."""

_NOT_REDUCED = 0
# (a − b)² in one pass into memory that is given; there is no public function that does so.
_squared_difference = torch.ops.aten.mse_loss.out


def squared_distances(rows: Sequence[Tensor], reference: Tensor) -> list[float]:
    """‖row − reference‖² of each row, by direct differences: the expanded square cancels.

    >>> squared_distances([torch.tensor([1.0, 2.0]), torch.tensor([0.0, 0.0])], torch.ones(2))
    [1.0, 2.0]
    """
    size = len(reference)
    sums = reference.new_empty(len(rows), -(-size // SUMMED))
    scratch = reference.new_empty(min(BLOCK, size))
    for start in range(0, size, BLOCK):
        block = reference[start : start + BLOCK]
        squares = scratch[: len(block)]
        whole = len(block) // SUMMED * SUMMED
        # Rows inside blocks: the reference's block stays in the cache for all of them.
        for row, row_sums in zip(rows, sums[:, start // SUMMED :], strict=True):
            _squared_difference(row[start : start + BLOCK], block, _NOT_REDUCED, out=squares)
            torch.sum(squares[:whole].view(-1, SUMMED), 1, out=row_sums[: whole // SUMMED])
            if whole < len(block):
                torch.sum(squares[whole:], 0, out=row_sums[whole // SUMMED])
    return [float(total) for total in sums.double().sum(1)]


def squared_distance(vector: Tensor, reference: Tensor) -> float:
    """‖vector − reference‖².

    >>> squared_distance(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([1.0, 0.0, 1.0]))
    13.0
    """
    return squared_distances([vector], reference)[0]


def accumulate(total: Tensor, vectors: Sequence[Tensor], weights: Sequence[float]) -> None:
    """Add Σ weight · vector to a float64 total, in this order."""
    scratch = torch.empty_like(total[:BLOCK])
    for start in range(0, len(total), BLOCK):
        block = total[start : start + BLOCK]
        wide = scratch[: len(block)]
        for vector, weight in zip(vectors, weights, strict=True):
            wide.copy_(vector[start : start + BLOCK])  # faster than adding across dtypes
            block.add_(wide, alpha=weight)


def mean(total: Tensor, weight: float, dtype: torch.dtype) -> Tensor:
    """An accumulated total as a model: one division, one cast.

    >>> total = torch.zeros(2, dtype=torch.float64)
    >>> accumulate(total, [torch.tensor([1.0, 2.0]), torch.tensor([3.0, 6.0])], [1.0, 3.0])
    >>> mean(total, 4.0, torch.float32)
    tensor([2.5000, 5.0000])
    """
    return (total / weight).to(dtype)


def is_finite(vector: Tensor) -> bool:
    """Whether every entry is finite: one that is not makes the sum NaN or infinite.

    A sum of finite entries can overflow too; only then each entry is looked at.
    """
    return math.isfinite(float(vector.sum())) or bool(vector.isfinite().all())


def first_unsound(vectors: Sequence[Tensor]) -> int | None:
    """The place of the first vector with a non-finite entry."""
    return next((place for place, vector in enumerate(vectors) if not is_finite(vector)), None)
