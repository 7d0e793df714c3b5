"""The coordinator's average, over all worker threads: a running sum that a balancing set extends.

Each worker adds up its own part of the vectors, so the order of the sum is the learners' joining
order whatever the number of workers is.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from dynavg.engines.workers import Workers
from dynavg.learning import vectors

__all__ = ["Averaging"]


class Averaging:
    """Weighted means of models; `extend` remembers the sum of the resolution that it is in."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._resolution = 0
        self._ids: tuple[int, ...] = ()
        self._total: Tensor | None = None

    def extend(
        self,
        resolution: int,
        ids: tuple[int, ...],
        models: Sequence[Tensor],
        weights: Sequence[float],
    ) -> Tensor:
        """The mean of these learners' models; those that the last call summed are not read again.

        Within a resolution a learner's model and weight stay as they were sent.
        """
        known = len(self._ids)
        if self._total is None or self._resolution != resolution or ids[:known] != self._ids:
            self._total, known = _zeros(models), 0
        self._resolution, self._ids = resolution, ids
        self._add(self._total, models[known:], weights[known:])
        return vectors.mean(self._total, sum(weights), models[0].dtype)

    def mean(self, models: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
        """The mean of these models with these weights."""
        total = _zeros(models)
        self._add(total, models, weights)
        return vectors.mean(total, sum(weights), models[0].dtype)

    def _add(self, total: Tensor, models: Sequence[Tensor], weights: Sequence[float]) -> None:
        def add(part: slice) -> None:
            vectors.accumulate(total[part], [model[part] for model in models], weights)

        self._workers.map(add, self._workers.parts(len(total), vectors.SUMMED))


def _zeros(models: Sequence[Tensor]) -> Tensor:
    return torch.zeros_like(models[0], dtype=torch.float64)
