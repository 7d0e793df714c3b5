"""In lockstep, processes and the simulation do the same."""

import pytest
import torch
from polars.testing import assert_frame_equal

import dynavg
from tests.fleet.fleets import join_all, small_fleet

OPERATORS = {
    "dynamic": {"kind": "dynamic", "delta": 0.05, "every": 2},
    "samples": {"kind": "dynamic", "delta": 0.1, "weights": "samples", "augmentation": "all"},
    "periodic": {"kind": "periodic", "every": 5},
    "fedavg": {"kind": "fedavg", "every": 5, "fraction": 0.4},
    "fedavg to all": {"kind": "fedavg", "every": 5, "fraction": 0.4, "receivers": "all"},
    "nosync": {"kind": "nosync"},
}
DISTANCES = ["distance_min", "distance_median", "distance_max"]


def simulated(task):
    return dynavg.simulate(
        model=task.model,
        loss=task.learning.loss,
        optimizer=task.learning.optimizer,
        streams=task.streams,
        operator=task.operator,
        rounds=task.rounds,
        seed=task.seed,
        shard="looped",
        progress=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATORS)
def test_eight_processes_decide_send_and_learn_what_the_simulation_does(name, tmp_path):
    task = {"rounds": 40, "seed": 3} | OPERATORS[name]
    with small_fleet(tmp_path, 8, task, pace="lockstep") as fleet:
        coordinator = fleet.coordinator()
        learners = fleet.one_each()
        assert len({process.pid for process in (coordinator, *learners)}) == 9
        assert join_all([coordinator, *learners]) == [0] * 9
        ours, theirs = fleet.result(), simulated(fleet.task)
    assert ours.ledger.equals(theirs.ledger)
    assert ours.history.checks.drop(DISTANCES).equals(theirs.history.checks.drop(DISTANCES))
    assert_frame_equal(
        ours.history.checks.select(DISTANCES), theirs.history.checks.select(DISTANCES)
    )
    end = fleet.saw("finished")
    (crossed,) = (line for line in end if "crossed_bytes" in line)
    assert crossed["crossed_bytes"] == ours.bytes() + crossed["handed_out"] + crossed["small_talk"]
    torch.testing.assert_close(ours.rows, theirs.rows)
    torch.testing.assert_close(ours.losses.losses, theirs.losses.losses)
    assert name == "nosync" or ours.bytes() > 0
