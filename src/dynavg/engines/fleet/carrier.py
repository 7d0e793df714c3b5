"""What the coordinator's instructions mean between real processes: one method for each of them."""

import asyncio
import itertools
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor

from dynavg.engines.fleet.book import Book
from dynavg.engines.fleet.config import FleetConfig
from dynavg.engines.fleet.control import Kind, Note, encode_note
from dynavg.engines.fleet.faults import Faults
from dynavg.engines.fleet.holding import Holding
from dynavg.engines.fleet.journal import Journal
from dynavg.engines.fleet.logs import event
from dynavg.engines.fleet.post import Post
from dynavg.engines.fleet.reception import Sound
from dynavg.engines.fleet.subjects import down
from dynavg.learning.codecs import codec_for
from dynavg.learning.layout import Layout
from dynavg.protocol.coordinator import Coordinator
from dynavg.protocol.messages import (
    COORDINATOR,
    Aggregate,
    Aggregated,
    Arrival,
    Collected,
    Deadline,
    Expect,
    Expired,
    Instruction,
    MessageType,
    Outcome,
    Persist,
    Query,
    Refresh,
    Send,
)
from dynavg.protocol.wire import Codec, Message, encode

__all__ = ["Carrier"]

log = logging.getLogger(__name__)


class Carrier:
    """Hands, to the coordinator's head. `round` is the check that is being resolved; `early` are
    models that came unasked before they were expected; `sent` is the last resolution whose average
    each learner was sent.
    """

    def __init__(
        self,
        config: FleetConfig,
        layout: Layout,
        machine: Coordinator,
        holding: Holding,
        book: Book,
        post: Post,
        journal: Journal,
    ) -> None:
        self.config = config
        self.layout = layout
        self.machine = machine
        self.holding = holding
        self.book = book
        self.post = post
        self.journal = journal
        self.faults = Faults(config.fail_at, "coordinator")
        self.round = 0
        self.early: dict[int, Sound] = {}
        self.expired: Callable[[Expired], None] = lambda _: None
        self.extra: Callable[[], dict[str, Any]] = dict
        self.starts: Callable[[int], int] = lambda _: 0
        self.small_talk = 0
        self.sent: dict[int, int] = {}
        self._last: tuple[Send, int] | None = None
        self._numbers = itertools.count(time.time_ns())
        self._reference_from = 0

    async def carry_out(self, instructions: Sequence[Instruction]) -> Outcome | None:
        """Do all of it, in order; the outcome, if the resolution came to one."""
        todo = deque(instructions)
        outcome = None
        while todo:
            instruction = todo.popleft()
            match instruction:
                case Query(resolution, ids):
                    await self._query(resolution, ids)
                case Expect(resolution, ids):
                    todo.extend(self._expect(resolution, ids))
                case Deadline(resolution, seconds):
                    loop = asyncio.get_running_loop()
                    loop.call_later(seconds, self.expired, Expired(resolution))
                case Aggregate():
                    todo.extend(self.machine.handle(await self._aggregate(instruction)))
                case Send():
                    await self._send(instruction, self.round)
                case Refresh(id, epoch):
                    await self.refresh(id, epoch)
                case Persist():
                    self._persist(instruction.outcome)
                    outcome = instruction.outcome or outcome
            self.faults.passed(type(instruction).__name__)
        return outcome

    def restore(self, outcome: Outcome | None, reference_from: int) -> None:
        """Take up the averages that the journal kept."""
        self._reference_from = reference_from
        if reference_from:
            self.holding.reference = self.journal.kept(reference_from)
        if outcome is not None and outcome.receivers:
            self.holding.average = self.journal.kept(outcome.resolution)

    async def resend(self, outcome: Outcome) -> None:
        """Send what a coordinator owed that died before it could, or before it knew that it had."""
        if outcome.receivers:
            what = outcome.resolution, outcome.receivers, outcome.as_reference, self.machine.epoch
            await self._send(Send(*what), outcome.round)

    async def send_again(self, id: int) -> None:
        """The average that this learner had not taken over when it spoke: lost, or on its way, and
        then it does not take it twice. Where there is a newer one, the reference, unless nobody can
        be that far behind. Its word is void, so it is asked again if it was a reply.
        """
        order, round = self._last or (None, 0)
        if order is not None and order.resolution == self.sent[id]:
            await self._send(replace(order, ids=(id,)), round)
        elif self.config.pace == "free":
            await self.refresh(id, self.machine.epoch)
        if id in self.machine.awaited:
            await self._query(self.machine.resolutions, (id,))

    async def note(self, kind: Kind, ids: Sequence[int], round: int = 0) -> None:
        """A note to these learners."""
        for id in ids:
            words = Note(
                kind,
                COORDINATOR,
                round=round,
                sequence=next(self._numbers),
                run=self.config.run_number,
                group=self.config.group,
                signature=self.layout.signature,
            )
            data = encode_note(words)
            if await self.post.send(down(self.config, id), data):
                self.small_talk += len(data)

    async def refresh(self, id: int, epoch: int) -> None:
        """The current reference for one learner, and the round from which to go on."""
        at = self.starts(id)
        self.sent.pop(id, None)
        data = self._model(self.holding.reference, 0, at, as_reference=True, epoch=epoch)
        if await self.post.send(down(self.config, id), data):
            self.book.handout(at, id, len(data))

    async def _query(self, resolution: int, ids: Sequence[int]) -> None:
        message = Message(
            MessageType.QUERY,
            COORDINATOR,
            round=self.round,
            resolution=resolution,
            epoch=self.machine.epoch,
            sequence=next(self._numbers),
            run=self.config.run_number,
            group=self.config.group,
            signature=self.layout.signature,
        )
        await self._say(MessageType.QUERY, ids, encode(message), self.round)

    def _expect(self, resolution: int, ids: Sequence[int]) -> Sequence[Instruction]:
        here = [self.early.pop(id) for id in ids if id in self.early]
        self.holding.models |= {sound.message.sender: sound.vector for sound in here}
        got = tuple(arrival_of(sound) for sound in here)
        return self.machine.handle(Collected(resolution, got)) if got else ()

    async def _aggregate(self, order: Aggregate) -> Aggregated:
        self._last = None
        await asyncio.to_thread(self.holding.mean, order.ids, order.weights)
        if not order.measure:
            return Aggregated(order.resolution)
        distance = await asyncio.to_thread(self.holding.distance, self.layout.parameters)
        return Aggregated(order.resolution, {"distance": distance})

    async def _send(self, order: Send, round: int) -> None:
        """Line 4."""
        average = self.holding.average
        assert average is not None, "the coordinator averages before it sends"
        self._last = order, round
        self.sent |= dict.fromkeys(order.ids, order.resolution)
        data = self._model(average, order.resolution, round, order.as_reference, order.epoch)
        await self._say(MessageType.MODEL, order.ids, data, round)

    def _persist(self, outcome: Outcome | None) -> None:
        """The average is on the disk before the line that speaks of it."""
        if outcome is not None and outcome.receivers:
            average = self.holding.average
            assert average is not None, "who has receivers has an average"
            self.journal.keep(outcome.resolution, average)
            if outcome.as_reference:
                self.holding.reference = average
                self._reference_from = outcome.resolution
        state = {"reference_from": self._reference_from, **self.extra()}
        self.book.persist(self.machine.snapshot() | state, outcome)
        if outcome is not None:
            self.journal.forget_all_but({self._reference_from, outcome.resolution})
            keep = self.machine.pending
            self.holding.drop([id for id in self.holding.models if id not in keep])

    async def _say(self, type: MessageType, ids: Sequence[int], data: bytes, round: int) -> None:
        said = [id for id in ids if await self.post.send(down(self.config, id), data)]
        self.book.message(round, type, said, len(data))
        event(log, logging.DEBUG, "said", type=type.name, ids=said, bytes=len(data))

    def _model(
        self, vector: Tensor, resolution: int, round: int, as_reference: bool, epoch: int
    ) -> bytes:
        codec = codec_for(self.layout.dtype)
        message = Message(
            MessageType.MODEL,
            COORDINATOR,
            round=round,
            resolution=resolution,
            epoch=epoch,
            sequence=next(self._numbers),
            run=self.config.run_number,
            group=self.config.group,
            signature=self.layout.signature,
            codec=Codec(codec.id),
            as_reference=as_reference,
            payload=codec.encode(vector),
        )
        return encode(message)


def arrival_of(sound: Sound) -> Arrival:
    """What the coordinator's head needs to know of a model that has come."""
    message = sound.message
    return Arrival(message.sender, message.epoch, message.weight)
