"""Real processes, killed and lied to: the others go on, and nothing hangs."""

import math
import multiprocessing
import os
import signal
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from dynavg.engines.fleet.control import Kind
from dynavg.engines.fleet.folder import load
from dynavg.protocol.messages import MessageType
from tests.fleet.fleets import join_all, small_fleet, until
from tests.fleet.havoc import Havoc, kill
from tests.fleet.proxy import Cable
from tests.fleet.rogue import Rogue
from tests.fleet.test_lockstep import simulated

pytestmark = pytest.mark.slow

FORKED = multiprocessing.get_context("forkserver")

LONG = {"rounds": 1500, "delta": 0.05, "every": 5}
SHORT = {"rounds": 12, "delta": 0.02, "every": 2, "seed": 3}


@pytest.mark.parametrize("pace", ["free", "lockstep"])
def test_the_others_finish_when_learners_are_killed_while_training(pace, tmp_path):
    with small_fleet(tmp_path, 4, LONG, pace=pace, barrier_seconds=2.0) as fleet:
        coordinator = fleet.coordinator()
        learners = fleet.one_each()
        until(lambda: fleet.saw("check"))
        kill(learners[1])
        del learners[1]
        assert join_all([coordinator, *learners]) == [0] * 4
        result = fleet.result()
    assert result.losses.rounds == 1500
    assert result.losses.samples[1].sum() < 15_000
    assert bool((result.losses.samples[[0, 2, 3]] == 10).all())


def test_a_killed_learner_comes_back_under_its_id_and_goes_on_from_the_reference(tmp_path):
    with small_fleet(tmp_path, 3, LONG | {"rounds": 3000}) as fleet:
        coordinator = fleet.coordinator()
        learners = fleet.one_each()
        until(lambda: fleet.saw("check"))
        kill(learners[0])
        before = len(fleet.saw("joined", 0))
        learners[:1] = fleet.learners(range(1))
        assert join_all([coordinator, *learners]) == [0] * 4
        assert len(fleet.saw("joined", 0)) > before


def test_a_learner_may_join_late(tmp_path):
    with small_fleet(tmp_path, 2, LONG | {"learners": 3}) as fleet:
        coordinator = fleet.coordinator()
        learners = fleet.learners(range(1), range(1, 2))
        until(lambda: fleet.saw("check"))
        learners += fleet.learners(range(2, 3))
        assert join_all([coordinator, *learners]) == [0] * 4
        assert bool((fleet.result().losses.samples[2] == 10).any())


def test_a_learner_killed_in_the_middle_of_a_balancing_is_left_out_after_the_deadline(tmp_path):
    """It hangs when it is asked, and never comes back."""
    with small_fleet(tmp_path, 3, LONG, silence_seconds=90.0) as fleet:
        coordinator = fleet.coordinator()
        learners = fleet.one_each()
        until(lambda: fleet.saw("check"))
        os.kill(learners[2].pid, signal.SIGSTOP)
        until(lambda: [check for check in fleet.saw("check") if check["missing"] == [2]])
        kill(learners.pop(2))
        assert join_all([coordinator, *learners]) == [0] * 3
        assert fleet.saw("left", 2, "did not send its model in time")


def dies_while_sending(folder, id):
    fleet = load(Path(folder))
    with Rogue(SimpleNamespace(config=fleet.config, task=fleet.task.make()), id) as dying:
        dying.join()
        for piece in dying.half(dying.violation()):
            dying.say(piece)
        dying.flush()
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_learner_killed_while_sending_leaves_nothing_behind(tmp_path):
    with small_fleet(tmp_path, 3, LONG, chunk_bytes=1024) as fleet:
        coordinator = fleet.coordinator()
        learners = fleet.learners(range(1), range(1, 2))
        dying = FORKED.Process(target=dies_while_sending, args=(str(fleet.folder), 2))
        dying.start()
        assert join_all([dying]) == [-signal.SIGKILL]
        assert join_all([coordinator, *learners]) == [0] * 3
        assert all(2 not in sum(check.stages, ()) for check in fleet.book().checks)


