"""The serial baseline's view of the data: one learner sees what m learners would see."""

from typing import Literal

import torch
from torch import Tensor

from dynavg.data.streams import Streams
from dynavg.engines.history import Losses

__all__ = ["SerialStreams"]


class SerialStreams:
    """The streams of m learners as the stream of one: "sequential" makes m batches of a round, one
    after the other; "joint" makes one batch of m·B of it, as in Proposition 3.
    """

    def __init__(self, streams: Streams, batch: Literal["sequential", "joint"]) -> None:
        self._streams = streams
        self._turns = streams.learners if batch == "sequential" else 1

    @property
    def learners(self) -> int:
        """One."""
        return 1

    @property
    def in_order(self) -> bool:
        """Whether batches can only be had in order."""
        return bool(getattr(self._streams, "in_order", False))

    def rounds(self) -> int | None:
        """How many batches there are for the one learner."""
        rounds = self._streams.rounds()
        return None if rounds is None else rounds * self._turns

    def of(self, rounds: int) -> int:
        """How many batches the one learner sees in so many rounds of m learners."""
        return rounds * self._turns

    def place(self, learner: int, round: int) -> tuple[int, int]:
        """Whose batch, of which round, the one learner saw as its batch number `round`."""
        turn, stream = divmod(round - 1, self._turns)
        return (stream, turn + 1) if self._turns > 1 else (learner, round)

    def at(self, learner: int, round: int) -> tuple[Tensor, Tensor]:
        """The batch number `round` of the one learner."""
        if self._turns > 1:
            turn, stream = divmod(round - 1, self._turns)
            return self._streams.at(stream, turn + 1)
        parts = [self._streams.at(stream, round) for stream in range(self._streams.learners)]
        return torch.cat([x for x, _ in parts]), torch.cat([y for _, y in parts])

    def by_stream(self, losses: Losses) -> Losses:
        """The one learner's losses, a row per stream, so that they stand beside other runs'."""
        by_stream = Losses(self._turns, losses.rounds // self._turns, losses.losses.dtype)
        by_stream.rounds = losses.rounds // self._turns
        by_stream.losses = losses.losses.view(by_stream.rounds, self._turns).T
        by_stream.samples = losses.samples.view(by_stream.rounds, self._turns).T
        if losses.correct is not None:
            by_stream.correct = losses.correct.view(by_stream.rounds, self._turns).T
        else:
            by_stream.correct = None
        return by_stream
