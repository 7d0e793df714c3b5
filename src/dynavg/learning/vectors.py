"""The only arithmetic on whole models: squared distance, weighted mean.

Both go block by block through vectors too large for the cache, so that a block is read once, and so
that a result has the same bits for a vector alone, as a row of a matrix, and on any thread: blocks
have one fixed size, and what is added up over blocks is added up in float64.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

__all__ = ["BLOCK", "accumulate", "first_unsound", "is_finite", "mean", "squared_distance"]

BLOCK = 16_384
"""Numbers per block: two float32 blocks and one of float64 fit into a core's own cache."""


def squared_distance(vector: Tensor, reference: Tensor) -> float:
    """‖vector − reference‖², by direct differences: the expanded square cancels.

    >>> squared_distance(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([1.0, 0.0, 1.0]))
    13.0
    """
    total = 0.0
    scratch = torch.empty(min(BLOCK, len(vector)), dtype=vector.dtype, device=vector.device)
    for block, other in zip(vector.split(BLOCK), reference.split(BLOCK), strict=True):
        # The scratch block is aligned whatever the row is, so `dot` sums in one order.
        difference = scratch[: len(block)]
        torch.sub(block, other, out=difference)
        total += float(torch.dot(difference, difference))
    return total


def accumulate(total: Tensor, vectors: Sequence[Tensor], weights: Sequence[float]) -> None:
    """Add Σ weight · vector to a float64 total, in this order."""
    for start in range(0, len(total), BLOCK):
        block = total[start : start + BLOCK]
        for vector, weight in zip(vectors, weights, strict=True):
            block.add_(vector[start : start + BLOCK], alpha=weight)


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
