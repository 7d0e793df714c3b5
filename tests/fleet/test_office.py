"""The coordinator's office, over a post that only writes down what it is given."""

import asyncio
import itertools
from contextlib import suppress

import pytest
import torch

from dynavg.engines.fleet import office as office_module
from dynavg.engines.fleet.config import FleetConfig
from dynavg.engines.fleet.control import Kind, Note, decode_note, encode_note, is_note
from dynavg.engines.fleet.post import Traffic
from dynavg.engines.fleet.subjects import sender, up
from dynavg.engines.fleet.task import ModelTask
from dynavg.operators import Dynamic
from dynavg.protocol.messages import MessageType
from dynavg.protocol.wire import Codec, Message, decode, encode
from tests.fleet.nets import net

OPERATOR = Dynamic(0.5, augmentation="all", counter="off")


class WrittenPost:
    """What the office speaks into."""

    def __init__(self, config, name, most, hear, returned):
        self.hear, self.sent = hear, []
        self.traffic, self.wire_bytes = Traffic(), None

    async def open(self, subjects):
        pass

    async def send(self, subject, data):
        self.sent.append((sender(subject), decode_note(data) if is_note(data) else decode(data)))
        return True

    async def close(self):
        pass

    def note_wire_bytes(self):
        pass


class Desk:
    """An office, and learners that a test plays by hand."""

    def __init__(self, folder, pace):
        self.config = FleetConfig(learners=3, folder=folder, pace=pace)
        self.office = office_module.Office(self.config, ModelTask(net, OPERATOR))
        self.post = self.office.post
        self.start = self.office.carrier.holding.reference.clone()
        self._numbers = itertools.count(1)

    async def __aenter__(self):
        self._running = asyncio.create_task(self.office.run())
        for id in range(3):
            await self.note(id, Kind.HELLO)
        return self

    async def __aexit__(self, *error):
        self._running.cancel()
        with suppress(asyncio.CancelledError):
            await self._running

    async def note(self, id, kind, **fields):
        await self._say(id, encode_note(Note(kind, id, **self._facts(), **fields)))

    async def model(self, id, type, moved, **fields):
        """A model that has moved from the initial one along the first coordinate."""
        vector = self.start.clone()
        vector[0] += moved
        payload = {"codec": Codec.FLOAT32, "payload": vector.numpy().tobytes()}
        await self._say(id, encode(Message(type, id, **self._facts(), **payload, **fields)))

    def heard_by(self, id):
        """The protocol's messages that learner `id` has got."""
        return [said for to, said in self.post.sent if to == id and isinstance(said, Message)]

    def _facts(self):
        signature = self.office.carrier.layout.signature
        number = next(self._numbers)
        return {"run": self.config.run_number, "signature": signature, "sequence": number}

    async def _say(self, id, data):
        self.post.hear(up(self.config, id), data)
        await asyncio.sleep(0.02)
        await asyncio.to_thread(lambda: None)  # behind the average, if one is being made
        await asyncio.sleep(0.02)


@pytest.fixture(autouse=True)
def no_broker(monkeypatch):
    monkeypatch.setattr(office_module, "Post", WrittenPost)


async def balanced(desk):
    """Learner 0 violates, the others bring it back into the ball."""
    await desk.model(0, MessageType.VIOLATION, 1.0, round=1)
    if desk.config.pace == "lockstep":
        for id in range(3):
            await desk.note(id, Kind.DONE, round=1, samples=1)
    for id in (1, 2):
        await desk.model(id, MessageType.REPLY, -0.4, round=1, resolution=1)
    assert [check.cause for check in desk.office.book.checks] == ["exhausted"]


@pytest.mark.parametrize("pace", ["free", "lockstep"])
def test_a_word_said_again_while_its_answer_was_on_the_way_is_void(pace, tmp_path):
    async def play():
        async with Desk(tmp_path, pace) as desk:
            await desk.model(0, MessageType.VIOLATION, 1.0, round=1)
            await balanced(desk)
            before = [message.resolution for message in desk.heard_by(0)]
            epoch = desk.office.machine.epoch
            await desk.model(0, MessageType.VIOLATION, 1.0, round=1, epoch=epoch)
            assert desk.office.machine.pending == {}
            assert len(desk.office.book.checks) == 1
            return before, desk.heard_by(0)

    before, after = asyncio.run(play())
    assert before == [0, 1]  # the initial model, and the average
    assert [message.resolution for message in after] == [0, 1, 1]
    assert after[1].payload == after[2].payload
    assert torch.frombuffer(bytearray(after[2].payload), dtype=torch.float32).isfinite().all()


def test_a_word_said_after_the_average_was_taken_over_counts(tmp_path):
    async def play():
        async with Desk(tmp_path, "free") as desk:
            await balanced(desk)
            epoch = desk.office.machine.epoch
            await desk.model(0, MessageType.VIOLATION, 1.0, round=2, epoch=epoch, resolution=1)
            return desk.office.machine.awaited

    assert asyncio.run(play()) == (1, 2)


def test_who_said_hello_before_there_was_a_coordinator_is_called(tmp_path, monkeypatch):
    monkeypatch.setattr(office_module, "INVITE_SECONDS", 0.05)

    async def play():
        desk = Desk(tmp_path, "free")
        running = asyncio.create_task(desk.office.run())
        await asyncio.sleep(0)
        await desk.note(1, Kind.HELLO)
        await asyncio.sleep(0.1)
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        return [to for to, said in desk.post.sent if isinstance(said, Note)]

    assert asyncio.run(play()) == [0, 2]


def test_a_learner_that_comes_in_during_a_resolution_changes_no_round_of_it(tmp_path):
    async def play():
        async with Desk(tmp_path, "lockstep") as desk:
            await desk.model(0, MessageType.VIOLATION, 1.0, round=1)
            for id in range(3):
                await desk.note(id, Kind.DONE, round=1, samples=1)
            await desk.note(7, Kind.HELLO)
            for id in (1, 2):
                await desk.model(id, MessageType.REPLY, -0.4, round=1, resolution=1)
            return desk.office.book.ledger.columns()["round"].tolist()

    assert set(asyncio.run(play())) == {1}
