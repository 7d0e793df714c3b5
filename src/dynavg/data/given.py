"""Streams from what users bring per learner: a list of batches, or anything that yields batches.

All checks of users' batches live here, and all state of users' iterators. An iterator can only be
read in order; the last few batches are kept, because a probe asks for a batch before the learner
does.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from threading import Lock

import numpy as np
from torch import Tensor

from dynavg.arguments import described

__all__ = ["GivenStreams", "checked_batch"]

KEPT = 4
"""How many of an iterator's latest batches can be asked for again."""


def checked_batch(batch: object, where: str) -> tuple[Tensor, Tensor]:
    """`batch`, if it is a pair of tensors with the same, positive number of samples.

    >>> import torch
    >>> x, y = checked_batch([torch.zeros(2, 3), torch.zeros(2)], "learner 0, batch 1")
    """
    if not isinstance(batch, list | tuple) or len(batch) != 2:
        raise TypeError(f"{where}: a batch is a pair (x, y) of tensors, but is {described(batch)}")
    x, y = batch
    for name, part in (("x", x), ("y", y)):
        if not isinstance(part, Tensor):
            raise TypeError(f"{where}: {name} must be a tensor, but is {described(part)}")
        if part.ndim == 0:
            raise ValueError(
                f"{where}: {name} has no dimension for samples (shape ()); "
                "a batch of one sample has shape (1, …)"
            )
    if len(x) != len(y):
        raise ValueError(
            f"{where}: x and y must have as many samples as each other, "
            f"but x has {len(x)} and y has {len(y)}"
        )
    if len(x) == 0:
        raise ValueError(f"{where}: a batch needs at least one sample, but has none")
    return x, y


class _Listed:
    """A learner's list of batches, all checked."""

    def __init__(self, learner: int, batches: Sequence[object]) -> None:
        if len(batches) == 2 and all(isinstance(part, Tensor) for part in batches):
            raise TypeError(
                f"streams[{learner}] is one batch (x, y), but must be a list of batches: [(x, y)]"
            )
        if not batches:
            raise ValueError(f"streams[{learner}] has no batches; each learner needs at least one")
        self._learner = learner
        self._batches = tuple(
            checked_batch(batch, f"streams[{learner}], batch {place + 1}")
            for place, batch in enumerate(batches)
        )
        self.length: int | None = len(self._batches)
        self.shapes = {(x.shape, y.shape) for x, y in self._batches}

    def batch(self, round: int) -> tuple[Tensor, Tensor]:
        if not 1 <= round <= len(self._batches):
            raise ValueError(
                f"learner {self._learner} has batches 1 to {len(self._batches)}, "
                f"but batch {round} was asked for"
            )
        return self._batches[round - 1]


class _Yielded:
    """A learner's iterable, read in order; the first batch is read at once."""

    def __init__(self, learner: int, batches: Iterable[object]) -> None:
        self._learner = learner
        self._lock = Lock()
        self._kept: deque[tuple[Tensor, Tensor]] = deque(maxlen=KEPT)
        self._read = 0
        self._iterator: Iterator[object] = iter(batches)
        self.length = None if self._iterator is batches else _length(batches)
        self._advance()

    def batch(self, round: int) -> tuple[Tensor, Tensor]:
        with self._lock:
            if round == self._read + 1:
                self._advance()
            back = self._read - round
            if not 0 <= back < len(self._kept):
                raise ValueError(
                    f"learner {self._learner}: batch {round} was asked for out of order. Its "
                    f"stream is an iterator that stands at batch {self._read}: the next batch "
                    f"and the latest {len(self._kept)} can be had"
                )
            return self._kept[-1 - back]

    def _advance(self) -> None:
        place = f"learner {self._learner}, batch {self._read + 1}"
        try:
            batch = next(self._iterator)
        except StopIteration:
            raise ValueError(
                f"{place}: the learner's stream ended after {self._read} batches; "
                "give it more, or run fewer rounds"
            ) from None
        except Exception as error:
            error.add_note(f"raised by the stream of {place}")
            raise
        self._kept.append(checked_batch(batch, place))
        self._read += 1


def _length(batches: object) -> int | None:
    try:
        return len(batches)  # type: ignore[arg-type]
    except TypeError:  # no length, or a DataLoader over an iterable dataset without one
        return None


def _source(learner: int, entry: object) -> _Listed | _Yielded:
    if isinstance(entry, list | tuple):
        return _Listed(learner, entry)
    unfit = isinstance(entry, Tensor | np.ndarray | str | bytes | Mapping)
    if unfit or not isinstance(entry, Iterable):
        raise TypeError(
            f"streams[{learner}] must be a list of batches (x, y) or an iterable of batches, "
            f"such as a DataLoader, but is {described(entry)}. To deal one dataset out over "
            "learners, use dynavg.data.split; for a dataset per learner, dynavg.data.per_learner"
        )
    return _Yielded(learner, entry)


class GivenStreams:
    """One source of batches per learner, each a list or an iterable."""

    def __init__(self, entries: Sequence[object]) -> None:
        iterators: dict[int, int] = {}
        for learner, entry in enumerate(entries):
            if isinstance(entry, Iterator):
                first = iterators.setdefault(id(entry), learner)
                if first != learner:
                    raise ValueError(
                        f"streams[{first}] and streams[{learner}] are the same iterator; "
                        "each learner needs its own"
                    )
        self._sources = tuple(_source(learner, entry) for learner, entry in enumerate(entries))

    @property
    def learners(self) -> int:
        """How many sources there are."""
        return len(self._sources)

    @property
    def uniform(self) -> bool:
        """Whether all batches are known, and have one shape."""
        listed = [source for source in self._sources if isinstance(source, _Listed)]
        shapes = set().union(*(source.shapes for source in listed))
        return len(listed) == len(self._sources) and len(shapes) == 1

    @property
    def in_order(self) -> bool:
        """Whether batches can only be had in order: some source is an iterable."""
        return any(isinstance(source, _Yielded) for source in self._sources)

    def rounds(self) -> int | None:
        """The shortest length known; None if none is."""
        known = [source.length for source in self._sources if source.length is not None]
        return min(known, default=None)

    def at(self, learner: int, round: int) -> tuple[Tensor, Tensor]:
        """The batch of learner 0, 1, … in round 1, 2, …; an iterator's in order only."""
        if not 0 <= learner < len(self._sources):
            raise ValueError(
                f"there are learners 0 to {len(self._sources) - 1}, "
                f"but learner {learner} was asked for"
            )
        return self._sources[learner].batch(round)