@pytest.mark.parametrize("point", ["Trained:50", "Heard:4"])
def test_a_learner_killed_in_the_middle_of_its_words_comes_back(point, tmp_path):
    """Its connection is a thread of its own: what it has just said may be half under way."""
    with small_fleet(tmp_path, 3, LONG, chunk_bytes=1024) as fleet:
        fleet.set(fail_at={"host-2": point})
        coordinator = fleet.coordinator()
        learners = fleet.one_each()
        assert join_all([learners.pop(2)]) == [-signal.SIGKILL]
        fleet.set(fail_at={})
        learners += fleet.learners(range(2, 3))
        assert join_all([coordinator, *learners]) == [0] * 4
        result = fleet.result()
    assert result.losses.samples[2].count_nonzero() > 1000
    assert bool(result.rows.isfinite().all())


@pytest.mark.parametrize("pace", ["free", "lockstep"])
def test_whoever_is_killed_at_random_moments_comes_back_and_all_go_on(pace, tmp_path):
    task = LONG | {"rounds": 1_000_000}
    with small_fleet(tmp_path, 3, task, pace=pace, chunk_bytes=1024) as fleet:
        havoc = Havoc(fleet, seed=2)
        until(lambda: fleet.saw("check"))
        havoc.kill_for(5.0)
        havoc.calm()
        for process in havoc.processes:
            process.terminate()
        assert join_all(havoc.processes) == [0] * 4
        assert min(havoc.deaths.values()) >= 1
        assert bool(fleet.result().rows.isfinite().all())
        assert all(fleet.config.learner_file(id).exists() for id in range(3))


POINTS = [
    "Joined:2",
    "Refresh:1",
    "Violated:1",
    "CheckDue:1",
    "Query:1",
    "Deadline:1",
    "Collected:1",
    "Aggregate:1",
    "Aggregate:2",
    "Persist:5",
    "Send:1",
    "Send:2",
]


@pytest.mark.parametrize("point", POINTS)
def test_a_coordinator_killed_anywhere_takes_up_and_no_decision_changes(point, tmp_path):
    with small_fleet(tmp_path, 4, SHORT, pace="lockstep") as fleet:
        fleet.set(fail_at={"coordinator": point})
        first = fleet.coordinator()
        learners = fleet.one_each()
        assert join_all([first]) == [-signal.SIGKILL]
        fleet.set(fail_at={})
        second = fleet.coordinator()
        assert join_all([second, *learners]) == [0] * 5
        ours, theirs = fleet.result(), simulated(fleet.task)
    decided = ["round", "violations", "balancing_set", "full", "cause", "stages", "receivers"]
    assert ours.history.checks.select(decided).equals(theirs.history.checks.select(decided))
    torch.testing.assert_close(ours.rows, theirs.rows)
    assert ours.bytes() >= theirs.bytes()


def test_a_coordinator_killed_in_free_pace_comes_back_and_learners_train_meanwhile(tmp_path):
    with small_fleet(tmp_path, 3, LONG) as fleet:
        fleet.set(fail_at={"coordinator": "Aggregate:3"})
        first = fleet.coordinator()
        learners = fleet.one_each()
        assert join_all([first]) == [-signal.SIGKILL]
        before = fleet.book()
        fleet.set(fail_at={})
        assert join_all([fleet.coordinator(), *learners]) == [0] * 4
        after = fleet.book()
    assert after.checks[: len(before.checks)] == before.checks
    assert after.ledger.rows()[: len(before.ledger)] == before.ledger.rows()
    assert bool((fleet.result().losses.samples == 10).all())


@pytest.mark.parametrize("pace", ["free", "lockstep"])
def test_a_broker_that_restarts_costs_nothing_but_time(pace, tmp_path):
    with small_fleet(tmp_path, 3, LONG | {"rounds": 800}, pace=pace) as fleet:
        coordinator = fleet.coordinator()
        learners = fleet.one_each()
        until(lambda: fleet.saw("check"))
        fleet.restart_broker(pause=1.0)
        assert join_all([coordinator, *learners]) == [0] * 4
        assert fleet.saw("broker back")
        assert bool((fleet.result().losses.samples == 10).all())


