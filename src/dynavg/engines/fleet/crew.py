"""Learners of one process: trained in turns by this thread, heard and heard from between batches.

Every learner is a shard of its own with a round counter of its own, so that one that must wait does
not hold up the others, and a query waits for one batch at most.
"""

import logging
import threading
import time
from collections.abc import Iterable

import torch
from torch import Tensor

from dynavg import checkpoint
from dynavg.engines.fleet.config import FleetConfig
from dynavg.engines.fleet.faults import Faults
from dynavg.engines.fleet.line import RETURNED, Line
from dynavg.engines.fleet.logs import event
from dynavg.engines.fleet.seat import Rules, Seat
from dynavg.engines.fleet.task import Task
from dynavg.learning.initial import initial_rows
from dynavg.learning.looped import Looped
from dynavg.protocol.wire import WireError, size

__all__ = ["Crew", "OrphanedError"]

log = logging.getLogger(__name__)


class OrphanedError(TimeoutError):
    """Nobody has answered for too long; the learners' state was saved."""


class ShardBody:
    """The only learner of a shard."""

    def __init__(self, shard: Looped, entries: int) -> None:
        self.shard = shard
        self.id = shard.ids.start
        self._entries = entries

    def model(self) -> Tensor:
        """A view into the shard."""
        return self.shard.export(self.id, self._entries)

    def install(self, vector: Tensor, since: Tensor | None) -> None:
        """Become this model, plus the progress made since `since`."""
        self.shard.install((self.id,), vector, since)


class Member:
    """A learner that is trained here: its shard, its seat, and what it has lost so far."""

    def __init__(self, shard: Looped, rules: Rules) -> None:
        self.shard = shard
        self.seat = Seat(shard.ids.start, ShardBody(shard, rules.entries), rules)
        self.done = False
        self.trace: list[tuple[int, float, int, float]] = []

    def train(self) -> list[bytes]:
        """One batch; what is to be said after it."""
        round = self.seat.round + 1
        trace = self.shard.run(round, round)
        loss, samples = float(trace.losses), int(trace.samples)
        correct = None if trace.correct is None else float(trace.correct)
        self.trace.append((round, loss, samples, -1.0 if correct is None else correct))
        return self.seat.trained(loss, samples, correct)

    def save(self, config: FleetConfig) -> None:
        """Write down the model, the optimiser's state and the losses."""
        seat = self.seat
        rounds = torch.tensor(self.trace, dtype=torch.float64).reshape(-1, 4)
        tensors = {"row": self.shard.rows[0], "rounds": rounds, **self.shard.tensors()}
        facts = {"id": seat.id, "round": seat.round, "epoch": seat.machine.epoch}
        checkpoint.write(config.learner_file(seat.id), tensors, facts)

    def load(self, config: FleetConfig) -> None:
        """Go on from what `save` wrote, if it did."""
        path = config.learner_file(self.seat.id)
        if not path.exists():
            return
        tensors, facts = checkpoint.read(path)
        self.shard.rows[0].copy_(tensors.pop("row"))
        self.trace = [
            (int(round), loss, int(samples), correct)
            for round, loss, samples, correct in tensors.pop("rounds").tolist()
        ]
        self.shard.load(tensors)
        self.seat.round = facts["round"]
        self.seat.loss = sum(loss for _, loss, _, _ in self.trace)
        self.seat.samples = sum(samples for _, _, samples, _ in self.trace)
        self.seat.correct = sum(correct for _, _, _, correct in self.trace)


