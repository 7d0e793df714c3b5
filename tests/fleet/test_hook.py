"""`dynavg.fleet.Learner` around a training loop of the user's own."""

import copy
import threading

import pytest
import torch

from dynavg.engines.fleet import running
from dynavg.engines.fleet.broker import BROKER_FILE, broker, free_port
from dynavg.engines.fleet.config import FleetConfig
from dynavg.engines.fleet.folder import init, load
from dynavg.engines.fleet.gathering import read_book
from dynavg.engines.fleet.office import Office
from dynavg.engines.fleet.task import TaskSource
from dynavg.fleet import Learner, learner_config
from tests.fleet.fleets import SWIFT
from tests.fleet.nets import net, own_loops


@pytest.fixture
def folder(tmp_path):
    source = TaskSource(factory="tests.fleet.nets:own_loops")
    port = free_port()
    settings = FleetConfig(learners=2, while_waiting="wait", **(SWIFT | {"join_seconds": 1.0}))
    fleet = init(tmp_path / "fleet", settings, source, port=port)
    with broker(tmp_path / "fleet" / BROKER_FILE, port):
        office = Office(fleet.config, own_loops())
        thread = threading.Thread(target=lambda: running.asyncio.run(office.run()))
        thread.start()
        yield tmp_path / "fleet"
        office.stop()
        thread.join(10)
        assert not thread.is_alive()


def train(learner, model, optimizer, target, rounds, ready):
    draw = torch.Generator().manual_seed(target)
    with learner:
        started = copy.deepcopy(model.state_dict())
        ready.wait(20)
        for _ in range(rounds):
            x = torch.randn(4, 3, generator=draw)
            optimizer.zero_grad()
            (model(x) - target).pow(2).mean().backward()
            optimizer.step()
    return started


def test_loops_of_ones_own_start_alike_and_are_drawn_together(folder):
    torch.manual_seed(5)
    models = [net(), net()]
    assert not torch.equal(models[0].weight, models[1].weight)
    ready = threading.Barrier(2)
    started = [None, None]

    def run(id):
        optimizer = torch.optim.SGD(models[id].parameters(), lr=0.05)
        learner = Learner(learner_config(folder, id), models[id], optimizer)
        started[id] = train(learner, models[id], optimizer, 2 * id - 1, 200, ready)

    threads = [threading.Thread(target=run, args=(id,)) for id in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert torch.equal(started[0]["weight"], started[1]["weight"])
    book = read_book(load(folder).config)
    assert any(check.balancing_set == 2 for check in book.checks)
    assert abs(models[0].bias.item() - models[1].bias.item()) < 1.5  # alone they end 2 apart


def test_after_the_block_the_loop_goes_on_alone(folder):
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    learner = Learner(learner_config(folder, 0), model, optimizer)
    train(learner, model, optimizer, 1, 3, threading.Barrier(1))
    assert learner.seat.round == 3
    optimizer.step()
    assert learner.seat.round == 3


def test_nobody_hangs_without_a_coordinator(tmp_path):
    source = TaskSource(factory="tests.fleet.nets:own_loops")
    port = free_port()
    short = SWIFT | {"orphan_seconds": 0.5, "answer_seconds": 0.2}
    init(tmp_path / "fleet", FleetConfig(learners=1, **short), source, port=port)
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    learner = Learner(learner_config(tmp_path / "fleet", 0), model, optimizer)
    with (
        broker(tmp_path / "fleet" / BROKER_FILE, port),
        pytest.raises(TimeoutError, match="no word from the coordinator"),
        learner,
    ):
        pass
