"""What learners learn from: a batch is a function of the learner and the round.

A stream that is a function, rather than an iterator with a position, lets two protocols see the
same data in the same order, lets a run resume from its round number alone, and lets worker threads
ask in any order. Iterators that users bring are wrapped here and read in order. How a dataset
becomes streams is in `splitting`, how streams drift in `graphical` and `shifts`.
"""

from typing import Protocol, TypeAlias, runtime_checkable

from torch import Tensor

from dynavg.arguments import described, whole
from dynavg.data.given import GivenStreams

__all__ = ["Batch", "Streams", "as_streams"]

Batch: TypeAlias = tuple[Tensor, Tensor]


@runtime_checkable
class Streams(Protocol):
    """The batches of `learners` learners. Samples run along the first dimension of x and y.

    Streams that can only be read in order, round after round, say so with `in_order = True`; those
    whose batches all have one shape with `uniform = True` (small models then run faster).
    """

    @property
    def learners(self) -> int:
        """How many learners there are."""
        ...

    def rounds(self) -> int | None:
        """How many batches every learner has; None where no end is known."""
        ...

    def at(self, learner: int, round: int) -> Batch:
        """The batch (x, y) of learner 0, 1, … in round 1, 2, …: same call, same bits.

        Safe to call from several threads for different learners.
        """
        ...


def as_streams(streams: object) -> Streams:
    """The streams that a user means: `Streams` as they are, or one entry per learner in a list.

    An entry is a list of batches `(x, y)`, checked here and now, or an iterable of batches such as
    a DataLoader or a generator, of which the first batch is read and checked now and the others
    when their round comes. An iterator yields its batches once: wrap it once.

    >>> import torch
    >>> batch = torch.zeros(10, 3), torch.zeros(10)
    >>> streams = as_streams([[batch] * 5, [batch] * 7])
    >>> streams.learners, streams.rounds()
    (2, 5)
    >>> [tuple(part.shape) for part in streams.at(learner=1, round=3)]
    [(10, 3), (10,)]
    """
    if isinstance(streams, Streams) and not isinstance(streams, type):
        whole("streams.learners", streams.learners, least=1)
        return streams
    if not isinstance(streams, list | tuple):
        raise TypeError(
            "streams must be a Streams object (such as dynavg.data.split(dataset, learners, "
            "batch_size) returns) or a list with one entry per learner, but is "
            f"{described(streams)}"
        )
    if not streams:
        raise ValueError("streams must have one entry per learner, but is empty: no learners")
    return GivenStreams(streams)
