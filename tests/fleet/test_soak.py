"""`make soak`: faults for minutes and with real deadlines, at moments that no test has chosen.

Every test prints what it did and the seed that it drew; SOAK_SEED=… draws the same again, as far as
processes let one.
"""

import os
import random
import signal
import time

import pytest
import torch

from dynavg.engines.fleet.config import FleetConfig
from tests.fleet.fleets import SWIFT, join_all, small_fleet, until
from tests.fleet.havoc import Havoc, kill
from tests.fleet.proxy import Cable
from tests.fleet.test_bad_network import OPERATORS, endured
from tests.fleet.test_lockstep import simulated

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]

TASK = {"rounds": 1_000_000, "delta": 0.05, "every": 5}
FIELDS = FleetConfig.model_fields
REAL = {name: FIELDS[name].default for name in SWIFT}


@pytest.fixture
def seed():
    drawn = int(os.environ.get("SOAK_SEED", time.time_ns() % 1_000_000))
    print(f"SOAK_SEED={drawn}")
    return drawn


def ended_in_order(fleet, processes):
    """SIGTERM to everyone: all is saved, and every exit code is 0."""
    for process in processes:
        process.terminate()
    assert join_all(processes) == [0] * len(processes)
    result = fleet.result()
    assert bool(result.rows.isfinite().all())
    assert all(fleet.config.learner_file(id).exists() for id in range(fleet.config.learners))
    return result


@pytest.mark.parametrize("pace", ["free", "lockstep"])
def test_a_broker_away_for_five_seconds_costs_nothing_but_time(pace, tmp_path):
    with small_fleet(tmp_path, 4, TASK, tls=True, pace=pace, **REAL) as fleet:
        coordinator = fleet.coordinator()
        learners = fleet.one_each()
        until(lambda: len(fleet.saw("check")) > 20)
        before = len(fleet.book().checks)
        fleet.restart_broker(pause=5.0)
        back = time.monotonic()
        until(lambda: len(fleet.book().checks) > before + 20, 60.0)
        print(f"20 checks {time.monotonic() - back:.1f} s after the broker was back")
        assert fleet.book().state["members"] == [0, 1, 2, 3]
        samples = ended_in_order(fleet, [coordinator, *learners]).losses.samples
    for row in samples:
        assert bool((row[: int(row.count_nonzero())] == 10).all())  # no batch lost, none twice


def test_a_learner_cut_off_for_thirty_seconds_comes_back(tmp_path):
    """It trains on; the others go on without it."""
    settings = REAL | {"collect_seconds": 10.0, "report_seconds": 5.0, "silence_seconds": 15.0}
    with (
        small_fleet(tmp_path, 4, TASK, tls=True, **settings) as fleet,
        Cable(fleet.port) as cable,
    ):
        processes = [fleet.coordinator(), *fleet.learners(*(range(i, i + 1) for i in range(3)))]
        until(lambda: len(fleet.saw("waiting")) == 3)
        fleet.set(url=f"tls://127.0.0.1:{cable.port}")
        processes += fleet.learners(range(3, 4))
        until(lambda: fleet.saw("joined", 3))
        cable.cut()
        cut = time.monotonic()
        until(lambda: fleet.saw("left", 3), 30.0)
        left = time.monotonic()
        checks = len(fleet.book().checks)
        time.sleep(30.0 - (left - cut))
        without = len(fleet.book().checks) - checks
        cable.mend()
        mended = time.monotonic()
        until(lambda: len(fleet.saw("joined", 3)) > 1, 60.0)
        print(f"out after {left - cut:.1f} s, {without} checks without it, ", end="")
        print(f"in again {time.monotonic() - mended:.1f} s after the cable was mended")
        assert without > 10
        ended_in_order(fleet, processes)


@pytest.mark.parametrize("pace", ["free", "lockstep"])
def test_a_minute_of_kills_at_random_moments(pace, seed, tmp_path):
    with small_fleet(tmp_path, 5, TASK, tls=True, pace=pace, chunk_bytes=1024) as fleet:
        havoc = Havoc(fleet, seed)
        until(lambda: fleet.saw("check"))
        havoc.kill_for(60.0)
        havoc.calm()
        print(f"killed: {havoc.deaths}; {len(fleet.book().checks)} checks")
        ended_in_order(fleet, havoc.processes)


NAMES = ["Violated", "CheckDue", "Query", "Deadline", "Collected", "Aggregate", "Persist", "Send"]


def test_a_coordinator_killed_again_and_again_takes_every_decision_of_an_undisturbed_run(
    seed, tmp_path
):
    draw = random.Random(seed)
    task = {"rounds": 60, "delta": 0.02, "every": 2, "seed": 3}
    plans = []
    with small_fleet(tmp_path, 4, task, pace="lockstep") as fleet:
        learners, code = [], -signal.SIGKILL
        while code == -signal.SIGKILL:
            plans.append(f"{draw.choice(NAMES)}:{draw.randint(1, 8)}")
            fleet.set(fail_at={"coordinator": plans[-1]})
            coordinator = fleet.coordinator()
            learners = learners or fleet.one_each()
            (code,) = join_all([coordinator])
        assert join_all(learners) == [0] * 4
        ours, theirs = fleet.result(), simulated(fleet.task)
    print(f"killed {len(plans) - 1} times, at {', '.join(plans[:-1])}")
    decided = ["round", "violations", "balancing_set", "full", "cause", "stages", "receivers"]
    assert ours.history.checks.select(decided).equals(theirs.history.checks.select(decided))
    torch.testing.assert_close(ours.rows, theirs.rows)


@pytest.mark.parametrize("pace", ["free", "lockstep"])
def test_a_minute_of_bad_networks(pace, seed, tmp_path):
    end, played, refused = time.monotonic() + 60.0, 0, 0
    while time.monotonic() < end:
        for name, operator in OPERATORS.items():
            book = endured(operator, pace, 0.3, seed + played, tmp_path / f"{name}-{played}")
            refused += len(book.refused)
            played += 1
    print(f"{played} fleets, {refused} messages refused")
    assert refused > 0


@pytest.mark.parametrize("pace", ["free", "lockstep"])
def test_with_three_of_ten_killed_the_rest_lose_no_more_than_they_would_have(pace, seed, tmp_path):
    draw = random.Random(seed)
    victims = draw.sample(range(10), 3)
    rest = [id for id in range(10) if id not in victims]
    task = TASK | {"rounds": 1500, "seed": 1}
    losses = []
    for disturbed in (False, True):
        with small_fleet(tmp_path / str(disturbed), 10, task, pace=pace) as fleet:
            coordinator = fleet.coordinator()
            learners = fleet.one_each()
            until(lambda fleet=fleet: len(fleet.saw("check")) > 5, 60.0)
            for victim in victims if disturbed else ():
                time.sleep(draw.uniform(0.0, 0.5))
                kill(learners[victim])
            left = [learners[id] for id in rest] if disturbed else learners
            assert join_all([coordinator, *left], 120.0) == [0] * (1 + len(left))
            result = fleet.result()
            assert bool((result.losses.samples[rest] == 10).all())
            losses.append(float(result.losses.losses[rest, -500:].double().mean()))
    undisturbed, disturbed = losses
    print(f"without {victims}: loss {disturbed:.4f}, with them {undisturbed:.4f}: ", end="")
    print(f"{disturbed / undisturbed - 1:+.2%}")
    if pace == "lockstep":  # else the machine's load says who is averaged with whom, and when
        assert disturbed == pytest.approx(undisturbed, rel=0.02)
