"""The random graphical model: an endless binary problem whose concept drifts, for all learners.

As in the code of the paper's authors' predecessors: the class y is uniform on {0, 1}. There are
h = ⌊log2 d⌋ hidden bits, each 1 with probability p_y, where ρ ~ U(0, 1), p_0 ~ U(0, 1 − ρ),
p_1 = p_0 + ρ, and the two are swapped with probability ½. Observable x_i in {−1, +1} hangs on
hidden bit i mod h in the same way, with ρ ~ U(0.9, 1). A drift draws all of these parameters anew.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dynavg import seeds
from dynavg.arguments import described, whole
from dynavg.data.drift_times import DriftTimes, drift_times

__all__ = ["Concept", "GraphicalModel", "Segment", "drift"]

BLOCK = 160
"""Samples of a learner that are drawn at once: a draw costs as much as 50 samples do."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of rounds under one concept."""

    index: int
    round: int
    """The first round with a sample of this concept."""
    sample: int
    """The first sample of this concept, counted 1, 2, … within each learner."""
    bayes_error: float
    """The error of the best classifier given the hidden bits."""


@dataclass(frozen=True, slots=True, eq=False)
class Concept:
    """The model's parameters between two drifts."""

    hidden: NDArray[np.float64]
    """P(hidden bit j = 1 | y): shape (2, h), a row per y."""
    observed: NDArray[np.float64]
    """P(x_i = +1 | its hidden bit): shape (2, d), a row per value of the bit."""

    @staticmethod
    def draw(d: int, seed: int, segment: int) -> "Concept":
        """The concept of a segment."""
        rng = seeds.generator(seed, "drift.concept", round=segment)
        return Concept(
            _conditional(rng, _hidden_bits(d), least=0.0), _conditional(rng, d, least=0.9)
        )

    def bayes_error(self) -> float:
        """Exact: the sum over all 2^h states of the hidden bits of the less likely class's half.

        >>> Concept(hidden=np.array([[0.25], [0.75]]), observed=np.ones((2, 1))).bayes_error()
        0.25
        """
        h = self.hidden.shape[1]
        bits = (np.arange(2**h)[:, None] >> np.arange(h)) & 1
        given = [np.where(bits, p, 1 - p).prod(axis=1) for p in self.hidden]
        return float(np.minimum(*given).sum() / 2)


def _hidden_bits(d: int) -> int:
    return d.bit_length() - 1


def _conditional(rng: np.random.Generator, size: int, least: float) -> NDArray[np.float64]:
    rho = rng.uniform(least, 1, size)
    low = rng.uniform(0, 1 - rho)
    pair = np.stack([low, low + rho])
    return np.where(rng.random(size) < 0.5, pair[::-1], pair)


