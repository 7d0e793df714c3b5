"""A shard: a block of learners that live together, as rows of one contiguous matrix.

Whoever carries shards (worker threads, fleet processes, actors) knows only this class; how the
learners are stepped is the shard kind's affair.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from dynavg.data.streams import Streams
from dynavg.learning.program import Program
from dynavg.learning.template import Template
from dynavg.learning.vectors import squared_distances

__all__ = ["Shard", "Trace"]


@dataclass(frozen=True, slots=True)
class Trace:
    """What a shard's learners did: (learners × rounds), losses before the update summed over the
    samples of the batch, numbers of samples, correct predictions (None where nothing counts them).
    """

    losses: Tensor
    samples: Tensor
    correct: Tensor | None


class Shard(ABC):
    """Learners with consecutive ids; `rows` holds their models, as `program.layout` lays them out.

    The matrix may be a slice of a larger one: a shard never replaces it, only writes into it.
    """

    template = Template
    """What a worker steps, or scores, its models with."""

    def __init__(
        self,
        program: Program,
        streams: Streams,
        ids: range,
        rows: Tensor,
        on_sync: Literal["keep", "reset"] = "keep",
    ) -> None:
        self.program = program
        self.streams = streams
        self.ids = ids
        self.rows = rows
        self.on_sync = on_sync

    @abstractmethod
    def run(self, first: int, last: int) -> Trace:
        """Rounds first…last of every learner."""

    @abstractmethod
    def counters(self, id: int) -> list[Tensor]:
        """A learner's buffers that are in no row, such as BatchNorm's counters."""

    @abstractmethod
    def forget(self, ids: Iterable[int]) -> None:
        """Reset these learners' optimiser state."""

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """What the learners keep besides their rows, for a checkpoint."""

    @abstractmethod
    def load(self, tensors: dict[str, Tensor]) -> None:
        """The inverse of `tensors`."""

    def export(self, id: int, entries: int) -> Tensor:
        """The first `entries` numbers of a learner's row, as a view."""
        return self.rows[id - self.ids.start, :entries]

    def distances(self, reference: Tensor) -> list[float]:
        """Each learner's squared distance from the reference, over the parameters."""
        parameters = self.program.layout.parameters
        return squared_distances(list(self.rows[:, :parameters]), reference[:parameters])

    def install(self, ids: Iterable[int], vector: Tensor, since: Tensor | None = None) -> None:
        """Give these learners a model; the progress made since `since` is added on top of it."""
        ids = tuple(ids)
        for id in ids:
            row = self.export(id, len(vector))
            if since is None:
                row.copy_(vector)
            else:
                row.add_(vector - since)
        if self.on_sync == "reset":
            self.forget(ids)