def test_lies_are_refused_and_change_nothing(tmp_path):
    """Stale epochs, NaN, wrong sizes, foreign ids, other runs, replays, damage, nonsense."""
    with small_fleet(tmp_path, 3, LONG) as fleet:
        coordinator = fleet.coordinator()
        with Rogue(fleet, 2) as liar:
            learners = fleet.learners(range(1), range(1, 2))
            liar.join()
            once = liar.violation(epoch=99)
            lies = {
                "heard before": [once, once],
                "not finite": [liar.violation(np.full(liar.layout.parameters, math.nan))],
                "another network": [liar.violation(signature=1)],
                "a payload of": [liar.violation(np.zeros(3))],
                "a forgery": [liar.violation(sender=0)],
                "run and group": [liar.violation(run=7)],
                "checksum": [liar.violation()[:-1] + b"\xff"],
                "bytes, but the header": [b"nonsense"],
                "magic": [bytes(200)],
                "not its to send": [liar.note(Kind.GO)],
                "are believed": [liar.violation(round=1 << 63), liar.violation(weight=1e300)],
            }
            for said in lies.values():
                for data in said:
                    liar.say(data)
            liar.say(liar.violation(type=MessageType.REPLY, resolution=12345))
            liar.say(liar.violation(np.zeros(liar.layout.parameters + 1)))
            until(lambda: len(fleet.book().refused_for(2)) >= 10)
            until(lambda: any("at most" in line.get("why", "") for line in fleet.saw("refused")))
            liar.say(liar.note(Kind.BYE))
        assert join_all([coordinator, *learners]) == [0] * 3
        reasons = fleet.book().refused_for(2)
    for wanted in lies:
        assert any(wanted in why for why in reasons), wanted
    assert all(2 not in sum(check.stages, ()) for check in fleet.book().checks)


def test_with_a_third_killed_the_rest_finish_with_the_loss_they_would_have_had(tmp_path):
    task = LONG | {"rounds": 600, "seed": 1}
    losses = []
    for victims in ((), (2, 5)):
        with small_fleet(tmp_path / str(len(victims)), 6, task, pace="lockstep") as fleet:
            coordinator = fleet.coordinator()
            learners = fleet.one_each()
            until(lambda fleet=fleet: len(fleet.saw("check")) > 20)
            for victim in victims:
                kill(learners[victim])
            rest = [one for id, one in enumerate(learners) if id not in victims]
            assert join_all([coordinator, *rest]) == [0] * (7 - len(victims))
            spared = fleet.result().losses.losses[[0, 1, 3, 4]]
            losses.append(float(spared[:, -200:].double().mean()))
    undisturbed, disturbed = losses
    assert disturbed == pytest.approx(undisturbed, rel=0.02)


def test_a_learner_whose_cable_is_cut_for_a_while_comes_back_by_itself(tmp_path):
    """It trains on, says what it has to say into the void, and starts anew from the reference."""
    task = {"learners": 3, "rounds": 1_000_000}
    with (
        small_fleet(tmp_path, 2, LONG | task, orphan_seconds=60.0) as fleet,
        Cable(fleet.port) as cable,
    ):
        coordinator = fleet.coordinator()
        learners = fleet.learners(range(1), range(1, 2))
        until(lambda: len(fleet.saw("joined")) == 2)  # they have read the broker's address
        fleet.set(url=f"nats://127.0.0.1:{cable.port}")
        learners += fleet.learners(range(2, 3))
        until(lambda: fleet.saw("joined", 2))
        cable.cut()
        until(lambda: fleet.saw("left", 2))
        cable.mend()
        until(lambda: len(fleet.saw("joined", 2)) > 1)
        checks = len(fleet.book().checks)
        until(lambda: len(fleet.book().checks) > checks + 5)
        for process in (*learners, coordinator):
            process.terminate()
        assert join_all([coordinator, *learners]) == [0] * 4
        samples = fleet.result().losses.samples[2]
        later = [check for check in fleet.book().checks[checks:] if 2 in sum(check.stages, ())]
    rounds = int(samples.count_nonzero())
    assert bool((samples[:rounds] == 10).all())
    assert later
