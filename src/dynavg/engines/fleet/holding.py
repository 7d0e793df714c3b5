"""The models that the coordinator has in hand, and their average.

It holds the models of the balancing set, those that wait for the next one, the average, and the
reference: no running sum, because a sum in blocks that stay in the cache is as fast and takes no
memory. The arithmetic and its order are the simulation's, so are the bits.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

from dynavg.engines.workers import Workers, available_workers
from dynavg.learning import vectors

__all__ = ["Holding"]


class Holding:
    """Vectors by learner."""

    def __init__(self, reference: Tensor) -> None:
        self.reference = reference
        self.average: Tensor | None = None
        self.models: dict[int, Tensor] = {}
        cores = available_workers()
        pool = ThreadPoolExecutor(cores, "dynavg-mean", torch.set_num_threads, (1,))
        self._workers = Workers(pool, cores)

    def mean(self, ids: Sequence[int], weights: Sequence[float]) -> Tensor:
        """The weighted mean of these learners' models, in this order; each core does a part."""
        models = [self.models[id] for id in ids]
        self.average = mean = torch.empty_like(models[0])

        def fill(part: slice) -> None:
            for start in range(part.start, part.stop, vectors.BLOCK):
                block = slice(start, min(start + vectors.BLOCK, part.stop))
                total = torch.zeros(block.stop - start, dtype=torch.float64)
                vectors.accumulate(total, [model[block] for model in models], weights)
                mean[block] = vectors.mean(total, sum(weights), mean.dtype)

        self._workers.map(fill, self._workers.parts(len(mean), vectors.SUMMED))
        return mean

    def distance(self, parameters: int) -> float:
        """‖average − reference‖²."""
        assert self.average is not None, "the coordinator averages before it measures"
        return vectors.squared_distance(self.average[:parameters], self.reference[:parameters])

    def drop(self, ids: Iterable[int]) -> None:
        """These models have been used, or never will be."""
        for id in ids:
            self.models.pop(id, None)
