"""Which samples a learner sees in which round, as positions in a dataset.

Both orders read from an endless sequence of permutations, one per epoch, of which any stretch can
be computed from the seed alone. Nothing here touches samples.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from dynavg import seeds

__all__ = ["Dealt", "Fixed", "Order"]

CACHE_BYTES = 64 * 2**20
"""Permutations kept at a time; those of one epoch are kept in any case."""


class Order(Protocol):
    """Positions of samples: a function of learner and round."""

    batch_sizes: tuple[int, ...]
    """Each learner's."""

    def positions(self, learner: int, round: int) -> Tensor:
        """Positions (int64) of the samples in the learner's batch of that round."""
        ...

    def share(self, learner: int) -> Tensor:
        """Positions of the samples that are the learner's in one epoch."""
        ...


def _stretch(start: int, size: int, count: int, epoch: Callable[[int], Tensor]) -> Tensor:
    """Entries `start` … `start + size − 1` of epoch(0), epoch(1), … written one after the other."""
    parts = []
    while size > 0:
        number, offset = divmod(start, count)
        part = epoch(number)[offset : offset + size]
        parts.append(part)
        start += len(part)
        size -= len(part)
    return parts[0] if len(parts) == 1 else torch.cat(parts)


class Dealt:
    """Every epoch's permutation of all samples is dealt out over all learners, round by round.

    With equal batch sizes B, learner i's batch of round t starts at ((t − 1)·m + i)·B.
    """

    def __init__(self, count: int, batch_sizes: Sequence[int], seed: int) -> None:
        self._count = count
        self._seed = seed
        self.batch_sizes = tuple(batch_sizes)
        *offsets, self._round_size = accumulate(self.batch_sizes, initial=0)
        self._offsets = tuple(offsets)
        kept = max(2, CACHE_BYTES // (8 * count))
        self._epoch = lru_cache(maxsize=kept)(self._permutation)

    def _permutation(self, epoch: int) -> Tensor:
        rng = seeds.generator(self._seed, "data.epoch", round=epoch)
        return torch.from_numpy(rng.permutation(self._count))

    def positions(self, learner: int, round: int) -> Tensor:
        """A stretch of the permutations, past all rounds before and all learners before."""
        start = (round - 1) * self._round_size + self._offsets[learner]
        return _stretch(start, self.batch_sizes[learner], self._count, self._epoch)

    def share(self, learner: int) -> Tensor:
        """What the learner gets of the first epoch."""
        place = np.arange(self._count) % self._round_size
        owner = np.searchsorted(self._offsets, place, side="right") - 1
        return self._epoch(0)[torch.from_numpy(owner == learner)]


class Fixed:
    """Each learner has a share of its own, and shuffles it anew in every epoch of its own."""

    def __init__(self, shares: Sequence[Tensor], batch_sizes: Sequence[int], seed: int) -> None:
        self._shares = tuple(shares)
        self.batch_sizes = tuple(batch_sizes)
        self._seed = seed
        longest = max(len(share) for share in self._shares)
        kept = max(2 * len(self._shares), CACHE_BYTES // (8 * longest))
        self._epoch = lru_cache(maxsize=kept)(self._shuffled)

    def _shuffled(self, learner: int, epoch: int) -> Tensor:
        share = self._shares[learner]
        rng = seeds.generator(self._seed, "data.share", learner=learner, round=epoch)
        return share[torch.from_numpy(rng.permutation(len(share)))]

    def positions(self, learner: int, round: int) -> Tensor:
        """A stretch of the learner's own permutations, past its rounds before."""
        size = self.batch_sizes[learner]
        count = len(self._shares[learner])
        return _stretch((round - 1) * size, size, count, lambda k: self._epoch(learner, k))

    def share(self, learner: int) -> Tensor:
        """All that the learner ever sees."""
        return self._shares[learner]