class GraphicalModel:
    """Streams from the random graphical model; made by `drift`. Endless."""

    def __init__(
        self, learners: int, batch_size: int, d: int, seed: int, times: DriftTimes, per: str
    ) -> None:
        self._learners = learners
        self._size = batch_size
        self._d = d
        self._seed = seed
        self._times = times
        self._tick = batch_size if per == "sample_round" else 1
        self._rounds_drawn = max(1, BLOCK // batch_size)
        self._bit_of = np.arange(d) % _hidden_bits(d)
        self._latest: dict[int, tuple[int, Tensor, Tensor]] = {}
        self.concept = lru_cache(maxsize=64)(self._concept)

    def _concept(self, segment: int) -> Concept:
        return Concept.draw(self._d, self._times.seed, segment)

    @property
    def learners(self) -> int:
        """How many learners there are."""
        return self._learners

    @property
    def uniform(self) -> bool:
        """True: all batches have one size."""
        return True

    def rounds(self) -> int | None:
        """None: endless."""
        return None

    def at(self, learner: int, round: int) -> tuple[Tensor, Tensor]:
        """x (B, d) of −1 and +1, y (B, 1) of 0 and 1, both float32."""
        if not 0 <= learner < self._learners or round < 1:
            raise ValueError(
                f"there are learners 0 to {self._learners - 1} and rounds 1, 2, …, "
                f"but learner {learner}, round {round} was asked for"
            )
        block, place = divmod(round - 1, self._rounds_drawn)
        latest = self._latest.get(learner)
        if latest is None or latest[0] != block:
            latest = (block, *self._draw(learner, block))
            self._latest[learner] = latest
        _, x, y = latest
        batch = slice(place * self._size, (place + 1) * self._size)
        return x[batch].to(torch.float32), y[batch].to(torch.float32)

    def _draw(self, learner: int, block: int) -> tuple[Tensor, Tensor]:
        """All samples of a learner in a block of rounds, in a byte a number: with thousands of
        learners this is much of the memory.
        """
        rounds, d, h = self._rounds_drawn, self._d, _hidden_bits(self._d)
        n = rounds * self._size
        rng = seeds.generator(self._seed, "drift.samples", learner=learner, round=block)
        y = rng.integers(2, size=n)
        chance_hidden = rng.random((n, h), dtype=np.float32)
        chance_observed = rng.random((n, d), dtype=np.float32)
        x = np.empty((n, d), dtype=np.int8)
        for segment, own in self._stretches(block * rounds, rounds):
            concept = self.concept(segment)
            bits = chance_hidden[own] < concept.hidden[y[own]]
            likely = np.where(bits[:, self._bit_of], concept.observed[1], concept.observed[0])
            x[own] = np.where(chance_observed[own] < likely, np.int8(1), np.int8(-1))
        return torch.from_numpy(x), torch.from_numpy(y.astype(np.int8)[:, None])

    def _stretches(self, past: int, rounds: int) -> list[tuple[int, slice]]:
        """The segments of the `rounds` rounds after the first `past`, each with its samples."""
        of_tick = self._times.segments(past * self._tick + 1, (past + rounds) * self._tick)
        first = np.flatnonzero(np.diff(of_tick, prepend=-1))
        samples_a_tick = self._size // self._tick
        ends = [*first[1:], len(of_tick)]
        return [
            (int(of_tick[start]), slice(start * samples_a_tick, end * samples_a_tick))
            for start, end in zip(first, ends, strict=True)
        ]

    def bayes_error(self, segment: int) -> float:
        """The error, in that segment, of the best classifier given the hidden bits."""
        return self.concept(whole("segment", segment, least=0)).bayes_error()

    def drift_rounds(self, rounds: int) -> tuple[int, ...]:
        """The rounds up to `rounds` in which the concept changes, once for every change."""
        return tuple(segment.round for segment in self.segments(rounds)[1:])

    def segments(self, rounds: int) -> tuple[Segment, ...]:
        """All segments up to a round, from segment 0 in round 1."""
        ticks = [1, *self._times.until(rounds * self._tick).tolist()]
        samples_a_tick = self._size // self._tick
        return tuple(
            Segment(
                index=index,
                round=(tick - 1) // self._tick + 1,
                sample=(tick - 1) * samples_a_tick + 1,
                bayes_error=self.bayes_error(index),
            )
            for index, tick in enumerate(ticks)
        )


def drift(  # noqa: PLR0913 — the model's own parameters, all with the paper's values
    learners: int,
    batch_size: int = 10,
    seed: int = 0,
    *,
    d: int = 50,
    probability: float = 0.001,
    drift_per: Literal["sample_round", "batch_round"] = "sample_round",
    drifts: tuple[int, ...] | None = None,
    drift_seed: int | None = None,
) -> GraphicalModel:
    """Streams of a binary problem with `d` observables whose concept drifts for all learners.

    With `drift_per="sample_round"` the concept may change at each sample that a learner sees, so
    within a batch too; with "batch_round" at the start of each batch. `drifts` gives the rounds of
    the changes instead, () for none. Concepts and their times depend on `drift_seed` alone
    (default: `seed`), samples on both.

    >>> streams = drift(learners=2, batch_size=4, d=8, drifts=(3,), seed=1)
    >>> x, y = streams.at(learner=0, round=1)
    >>> x.shape, y.shape
    (torch.Size([4, 8]), torch.Size([4, 1]))
    >>> [(segment.round, segment.sample) for segment in streams.segments(rounds=10)]
    [(1, 1), (3, 9)]
    """
    whole("learners", learners, least=1)
    whole("batch_size", batch_size, least=1)
    whole("seed", seed, least=0)
    whole("d", d, least=2)
    if drift_per not in ("sample_round", "batch_round"):
        raise ValueError(
            f'drift_per must be "sample_round" or "batch_round", but is {described(drift_per)}'
        )
    times = drift_times(
        drifts,
        probability,
        seed if drift_seed is None else drift_seed,
        tick=batch_size if drift_per == "sample_round" else 1,
    )
    return GraphicalModel(learners, batch_size, d, seed, times, drift_per)
