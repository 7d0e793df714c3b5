"""Learners come, go and return, in the middle of everything."""

import pytest

from dynavg.operators import Periodic
from dynavg.protocol.coordinator import Coordinator, Phase
from dynavg.protocol.messages import (
    Aggregate,
    Aggregated,
    Cause,
    CheckDue,
    Collected,
    Joined,
    Left,
    Persist,
    Query,
    Refresh,
    Violated,
)
from tests.protocol.scenes import FAR, NEAR, averaging, came, collecting, everything, idle


def test_a_newcomer_gets_the_reference_at_once_while_nothing_is_open():
    coordinator = idle()
    assert coordinator.handle(Joined(9)) == (Persist(), Refresh(9, 1))
    assert coordinator.members == [0, 1, 2, 3, 9]


def test_members_stay_in_order_whoever_comes():
    coordinator = idle(members=(5, 8))
    coordinator.handle(Joined(6))
    coordinator.handle(Joined(1))
    assert coordinator.members == [1, 5, 6, 8]


@pytest.mark.parametrize("scene", [collecting, averaging])
def test_a_newcomer_during_a_resolution_takes_no_part_and_gets_the_reference_at_its_end(scene):
    coordinator = scene(0, 1)
    assert coordinator.handle(Joined(9)) == ()
    assert 9 in coordinator.members
    if coordinator.phase is Phase.COLLECTING:
        coordinator.handle(came(2, 3))
    persist, send, refresh = coordinator.handle(Aggregated(2, NEAR))
    assert 9 not in send.ids
    assert refresh == Refresh(9, coordinator.epoch)
    assert 9 not in persist.outcome.missing


def test_a_newcomer_does_not_keep_a_resolution_from_being_full():
    coordinator = collecting(0, 1)
    coordinator.handle(Joined(9))
    coordinator.handle(came(2, 3))
    _, send, refresh = coordinator.handle(Aggregated(2, FAR))
    assert (send.ids, send.as_reference, refresh) == ((0, 1, 2, 3), True, Refresh(9, 2))


def test_a_newcomer_that_leaves_again_gets_nothing():
    coordinator = averaging(0)
    coordinator.handle(Joined(9))
    coordinator.handle(Left(9))
    assert len(coordinator.handle(Aggregated(2, NEAR))) == 2
    assert coordinator.members == [0, 1, 2, 3]


def test_who_comes_back_while_nothing_is_open_starts_anew_and_its_violation_is_void():
    coordinator = idle()
    coordinator.handle(Violated(2, epoch=1))
    assert coordinator.handle(Joined(2)) == (Persist(), Refresh(2, 1))
    assert coordinator.members == [0, 1, 2, 3]
    assert coordinator.handle(CheckDue(round=2)) == ()


def test_who_comes_back_while_it_is_awaited_is_missing_and_its_old_reply_is_late():
    coordinator = collecting(0, 1)
    coordinator.handle(Joined(2))
    assert coordinator.awaited == (3,)
    assert coordinator.handle(came(2)) == ()
    coordinator.handle(came(3))
    persist, send, refresh = coordinator.handle(Aggregated(2, FAR))
    assert (persist.outcome.missing, send.ids, refresh) == ((2,), (0, 1, 3), Refresh(2, 2))


def test_who_comes_back_while_its_model_is_held_is_dropped_from_the_balancing_set():
    coordinator = collecting(0, 1)
    coordinator.handle(Joined(0))
    (aggregate,) = coordinator.handle(came(2, 3))
    assert aggregate.ids == (1, 2, 3)
    persist, _, refresh = coordinator.handle(Aggregated(2, FAR))
    assert (persist.outcome.stages, refresh) == (((1,), (2, 3)), Refresh(0, 2))


def test_the_last_awaited_coming_back_ends_the_collection():
    coordinator = collecting(0)
    assert coordinator.handle(Joined(1)) == (Aggregate(2, (0,), (1.0,), measure=True),)
    assert coordinator.handle(Aggregated(2, NEAR))[2:] == (Refresh(1, 1),)


def test_coming_back_may_end_the_resolution_and_the_reference_comes_at_once():
    coordinator = Coordinator(Periodic(), [4])
    coordinator.handle(CheckDue(round=1))
    ended, changed, refresh = coordinator.handle(Joined(4))
    assert (ended.outcome.cause, ended.outcome.missing) == (Cause.ABANDONED, (4,))
    assert (changed, refresh) == (Persist(), Refresh(4, 0))


