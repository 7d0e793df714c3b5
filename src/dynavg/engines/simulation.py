"""The simulation: shards in worker threads of this process, and the protocol between them.

It carries out the coordinator's instructions on the rows of one matrix. It takes no decision of its
own: who speaks is the learner machine's word, what follows the coordinator's, and the arithmetic is
`vectors`'. What happens to arguments before that, and to results after, is in `api` and `result`.
"""

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from dynavg.data.samples import Samples
from dynavg.data.streams import Streams
from dynavg.engines.averaging import Averaging
from dynavg.engines.history import CheckRecord, DivergedError, Evaluation, Losses
from dynavg.engines.workers import Workers
from dynavg.learning.codecs import codec_for
from dynavg.learning.program import Program
from dynavg.learning.shard import Shard
from dynavg.learning.vectors import first_unsound, squared_distance
from dynavg.protocol import learner as local
from dynavg.protocol.coordinator import Coordinator
from dynavg.protocol.ledger import Ledger
from dynavg.protocol.messages import (
    Aggregate,
    Aggregated,
    Arrival,
    CheckDue,
    Collected,
    Expect,
    Instruction,
    MessageType,
    Outcome,
    Persist,
    Query,
    Send,
    Violated,
)
from dynavg.protocol.operator import Operator
from dynavg.protocol.wire import size

__all__ = ["Check", "Plan", "Simulation"]

CHUNK = (8, 64)
"""Rounds between two looks at losses and progress, at least and at most; a check comes first."""

STEPPED = 4_000_000
"""Weights of all learners, times rounds, between two looks: little work is not looked at often."""

HELD_OUT_BATCH = 500
"""Samples per batch when the averaged model is evaluated; fixed, so that workers change no bit."""


@dataclass(frozen=True, slots=True)
class Check:
    """What a callback gets after a check: its record, every model (rows), and the reference.

    The tensors are the simulation's own: copy what you keep, change nothing.
    """

    record: CheckRecord
    models: Tensor
    reference: Tensor


@dataclass(frozen=True, slots=True)
class Plan:
    """What to simulate beyond the learners. `held_out` is data to evaluate the averaged model on,
    and after how many rounds each time.
    """

    operator: Operator
    rounds: int
    seed: int
    buffers: Literal["average", "local"] = "average"
    callbacks: tuple[Callable[[Check], object], ...] = ()
    held_out: tuple[Samples, int] | None = None
    measure_divergence: bool = False
    checkpoint_every: int | None = None

    @property
    def evaluate_every(self) -> int | None:
        """After how many rounds the averaged model is evaluated each time."""
        return self.held_out[1] if self.held_out else None


