"""Duplicated, delayed, reordered, truncated and lost messages: no deadlock, no broken model.

The office and the seats are the real ones; the network between them is played, so that a seed says
what goes wrong.
"""

import asyncio
import random
import time
from contextlib import suppress

import pytest
import torch

from dynavg.engines.fleet import office as office_module
from dynavg.engines.fleet.config import FleetConfig
from dynavg.engines.fleet.post import Traffic
from dynavg.engines.fleet.seat import Rules, Seat
from dynavg.engines.fleet.subjects import sender, up
from dynavg.engines.fleet.task import ModelTask
from dynavg.operators import Dynamic, FedAvg, Periodic
from dynavg.protocol.wire import WireError
from tests.fleet.nets import net
from tests.fleet.test_seat import Vector

LEARNERS, ROUNDS = 4, 40
SWIFT = {
    "collect_seconds": 0.2,
    "answer_seconds": 0.3,
    "barrier_seconds": 1.0,
    "join_seconds": 2.0,
    "silence_seconds": 3.0,
    "report_seconds": 0.2,
    "orphan_seconds": 5.0,
}


class Ether:
    """Carries bytes, badly."""

    def __init__(self, seed, badness):
        self.random = random.Random(seed)
        self.badness = badness
        self.players = {}
        self.office_hears = None

    def carry(self, hear, data):
        loop, draw = asyncio.get_running_loop(), self.random.random
        for _ in range(2 if draw() < self.badness else 1):
            if draw() < self.badness / 2:
                continue
            if draw() < self.badness / 2:
                data = data[: int(draw() * len(data))]
            late = draw() < self.badness
            loop.call_later(0.05 * draw() if late else 0.0, hear, data)


class PlayedPost:
    """What the office speaks into."""

    def __init__(self, ether, config, name, most, hear, returned):
        self.ether, self.traffic, self.wire_bytes = ether, Traffic(), None
        ether.office_hears = hear

    async def open(self, subjects):
        pass

    async def send(self, subject, data):
        player = self.ether.players[sender(subject)]
        self.ether.carry(player.hears, data)
        return True

    async def close(self):
        pass

    def note_wire_bytes(self):
        pass


class Player:
    """A learner that wanders about instead of learning."""

    def __init__(self, ether, config, operator, id):
        rules = Rules(config, operator, ModelTask(net, operator).start().layout, 4)
        self.seat = Seat(id, Vector(0.0, 0.0, 0.0, 0.0), rules)
        self.ether, self.config = ether, config
        self.draw = torch.Generator().manual_seed(id)
        self.heard_at = time.monotonic()

    def hears(self, data):
        self.heard_at = time.monotonic()
        with suppress(WireError):  # refused: as if it had never come
            self.says(self.seat.hear(data))

    def says(self, said):
        for data in said:
            subject = up(self.config, self.seat.id)
            self.ether.carry(lambda d, s=subject: self.ether.office_hears(s, d), data)

    async def live(self):
        self.says(self.seat.hello())
        while self.seat.round < ROUNDS or self.seat.waits_for_coordinator:
            await asyncio.sleep(0.002)
            if not self.seat.blocked and self.seat.round < ROUNDS:
                self.seat.body.numbers = self.seat.body.numbers + 0.2 * torch.randn(
                    4, generator=self.draw
                )
                self.says(self.seat.trained(1.0, 1, None))
            elif time.monotonic() - self.heard_at > self.config.orphan_seconds:
                break  # dismissed, and the coordinator has given it up
            elif time.monotonic() - self.seat.asked_at > self.config.answer_seconds:
                self.says(self.seat.again("no answer in time"))
        self.says(self.seat.bye())


async def run(office, players):
    coordinating = asyncio.create_task(office.run())
    await asyncio.sleep(0)
    await asyncio.gather(*(player.live() for player in players))
    await coordinating


OPERATORS = {
    "dynamic": Dynamic(0.5),
    "periodic": Periodic(10),
    "fedavg": FedAvg(10, 0.5, receivers="all"),
}


def endured(operator, pace, badness, seed, folder):
    """Run a fleet over a bad network, and see that nothing is broken; the coordinator's records."""
    config = FleetConfig(learners=LEARNERS, folder=folder, pace=pace, **SWIFT)
    ether = Ether(seed, badness)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(office_module, "Post", lambda *parts: PlayedPost(ether, *parts))
        office = office_module.Office(config, ModelTask(net, operator, rounds=ROUNDS))
    players = [Player(ether, config, operator, id) for id in range(LEARNERS)]
    ether.players = {player.seat.id: player for player in players}

    asyncio.run(asyncio.wait_for(run(office, players), 60))

    assert all(bool(player.seat.body.numbers.isfinite().all()) for player in players)
    assert all(player.seat.machine.epoch <= office.machine.epoch for player in players)
    references = {player.seat.machine.epoch: player.seat.reference for player in players}
    for player in players:
        assert torch.equal(player.seat.reference, references[player.seat.machine.epoch])
    return office.book


@pytest.mark.parametrize("badness", [0.0, 0.1, pytest.param(0.3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("pace", ["free", "lockstep"])
@pytest.mark.parametrize("name", OPERATORS)
def test_a_bad_network_costs_time_and_nothing_else(name, pace, badness, tmp_path):
    book = endured(OPERATORS[name], pace, badness, 7, tmp_path)
    assert len(book.checks) >= 1
    if not badness:
        assert book.refused == []
        assert all(check.cause != "abandoned" for check in book.checks[:-1])
