"""When a concept that all learners share changes: scripted, or by chance with a fixed probability.

Time is a count of ticks 1, 2, …; what a tick is (a round, a sample) is the caller's business. The
stretch before the first drift is segment 0. Drift times are a function of the seed alone; they are
computed as far as they are asked for.
"""

from threading import Lock

import numpy as np
from numpy.typing import NDArray

from dynavg import seeds
from dynavg.arguments import probability as checked_probability
from dynavg.arguments import rounds_ascending, whole

__all__ = ["DriftTimes", "drift_times"]

GAPS = 256
"""Times between drifts are drawn this many at once."""


class DriftTimes:
    """Ascending ticks, each the first of a new segment; made by `drift_times`."""

    def __init__(self, scripted: tuple[int, ...], probability: float, seed: int) -> None:
        self._starts = np.array(scripted, dtype=np.int64)
        self._probability = probability
        self.seed = seed
        self._blocks = 0
        self._lock = Lock()

    def until(self, tick: int) -> NDArray[np.int64]:
        """All drifts at ticks up to and including `tick`."""
        if self._probability > 0:
            self._draw(tick)
        starts = self._starts
        return starts[: np.searchsorted(starts, tick, side="right")]

    def segments(self, first: int, last: int) -> NDArray[np.int64]:
        """The segment of each tick `first` … `last`."""
        starts = self.until(last)
        return np.searchsorted(starts, np.arange(first, last + 1), side="right")

    def _draw(self, tick: int) -> None:
        if len(self._starts) and self._starts[-1] > tick:
            return
        with self._lock:
            starts = [self._starts]
            newest = int(self._starts[-1]) if len(self._starts) else 1
            while newest <= tick:
                rng = seeds.generator(self.seed, "drift.times", round=self._blocks)
                # Each tick after the first drifts with the probability, so gaps are geometric.
                drawn = newest + np.cumsum(rng.geometric(self._probability, size=GAPS))
                starts.append(drawn)
                newest = int(drawn[-1])
                self._blocks += 1
            # A new array takes the old one's place at once: readers hold no lock.
            self._starts = np.concatenate(starts)


def drift_times(
    drifts: object = None, probability: float = 0.0, seed: int = 0, tick: int = 1
) -> DriftTimes:
    """The drifts at scripted rounds of `tick` ticks each, or else by chance in any tick but 1.

    >>> drift_times(drifts=(3, 5)).segments(1, 6).tolist()
    [0, 0, 1, 1, 2, 2]
    >>> drift_times(probability=1.0).segments(1, 4).tolist()
    [0, 1, 2, 3]
    """
    chance = checked_probability("probability", probability)
    whole("drift_seed", seed, least=0)
    if drifts is None:
        return DriftTimes((), chance, seed)
    rounds = rounds_ascending("drifts", drifts)
    return DriftTimes(tuple((round - 1) * tick + 1 for round in rounds), 0.0, seed)
