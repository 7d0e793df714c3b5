"""What a run came to: losses, bytes, accuracy, models, and what to make of them."""

import copy
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import numpy as np
import polars as pl
from torch import Tensor, nn

from dynavg.arguments import check_count
from dynavg.engines.history import CheckRecord, Evaluation, History, Losses
from dynavg.learning.layout import Layout
from dynavg.protocol.ledger import Ledger, View
from dynavg.protocol.operator import Operator
from dynavg.records import ledger_frame

__all__ = ["Models", "Result"]


class Models(Sequence[nn.Module]):
    """The learners' models, made when asked for: a module of its own each time."""

    def __init__(
        self,
        prototype: nn.Module,
        layout: Layout,
        rows: Tensor,
        counters: Sequence[Sequence[Tensor]],
    ) -> None:
        self._prototype = prototype
        self._layout = layout
        self._rows = rows
        self._counters = counters

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, place: int) -> nn.Module: ...

    @overload
    def __getitem__(self, place: slice) -> "Models": ...

    def __getitem__(self, place: int | slice) -> "nn.Module | Models":
        if isinstance(place, slice):
            return Models(self._prototype, self._layout, self._rows[place], self._counters[place])
        module = copy.deepcopy(self._prototype)
        self._layout.read(self._rows[place], module)
        for buffer, own in zip(self._layout.counters(module), self._counters[place], strict=True):
            buffer.copy_(own)
        return module


@dataclass(frozen=True)
class Result:
    """One run. `learners` is m, also for a serial run, whose one model saw what m learners see.

    `rows` holds the models (learners × row), `mean_row` their average, `counters` each learner's
    buffers that are in no row.
    """

    operator: Operator | None
    learners: int
    losses: Losses
    checks: list[CheckRecord]
    evaluations: list[Evaluation]
    book: Ledger
    prototype: nn.Module
    layout: Layout
    rows: Tensor
    mean_row: Tensor
    counters: Sequence[Sequence[Tensor]]
    shard: str

    @property
    def rounds(self) -> int:
        """Batches per learner."""
        return self.losses.rounds

    @cached_property
    def cumulative_loss(self) -> float:
        """The loss of each model before its update, summed over samples, rounds and learners."""
        return float(self.losses.losses.double().sum())

    @property
    def loss_per_learner(self) -> float:
        """The cumulative loss divided by m."""
        return self.cumulative_loss / self.learners

    @property
    def samples(self) -> int:
        """All samples that all learners have seen."""
        return int(self.losses.samples.sum())

    def bytes(self, view: str = View.TOTAL) -> int:
        """What crossed the network, as "total" (headers and payloads), "models_only" (payloads),
        "uplink" (to the coordinator) or "messages" (their number).
        """
        return self.book.total(view)

    def accuracy(self, last: int | None = None) -> float:
        """The share of correct predictions, made before learning from the sample; with `last` only
        on the last so many samples of each learner, rounded up to whole batches.
        """
        correct = self.losses.correct
        if correct is None or bool(correct.isnan().any()):
            raise ValueError(
                "this run counted no correct predictions: its targets are neither class numbers "
                "nor 0/1 for one logit; pass metric=(output, target) -> number correct"
            )
        samples = self.losses.samples
        if last is None:
            return float(correct.double().sum() / samples.sum())
        check_count("accuracy", "last", last)
        after = samples.flip(1).cumsum(1).flip(1) - samples
        chosen = after < last
        return float((correct.double() * chosen).sum() / (samples * chosen).sum())

    @cached_property
    def ledger(self) -> pl.DataFrame:
        """A row per message: round, type, sender, receiver (−1 is the coordinator), header_bytes,
        payload_bytes and their sum, bytes.
        """
        return ledger_frame(self.book)

    @cached_property
    def history(self) -> History:
        """Data frames: `history.rounds`, `history.checks`, `history.evaluations`."""
        return History(self.losses, self.checks, self.evaluations)

    def model(self) -> nn.Module:
        """The average of all learners' models; what is not averaged is the first learner's."""
        return Models(self.prototype, self.layout, self.mean_row[None], self.counters[:1])[0]

    def models(self) -> Models:
        """Each learner's model."""
        return Models(self.prototype, self.layout, self.rows, self.counters)

    def transfer_time(self, link: str = "50 Mbit/s", latency: str = "40 ms") -> float:
        """Seconds that the messages need when every one of them crosses the coordinator's link.

        The messages of one phase (violations, queries, replies, models) follow each other on that
        link without a pause, and each phase waits for one latency.
        """
        speed = quantity("link", link, _LINKS)
        if not speed:
            raise ValueError(f"link={link!r}: a speed above 0 is wanted")
        seconds = self.bytes() * 8 / speed
        phases = sum(check.phases for check in self.checks)
        return seconds + phases * quantity("latency", latency, _TIMES)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What a user should know before believing the run: a Δ that never or always bites."""
        delta = getattr(self.operator, "delta", None)
        if delta is None or not self.checks:
            return ()
        violated = sum(check.violations > 0 for check in self.checks)
        if 0 < violated < len(self.checks):
            return ()
        medians = [check.distance_median for check in self.checks]
        squared = [median for median in medians if median is not None and math.isfinite(median)]
        if not squared:  # learners of a fleet keep their distances to themselves
            return ()
        if getattr(self.operator, "distance", None) == "norm":
            squared = [distance**0.5 for distance in squared]
        low, high = np.quantile(squared, [0.1, 0.9])
        often, effect = "no check", "this was no synchronisation at all"
        if violated:
            often, effect = "every check", "a periodic protocol might have done as well"
            low, high = high, 10 * high
        note = (
            f"{often} violated delta={delta:g}: {effect}. At the checks the median learner was "
            f"between {low:.2g} and {high:.2g} from the reference; a delta in that range decides"
        )
        return (note,)

    def __repr__(self) -> str:
        who = "serial" if self.operator is None else self.operator
        facts = (
            f"Result({who}, {self.learners} learners, {self.rounds} rounds: "
            f"loss per learner {self.loss_per_learner:.4g}, {self.bytes():,} bytes)"
        )
        return "\n".join((facts, *self.notes))


_LINKS = {"bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9}
_TIMES = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6}


def quantity(name: str, text: str, units: dict[str, float]) -> float:
    """A number >= 0 with a unit, such as "50 Mbit/s".

    >>> quantity("latency", "40 ms", {"ms": 1e-3})
    0.04
    """
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(\S+)\s*", str(text))
    if match is None or match[2] not in units:
        raise ValueError(
            f"{name}={text!r}: a number and a unit are wanted, such as '5 {next(iter(units))}'; "
            f"units: {', '.join(units)}"
        )
    return float(match[1]) * units[match[2]]