class Crew:
    """The learners `ids` of a fleet, in this process. `run` returns when all of them are done."""

    def __init__(self, config: FleetConfig, task: Task, ids: range) -> None:
        self.config = config
        self.task = task
        self.ids = ids
        self.name = config.host_of(ids)
        self.faults = Faults(config.fail_at, self.name)
        there = task.streams.learners
        if ids.stop > there:
            raise ValueError(
                f"learner {ids.stop - 1}: the task has data for learners 0 to {there - 1}"
            )
        program = task.program()
        rules = Rules(config, task.operator, program.layout, task.entries(program))
        if program.schedule is not None and task.rounds is not None:
            program.schedule.extend(task.rounds)
        templates = threading.local()
        rows = initial_rows(program, ids.stop if task.init_noise else 1, task.init_noise)
        self.members: dict[int, Member] = {}
        for id in ids:
            row = rows[id if task.init_noise else 0][None].clone()
            own = range(id, id + 1)
            shard = Looped(program, task.streams, own, row, task.on_sync, templates)
            self.members[id] = Member(shard, rules)
        self.stopping = False
        self._most = size(rules.codec.payload_bytes(rules.entries))
        self._line: Line | None = None
        self._heard_at = time.monotonic()

    def run(self) -> None:
        """Join, train, answer, leave. Models and losses are saved however it ends."""
        for member in self.members.values():
            member.load(self.config)
        with Line(self.config, self.name, self.ids, self._most) as line:
            self._line = line
            try:
                for member in self.members.values():
                    self._send(member, member.seat.hello())
                self._work(line)
            finally:
                for member in self._present():
                    member.save(self.config)
                    self._send(member, member.seat.bye())

    def stop(self) -> bool:
        """Leave at the next batch boundary; safe in a signal handler. False before the broker was
        reached: then there is nothing to leave.
        """
        self.stopping = True
        if self._line is not None:
            self._line.wake()
        return self._line is not None

    def _work(self, line: Line) -> None:
        reported = time.monotonic()
        worked = True
        while not self.stopping and any(self._present()):
            if not worked:
                self._hear(line.receive(self._patience(time.monotonic())))
            worked = False
            for member in self.members.values():
                self._hear(line.receive() if line.has_news else ())
                if self._may_train(member):
                    self._send(member, member.train())
                    self.faults.passed("Trained")
                    worked = True
                self._finish(member)
            now = time.monotonic()
            if now - reported > self.config.report_seconds:
                reported = now
                for member in self._present():
                    if member.seat.joined:
                        self._send(member, member.seat.report())
            self._mind_deadlines(now)

    def _present(self) -> Iterable[Member]:
        return (member for member in self.members.values() if not member.done)

    def _may_train(self, member: Member) -> bool:
        seat, rounds = member.seat, self.task.rounds
        more = rounds is None or seat.round < rounds
        return more and not seat.blocked and not member.done and not self.stopping

    def _finish(self, member: Member) -> None:
        seat, rounds = member.seat, self.task.rounds
        if member.done or rounds is None or seat.round < rounds or seat.waits_for_coordinator:
            return
        member.done = True
        member.save(self.config)  # before the coordinator, when all are gone, writes the record
        self._send(member, seat.bye())
        event(log, logging.INFO, "finished", learner=seat.id, round=seat.round, loss=seat.loss)

    def _hear(self, came: Iterable[tuple[int, bytes]]) -> None:
        for id, data in came:
            self._heard_at = time.monotonic()
            if id == RETURNED:
                for member in self._present():
                    if not data and member.seat.waits_for_coordinator:
                        self._send(member, member.seat.again("the broker was away"))
                continue
            member = self.members[id]
            if member.done:
                continue
            try:
                self._send(member, member.seat.hear(data))
                self.faults.passed("Heard")
            except WireError as error:
                event(log, logging.WARNING, "refused", learner=id, why=str(error))

    def _send(self, member: Member, said: list[bytes]) -> None:
        assert self._line is not None, "only while the line is open"
        for data in said:
            self._line.send(member.seat.id, data)

    def _patience(self, now: float) -> float:
        """How long there is certainly nothing to do but to listen."""
        due = [
            member.seat.asked_at + self.config.answer_seconds
            for member in self._present()
            if member.seat.waits_for_coordinator
        ]
        return max(0.001, min([now + self.config.report_seconds, *due]) - now)

    def _mind_deadlines(self, now: float) -> None:
        for member in self._present():
            seat = member.seat
            if seat.waits_for_coordinator and now - seat.asked_at > self.config.answer_seconds:
                if now - self._heard_at > self.config.orphan_seconds:
                    raise OrphanedError(
                        f"learner {seat.id}, round {seat.round}: no word from the coordinator for "
                        f"{self.config.orphan_seconds:g} s; is one running for run "
                        f"{self.config.run!r} at {self.config.url}?"
                    )
                self._send(member, seat.again("no answer in time"))