class Simulation:
    """One run, from round 1 to `plan.rounds`."""

    def __init__(
        self,
        plan: Plan,
        program: Program,
        streams: Streams,
        rows: Tensor,
        shards: Sequence[Shard],
        workers: Workers,
    ) -> None:
        self.plan = plan
        self.program = program
        self.rows = rows
        self.shards = shards
        self.workers = workers
        members = range(streams.learners)
        self.coordinator = Coordinator(plan.operator, members, seed=plan.seed)
        self.learners = [local.Learner(plan.operator.unasked) for _ in members]
        self.ledger = Ledger()
        self.losses = Losses(len(rows), plan.rounds, program.layout.dtype)
        self.checks: list[CheckRecord] = []
        self.evaluations: list[Evaluation] = []
        self.round = 0
        self.sent_bytes = 0
        layout = program.layout
        self.entries = layout.width if plan.buffers == "average" else layout.parameters
        self.reference = program.initial_row()[: self.entries]
        self._codec = codec_for(layout.dtype)
        self.last_check = 0
        self._average: Tensor | None = None
        self._averaging = Averaging(workers)
        self._outcome: Outcome | None = None
        self._sizes: dict[MessageType, int] = {}

    def run(self, *at_rest: Callable[["Simulation"], object]) -> None:
        """All rounds that are left; `at_rest` are called whenever the learners stand still."""
        for last in self._stops():
            self._train(last)
            if self._due(self.plan.operator.every):
                self._check()
            if self._due(self.plan.evaluate_every):
                self._evaluate()
            for tell in at_rest:
                tell(self)
        self._demand_finite(range(len(self.rows)))

    def _train(self, last: int) -> None:
        first = self.round + 1
        traces = self.workers.map(lambda shard: shard.run(first, last), self.shards)
        for shard, trace in zip(self.shards, traces, strict=True):
            self.losses.add(shard.ids, first, trace)
        self.losses.demand_finite(first, last)
        self.round = self.losses.rounds = last

    def mean_row(self) -> Tensor:
        """The plain average of all models, buffers included."""
        return self._averaging.mean(list(self.rows), [1.0] * len(self.rows))

    def _stops(self) -> Iterator[int]:
        """The rounds after which the learners stand still for a moment."""
        chunk = max(CHUNK[0], min(STEPPED // self.rows.numel(), CHUNK[1]))
        while self.round < self.plan.rounds:
            plan = self.plan
            periods = (plan.operator.every, plan.evaluate_every, plan.checkpoint_every)
            due = ((self.round // every + 1) * every for every in periods if every is not None)
            yield min(self.round + chunk, self.plan.rounds, *due)

    def _due(self, every: int | None) -> bool:
        return every is not None and self.round % every == 0

    def _check(self) -> None:
        """One check, from the learners' word to the record of what came of it."""
        operator = self.plan.operator
        weights = self._weights()
        distances = self._distances() if operator.measures else None
        before = self._divergence(weights)
        self._outcome = None
        for id, learner in enumerate(self.learners):
            distance = math.nan if distances is None else distances[id]
            for speech in learner.handle(local.Checked(distance)):
                if speech == local.Speak(MessageType.VIOLATION, learner.epoch):
                    self._note(MessageType.VIOLATION, (id,))
                    self.coordinator.handle(Violated(id, learner.epoch, weights[id]))
        self._carry_out(self.coordinator.handle(CheckDue(self.round)), weights)
        self.last_check = self.round
        self._record(distances, before, self._divergence(weights))

    def _weights(self) -> list[float]:
        """Each learner's B_i: the samples that it has seen since its previous check."""
        samples = self.losses.samples[:, self.last_check : self.round]
        return [float(number) for number in samples.sum(1)]

    def _carry_out(self, instructions: Sequence[Instruction], weights: list[float]) -> None:
        todo = deque(instructions)
        while todo:
            match todo.popleft():
                case Query(resolution, ids):
                    self._note(MessageType.QUERY, ids)
                    for id in ids:
                        self.learners[id].handle(local.Asked(resolution))
                    todo.extend(self._collect(resolution, ids, weights))
                case Expect(resolution, ids):
                    todo.extend(self._collect(resolution, ids, weights))
                case Aggregate() as order:
                    todo.extend(self.coordinator.handle(self._aggregate(order)))
                case Send() as order:
                    self._send(order)
                case Persist(outcome):
                    self._outcome = outcome
                case _:  # nobody is ever late here, or joins
                    pass

    def _collect(
        self, resolution: int, ids: tuple[int, ...], weights: list[float]
    ) -> tuple[Instruction, ...]:
        self._note(MessageType.REPLY, ids)
        got = tuple(Arrival(id, self.learners[id].epoch, weights[id]) for id in ids)
        return self.coordinator.handle(Collected(resolution, got))

    def _aggregate(self, order: Aggregate) -> Aggregated:
        sent = [self._codec.through(self.rows[id, : self.entries]) for id in order.ids]
        average = self._averaging.extend(order.resolution, order.ids, sent, order.weights)
        if not bool(average.isfinite().all()):
            self._demand_finite(order.ids)
        self._average = self._codec.through(average)
        if not order.measure:
            return Aggregated(order.resolution)
        parameters = self.program.layout.parameters
        distance = squared_distance(self._average[:parameters], self.reference[:parameters])
        return Aggregated(order.resolution, {"distance": distance})

    def _send(self, order: Send) -> None:
        average = self._average
        assert average is not None, "the coordinator averages before it sends"
        self._note(MessageType.MODEL, order.ids)
        for id in order.ids:
            self.learners[id].handle(local.Delivered(order.as_reference, order.epoch))
        receivers = frozenset(order.ids)
        self.workers.map(
            lambda shard: shard.install([id for id in shard.ids if id in receivers], average),
            self.shards,
        )
        if order.as_reference:
            self.reference = average

    def _note(self, type: MessageType, ids: Sequence[int]) -> None:
        payload = 0 if type is MessageType.QUERY else self._codec.payload_bytes(self.entries)
        self.ledger.add(self.round, type, ids, payload)
        sent = len(ids) * size(payload)
        self._sizes[type] = self._sizes.get(type, 0) + sent
        self.sent_bytes += sent

    def _distances(self) -> list[float]:
        measured = self.workers.map(lambda shard: shard.distances(self.reference), self.shards)
        distances = [distance for part in measured for distance in part]
        if not all(map(math.isfinite, distances)):
            self._demand_finite(range(len(self.rows)))
        return distances

    def _demand_finite(self, ids: Sequence[int]) -> None:
        place = first_unsound([self.rows[id] for id in ids])
        if place is not None:
            raise DivergedError(ids[place], self.round, "its model")

    def _divergence(self, weights: list[float]) -> float | None:
        """δ: the mean squared distance of the models from their mean, by the operator's weights."""
        if not self.plan.measure_divergence:
            return None
        if self.plan.operator.weights == "equal":
            weights = [1.0] * len(self.rows)
        mean = self._averaging.mean(list(self.rows), weights)
        measured = self.workers.map(lambda shard: shard.distances(mean), self.shards)
        distances = (distance for part in measured for distance in part)
        return sum(w * d for w, d in zip(weights, distances, strict=True)) / sum(weights)

    def _record(
        self, distances: list[float] | None, before: float | None, after: float | None
    ) -> None:
        self.ledger.settle()
        record = CheckRecord.of(self.round, self._outcome, self._sizes, distances)
        if before is not None:
            threshold = getattr(self.plan.operator, "threshold", math.nan)
            record = replace(
                record,
                divergence_before=before,
                divergence_after=after,
                false_alarm=record.violations > 0 and before <= threshold,
            )
        self.checks.append(record)
        self._sizes = {}
        for callback in self.plan.callbacks:
            callback(Check(record, self.rows, self.reference))

    def _evaluate(self) -> None:
        """The averaged model on held-out data, some batches per worker."""
        assert self.plan.held_out is not None, "only due then"
        samples = self.plan.held_out[0]
        mean_row = self.mean_row()

        def score(part: tuple[int, Tensor]) -> tuple[float, float]:
            template = self.shards[0].template(self.program)
            template.look_at(mean_row)
            return template.score(samples.take(part[1]), part[0], self.round)

        parts = torch.arange(len(samples)).split(HELD_OUT_BATCH)
        scores = self.workers.map(score, enumerate(parts))
        loss, correct = (sum(column) / len(samples) for column in zip(*scores, strict=True))
        counted = self.program.metric is not None
        self.evaluations.append(Evaluation(self.round, loss, correct if counted else None))
