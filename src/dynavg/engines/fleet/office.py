"""The coordinator's process: one loop that takes one thing at a time.

A message, a deadline, the broker's return: each is told to the machine of `protocol.coordinator`,
and what that answers is carried out (`carrier`) before the next thing is taken. What comes from
outside is foreign until `reception` has looked at it. The questions that are the office's own are
those that a simulation never has: who is there, who has gone, and what was lost.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from functools import partial

from dynavg.engines.fleet.attendance import Attendance
from dynavg.engines.fleet.book import Book
from dynavg.engines.fleet.carrier import Carrier, arrival_of
from dynavg.engines.fleet.config import FleetConfig
from dynavg.engines.fleet.control import Kind, Note
from dynavg.engines.fleet.gate import Gate
from dynavg.engines.fleet.holding import Holding
from dynavg.engines.fleet.journal import Journal
from dynavg.engines.fleet.logs import event
from dynavg.engines.fleet.minutes import Minutes
from dynavg.engines.fleet.post import Post
from dynavg.engines.fleet.reception import Reception, Sound, Unfit
from dynavg.engines.fleet.subjects import sender, up
from dynavg.engines.fleet.task import ModelTask, Task
from dynavg.learning.codecs import codec_for
from dynavg.protocol.coordinator import Coordinator, IllegalEventError, Phase
from dynavg.protocol.messages import (
    CheckDue,
    Collected,
    Event,
    Expired,
    Joined,
    Left,
    MessageType,
    Outcome,
    Unasked,
    Violated,
)
from dynavg.protocol.wire import WireError, size

__all__ = ["Office"]

log = logging.getLogger(__name__)

INVITE_SECONDS = 0.5
"""When a coordinator has just come: who is not in by then said hello before it could hear it."""


Todo = Callable[[], Awaitable[None]]
"""Something that has happened, as what is to be done about it."""


class Office:
    """The coordinator of one fleet. `watch` is called whenever something has changed."""

    def __init__(
        self,
        config: FleetConfig,
        task: Task | ModelTask,
        watch: Callable[["Office"], None] = lambda _: None,
    ) -> None:
        start = task.start()
        layout, entries = start.layout, len(start.vector)
        self.config = config
        self.task = task
        self.watch = watch
        self.journal = Journal(config.coordinator_folder)
        self.book = Book.opened(self.journal)
        self.machine = self._machine()
        self.reception = Reception(config, layout, entries)
        most = size(codec_for(layout.dtype).payload_bytes(entries))
        self.post = Post(config, "coordinator", most, self._hear, self._returned)
        holding = Holding(start.vector)
        self.carrier = Carrier(
            config, layout, self.machine, holding, self.book, self.post, self.journal
        )
        self.carrier.expired = lambda what: self._todo.put_nowait(partial(self._expired, what))
        self.carrier.starts = self._round_for
        self.carrier.extra = lambda: {"heard": sorted(self.reception.heard.items())}
        self.gate = self._gate()
        self.minutes = Minutes(self.book)
        self.attendance = Attendance(config, time.monotonic())
        self._unasked = task.operator.unasked(0.0) is Unasked.REPLY
        self._rounds: dict[int, int] = {}
        self._late: int | None = None
        self._todo: asyncio.Queue[Todo | None] = asyncio.Queue()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self) -> None:
        """Coordinate until all learners are done, or `stop` is called."""
        try:
            await self.post.open([up(self.config, "*")])
            await self._coordinate()
        finally:
            self.journal.close()

    async def _coordinate(self) -> None:
        try:
            self._loop = asyncio.get_running_loop()
            self._in(self.attendance.look_seconds, self._miss_the_silent)
            self._in(INVITE_SECONDS, self._invite)
            if self.book.state is not None:
                await self._take_up()
            self._in(self.config.join_seconds, self._start)
            while (todo := await self._todo.get()) is not None:
                await todo()
                await self._resolve_what_is_due()
                self.watch(self)
                if self._finished():
                    break
        finally:
            self.post.note_wire_bytes()
            self.minutes.end(self.post, self.carrier.small_talk)
            await self.post.close()
            self._loop = None

    def stop(self) -> bool:
        """End `run`; safe from other threads and signal handlers. False before the broker was
        reached.
        """
        if self._loop is None:
            self._todo.put_nowait(None)
            return False
        self._loop.call_soon_threadsafe(self._todo.put_nowait, None)
        return True

    def _machine(self) -> Coordinator:
        seed, patience = self.task.seed, self.config.collect_seconds
        state = self.book.state
        if state is None:
            return Coordinator(self.task.operator, seed=seed, patience=patience)
        return Coordinator.restore(self.task.operator, state, seed=seed, patience=patience)

    def _gate(self) -> Gate | None:
        operator, lockstep = self.task.operator, self.config.pace == "lockstep"
        if operator.every is None or (operator.measures and not lockstep):
            return None
        return Gate(operator.every, max((check.round for check in self.book.checks), default=0))

    async def _take_up(self) -> None:
        """Go on where a coordinator died: what it owed is sent, what it forgot is said again."""
        state, unfinished = self.book.state, self.book.unfinished
        assert state is not None, "there is something to take up"
        self.reception.heard = dict(state["heard"])
        self.carrier.restore(unfinished, state["reference_from"])
        members = self.machine.members
        begun = bool(self.book.checks) or unfinished is not None
        self.attendance.take_up(self.book.progress, members, begun, time.monotonic())
        event(log, logging.WARNING, "taking up", members=len(members), epoch=self.machine.epoch)
        if unfinished is not None:
            await self.carrier.resend(unfinished)
            await self._conclude(unfinished.round, unfinished)
        await self.carrier.note(Kind.AGAIN, members)

    def _hear(self, subject: str, data: bytes) -> None:
        self._todo.put_nowait(partial(self._came, sender(subject), data))

    def _returned(self) -> None:
        self._todo.put_nowait(lambda: self.carrier.note(Kind.AGAIN, self.machine.members))

    def _in(self, seconds: float, todo: Todo) -> None:
        """Do this so many seconds from now."""
        assert self._loop is not None, "run has set it"
        self._loop.call_later(seconds, self._todo.put_nowait, todo)

    async def _invite(self) -> None:
        await self.carrier.note(Kind.AGAIN, self.attendance.absent(self.machine.members))

    async def _start(self) -> None:
        """The first to come have waited long enough for the others."""
        if not self.attendance.started:
            await self._let_in(self.attendance.start())

    async def _came(self, id: int, data: bytes) -> None:
        try:
            opened = self.reception.open(id, data)
        except WireError as error:
            self.book.refusal(id, str(error))
            event(log, logging.WARNING, "refused", learner=id, why=str(error))
            return
        self.attendance.hear(id, time.monotonic())
        match opened:
            case Note():
                self.carrier.small_talk += len(data)
                await self._note(opened)
            case Sound() | Unfit():
                message = opened.message
                self.book.message(message.round, message.type, (id,), opened.length)
                if id not in self.machine.members:
                    await self.carrier.note(Kind.REJOIN, (id,))
                elif isinstance(opened, Unfit):
                    await self._unfit(opened)
                else:
                    await self._model(opened)

    async def _note(self, note: Note) -> None:
        id = note.sender
        if note.samples:
            self.book.heard(note)
        if note.kind is Kind.HELLO:
            await self._hello(note)
        elif note.kind is Kind.BYE:
            self.attendance.go(id)
            await self._dismiss(id, "it said goodbye")
        elif id not in self.machine.members:
            await self.carrier.note(Kind.REJOIN, (id,))
        elif note.kind is Kind.DONE and self.gate is not None:
            if note.round <= self.gate.released:
                await self._go((id,))
            self.gate.reach(note)

    async def _hello(self, note: Note) -> None:
        id = note.sender
        if not self.reception.fits(note):
            event(log, logging.ERROR, "another network", learner=id)
            await self.carrier.note(Kind.REFUSED, (id,))
            return
        there = self.attendance.come(id)
        if not there:
            event(log, logging.INFO, "waiting", learner=id, awaited=self.attendance.awaited)
        await self._let_in(there)

    async def _let_in(self, ids: Iterable[int]) -> None:
        for id in ids:
            self._forget(id)
            await self._tell(Joined(id))
            event(log, logging.INFO, "joined", learner=id, members=len(self.machine.members))

    def _round_for(self, id: int) -> int:
        """From which round a learner that comes (back) in goes on."""
        if self.gate is not None:
            return self.gate.released
        known = self.book.progress.get(id)
        return 0 if known is None else known.round

    async def _model(self, sound: Sound) -> None:
        message = sound.message
        id, current = message.sender, message.epoch == self.machine.epoch
        violates = message.type is MessageType.VIOLATION
        unasked = violates or self._unasked
        if unasked and message.resolution < self.carrier.sent.get(id, 0):
            await self.carrier.send_again(id)
            return
        if violates:
            told: Event = Violated(id, message.epoch, message.weight)
        elif id in self.machine.awaited and (
            unasked or message.resolution == self.machine.resolutions
        ):
            told = Collected(self.machine.resolutions, (arrival_of(sound),))
        else:
            if unasked:
                self.carrier.early[id] = sound
            return
        models = self.carrier.holding.models
        new = current and id not in models
        if new:
            models[id] = sound.vector
            self._rounds[id] = message.round
        if not await self._tell(told) and new:
            models.pop(id, None)

    async def _unfit(self, unfit: Unfit) -> None:
        """Left out of 𝓑; it gets the reference, at once or at the end of the resolution."""
        id = unfit.message.sender
        self.book.refusal(id, unfit.why)
        event(log, logging.WARNING, "model refused", learner=id, why=unfit.why)
        if id in self.machine.awaited:
            await self._tell(Collected(self.machine.resolutions, refused=(id,)))
        else:
            await self.carrier.refresh(id, self.machine.epoch)

    async def _tell(self, told: Event) -> bool:
        """Tell the machine, and do what it says; False if it does not want to hear that now."""
        try:
            instructions = self.machine.handle(told)
        except IllegalEventError as error:
            event(log, logging.INFO, "not now", why=str(error))
            return False
        self.carrier.faults.passed(type(told).__name__)
        outcome = await self.carrier.carry_out(instructions)
        if outcome is not None:
            await self._conclude(outcome.round, outcome)
        return True

    async def _resolve_what_is_due(self) -> None:
        """Open resolutions for as long as there is something to resolve."""
        while self.attendance.started and self.machine.phase is Phase.IDLE:
            round = self._due()
            if round is None:
                break
            self.carrier.round = round
            self.minutes.open()
            before = self.machine.resolutions
            await self._tell(CheckDue(round))
            if self.machine.resolutions == before:  # nobody has anything to say
                await self._conclude(round, None)
        gate = self.gate
        if gate is not None and gate.begun and self._late != gate.next:
            self._late = gate.next
            self._in(self.config.barrier_seconds, partial(self._late_at, gate.next))

    def _due(self) -> int | None:
        """The round of a check that can be resolved now."""
        members = self.machine.members
        if self.gate is not None:
            return self.gate.next if members and not self.gate.missing(members) else None
        pending = self.machine.pending
        return max(self._rounds.get(id, 0) for id in pending) if pending else None

    async def _conclude(self, round: int, outcome: Outcome | None) -> None:
        """The check is over: write it down, and let everybody go on who stands still for it."""
        members = self.machine.members
        gate, distances = self.gate, None
        if gate is not None and self.task.operator.measures:
            distances = gate.distances(members) or None
        self.minutes.conclude(round, outcome, distances, len(members))
        if gate is not None:
            gate.release()
            await self._go(members)

    async def _go(self, ids: tuple[int, ...] | list[int]) -> None:
        if self.config.pace == "lockstep" and self.gate is not None:
            await self.carrier.note(Kind.GO, ids, self.gate.released)

    async def _expired(self, expired: Expired) -> None:
        """A collection has taken too long. Who did not come is out until it says hello again."""
        current = expired.resolution == self.machine.resolutions
        missing = self.machine.awaited if current else ()
        await self._tell(expired)
        for id in missing:
            await self._dismiss(id, "it did not send its model in time")

    async def _late_at(self, round: int) -> None:
        """The slowest learners have had their time to come to the check of this round."""
        gate = self.gate
        if gate is None or gate.next != round or self.machine.phase is not Phase.IDLE:
            return
        for id in gate.missing(self.machine.members):
            await self._dismiss(id, f"it did not come to the check of round {round} in time")

    async def _miss_the_silent(self) -> None:
        self._in(self.attendance.look_seconds, self._miss_the_silent)
        for id, seconds in self.attendance.silent(self.machine.members, time.monotonic()):
            await self._dismiss(id, f"nothing heard for {seconds:.1f} s")

    async def _dismiss(self, id: int, why: str) -> None:
        self._forget(id)
        if id in self.machine.members:
            event(log, logging.INFO, "left", learner=id, why=why)
            await self._tell(Left(id))

    def _forget(self, id: int) -> None:
        self.carrier.holding.drop((id,))
        self.carrier.early.pop(id, None)
        self.carrier.sent.pop(id, None)
        if self.gate is not None:
            self.gate.forget(id)

    def _finished(self) -> bool:
        if self.task.rounds is None or self.machine.phase is not Phase.IDLE:
            return False
        return self.attendance.finished(self.machine.members, time.monotonic())
