"""What outlives a crash, and when it is written down."""

import json

import pytest

from dynavg.operators import Dynamic
from dynavg.protocol.coordinator import Coordinator, Phase
from dynavg.protocol.messages import Aggregated, CheckDue, Joined, Left, Persist, Send, Violated
from tests.protocol.scenes import FAR, NEAR, OPERATOR, averaging, collecting, idle

DRAWING = Dynamic(delta=1, augmentation="random_one", counter="at_least")


def reborn(coordinator):
    written = json.loads(json.dumps(coordinator.snapshot()))
    return Coordinator.restore(
        coordinator.operator, written, seed=coordinator.seed, patience=coordinator.patience
    )


def some_history(members=range(6)):
    """Two partial resolutions, a newcomer and a leaver: v = 2, and nobody synchronised alike."""
    coordinator = Coordinator(DRAWING, members, seed=3, patience=4.0)
    for round, id in ((1, 2), (2, 4)):
        coordinator.handle(Violated(id, epoch=0))
        coordinator.handle(CheckDue(round))
        coordinator.handle(Aggregated(round, NEAR))
    coordinator.handle(Joined(11))
    coordinator.handle(Left(0))
    return coordinator


def test_a_snapshot_holds_what_the_protocol_remembers():
    assert some_history().snapshot() == {
        "members": [1, 2, 3, 4, 5, 11],
        "epoch": 0,
        "resolutions": 2,
        "last_synced": [[2, 1], [4, 2]],
        "operator": {"violations": 2, "fired": False},
    }


def test_a_restored_coordinator_is_idle_and_has_the_same_snapshot():
    coordinator = some_history()
    again = reborn(coordinator)
    assert again.snapshot() == coordinator.snapshot()
    assert (again.phase, again.awaited, again.pending) == (Phase.IDLE, (), {})
    assert (again.seed, again.patience) == (3, 4.0)


def test_a_restored_coordinator_goes_on_identically_draws_counter_and_all():
    first = some_history()
    second = reborn(first)
    events = [Violated(1, epoch=0), CheckDue(3), Aggregated(3, FAR)]
    for event in events:
        assert first.handle(event) == second.handle(event)
    assert first.awaited == second.awaited
    (awaited,) = first.awaited
    for event in [
        Violated(awaited, epoch=0),
        Aggregated(3, NEAR),
        Violated(2, epoch=0),
        Violated(3, epoch=0),
        CheckDue(4),
    ]:
        assert first.handle(event) == second.handle(event)
    # v = 2 + 1 + 1 crossed + 2 = 6 = m: the counter has called for everybody.
    assert len(first.awaited) == 4
    assert first.awaited == second.awaited


def test_the_seed_decides_the_draws():
    def drawn(seed):
        coordinator = Coordinator(DRAWING, range(1000), seed=seed)
        coordinator.handle(Violated(0, epoch=0))
        coordinator.handle(CheckDue(1))
        coordinator.handle(Aggregated(1, FAR))
        return coordinator.awaited

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


@pytest.mark.parametrize("scene", [averaging, collecting])
def test_an_open_resolution_is_lost_and_its_learners_may_speak_again(scene):
    coordinator = scene(0, 1)
    again = reborn(coordinator)
    assert again.phase is Phase.IDLE
    again.handle(Violated(0, epoch=1))
    (aggregate,) = again.handle(CheckDue(round=3))
    assert aggregate.ids == (0,)


def test_an_epoch_is_written_down_before_any_learner_gets_it():
    coordinator = averaging(0, 1, 2, 3)
    persist, send = coordinator.handle(Aggregated(2, NEAR))
    assert isinstance(persist, Persist)
    assert send == Send(2, (0, 1, 2, 3), as_reference=True, epoch=2)
    assert coordinator.snapshot()["epoch"] == 2


def test_an_ended_resolution_is_remembered_for_each_that_got_the_average():
    coordinator = idle()
    coordinator.handle(Violated(2, epoch=1))
    coordinator.handle(CheckDue(round=8))
    coordinator.handle(Aggregated(2, NEAR))
    assert coordinator.snapshot()["last_synced"] == [[0, 1], [1, 1], [2, 8], [3, 1]]


def test_a_snapshot_is_not_tied_to_the_coordinator_that_made_it():
    coordinator = idle()
    snapshot = coordinator.snapshot()
    coordinator.handle(Joined(8))
    assert snapshot["members"] == [0, 1, 2, 3]
    again = Coordinator.restore(OPERATOR, snapshot, seed=0)
    again.handle(Joined(9))
    assert snapshot["members"] == [0, 1, 2, 3]
    assert again.patience == 30.0