def test_who_leaves_while_nothing_is_open_is_forgotten():
    coordinator = idle()
    coordinator.handle(Violated(2, epoch=1))
    assert coordinator.handle(Left(2)) == (Persist(),)
    assert coordinator.members == [0, 1, 3]
    assert 2 not in coordinator.last_synced
    assert coordinator.handle(CheckDue(round=2)) == ()


def test_who_leaves_while_it_is_awaited_is_missing():
    coordinator = collecting(0, 1)
    assert coordinator.handle(Left(2)) == ()
    assert coordinator.awaited == (3,)
    (aggregate,) = coordinator.handle(came(3))
    assert aggregate.ids == (0, 1, 3)
    persist, send = coordinator.handle(Aggregated(2, FAR))
    assert (persist.outcome.missing, send.ids) == ((2,), (0, 1, 3))


def test_the_last_awaited_leaving_ends_the_collection():
    coordinator = collecting(0)
    assert coordinator.handle(Left(1)) == (Aggregate(2, (0,), (1.0,), measure=True),)


def test_who_leaves_during_averaging_is_dropped_and_the_average_made_anew():
    coordinator = averaging(0, 1)
    assert coordinator.handle(Left(0)) == ()
    again = coordinator.handle(Aggregated(2, NEAR))
    assert again == (Aggregate(2, (1,), (1.0,), measure=True),)
    assert coordinator.phase is Phase.AVERAGING
    _, send = coordinator.handle(Aggregated(2, NEAR))
    assert send.ids == (1,)


def test_an_average_that_was_not_measured_is_not_measured_when_made_anew():
    coordinator = Coordinator(Periodic(), range(2))
    coordinator.handle(CheckDue(round=1))
    coordinator.handle(came(0, 1, resolution=1, epoch=0))
    coordinator.handle(Left(1))
    assert coordinator.handle(Aggregated(1)) == (Aggregate(1, (0,), (1.0,), measure=False),)


def test_who_leaves_during_averaging_without_being_in_it_changes_nothing_of_it():
    coordinator = averaging(0, 1)
    coordinator.handle(Left(3))
    _, send = coordinator.handle(Aggregated(2, NEAR))
    assert send.ids == (0, 1)


def test_where_the_others_leave_the_balancing_set_is_full():
    coordinator = averaging(0, 1, 2)
    coordinator.handle(Left(3))
    _, send = coordinator.handle(Aggregated(2, FAR))
    assert (send.ids, send.as_reference) == ((0, 1, 2), True)


def test_who_left_the_balancing_set_while_collecting_is_in_no_later_average():
    coordinator = collecting(0, 1)
    coordinator.handle(came(2))
    coordinator.handle(Left(2))
    (aggregate,) = coordinator.handle(came(3))
    assert aggregate.ids == (0, 1, 3)
    persist, _ = coordinator.handle(Aggregated(2, FAR))
    assert persist.outcome.stages == ((0, 1), (3,))


def test_where_everybody_in_the_balancing_set_leaves_the_resolution_is_abandoned():
    coordinator = averaging(0)
    coordinator.handle(Left(0))
    (persist,) = coordinator.handle(Aggregated(2, NEAR))
    assert persist.outcome.cause is Cause.ABANDONED
    assert (persist.outcome.violators, persist.outcome.stages) == ((0,), ())
    assert (coordinator.phase, coordinator.epoch) == (Phase.IDLE, 1)


def test_where_violators_leave_the_rest_of_the_collection_goes_on_without_them():
    coordinator = collecting(0)
    coordinator.handle(Left(0))
    (aggregate,) = coordinator.handle(came(1))
    assert aggregate.ids == (1,)


def test_who_was_refused_and_leaves_gets_nothing_more():
    coordinator = collecting(0, 1)
    coordinator.handle(Collected(2, refused=(2,)))
    coordinator.handle(Left(2))
    coordinator.handle(came(3))
    assert len(coordinator.handle(Aggregated(2, FAR))) == 2


def test_leaving_and_returning_within_a_resolution_leads_to_the_reference():
    coordinator = collecting(0, 1)
    coordinator.handle(Left(2))
    coordinator.handle(Joined(2))
    before = everything(coordinator)
    assert coordinator.handle(came(2)) == ()
    assert everything(coordinator) == before
    coordinator.handle(came(3))
    assert coordinator.handle(Aggregated(2, FAR))[2] == Refresh(2, 2)


def test_the_next_resolution_is_open_to_newcomers():
    coordinator = averaging(0)
    coordinator.handle(Joined(9))
    coordinator.handle(Aggregated(2, NEAR))
    for id in (0, 1, 2):
        coordinator.handle(Violated(id, epoch=1))
    coordinator.handle(CheckDue(round=3))
    assert coordinator.handle(Aggregated(3, FAR))[0] == Query(3, (3, 9))
