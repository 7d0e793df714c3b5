"""Violations that come while a resolution is open, too often, or from another epoch."""

from dynavg.operators import Dynamic
from dynavg.protocol.coordinator import Coordinator, Phase
from dynavg.protocol.messages import (
    Aggregate,
    Aggregated,
    Cause,
    CheckDue,
    Collected,
    Deadline,
    Query,
    Refresh,
    Send,
    Violated,
)
from dynavg.protocol.operator import Average, Publish
from tests.protocol.scenes import FAR, NEAR, Scripted, averaging, came, collecting, everything, idle

COUNTING = Dynamic(delta=1, augmentation="least_recent", counter="at_least")


def test_a_violation_during_a_resolution_waits_for_the_next_one():
    coordinator = averaging(0)
    assert coordinator.handle(Violated(2, epoch=1)) == ()
    persist, send = coordinator.handle(Aggregated(2, NEAR))
    assert (persist.outcome.violators, send.ids) == ((0,), (0,))
    assert coordinator.handle(CheckDue(round=3)) == (Aggregate(3, (2,), (1.0,), measure=True),)


def test_a_violation_that_crosses_a_query_is_the_reply_and_a_violation():
    coordinator = collecting(0)
    (aggregate,) = coordinator.handle(Violated(1, epoch=1))
    assert aggregate.ids == (0, 1)
    persist, _ = coordinator.handle(Aggregated(2, NEAR))
    assert (persist.outcome.violators, persist.outcome.stages) == ((0, 1), ((0,), (1,)))


def test_a_crossed_violation_is_counted_in_v():
    coordinator = collecting(0, operator=COUNTING)
    coordinator.handle(Violated(1, epoch=1))
    coordinator.handle(Aggregated(2, NEAR))
    assert coordinator.snapshot()["operator"]["violations"] == 2


def test_violations_that_cross_by_all_others_make_it_all_violated():
    coordinator = collecting(0, 1)
    coordinator.handle(Violated(2, epoch=1))
    coordinator.handle(Violated(3, epoch=1))
    persist, _ = coordinator.handle(Aggregated(2, FAR))
    assert persist.outcome.cause is Cause.ALL_VIOLATED


def test_a_violation_before_the_query_is_the_reply_too_and_no_query_is_sent():
    """Its learner waits: it would not answer a query, and miss the resolution."""
    coordinator = averaging(0, 1)
    coordinator.handle(Violated(2, epoch=1, weight=5.0))
    assert coordinator.handle(Aggregated(2, FAR)) == (Query(2, (3,)), Deadline(2, 7.0))
    assert coordinator.awaited == (3,)
    (aggregate,) = coordinator.handle(came(3))
    assert aggregate.ids == (0, 1, 2, 3)
    persist, _ = coordinator.handle(Aggregated(2, FAR))
    assert persist.outcome.violators == (0, 1, 2)
    assert coordinator.handle(CheckDue(round=3)) == ()


def test_where_all_who_would_be_asked_have_spoken_nothing_is_awaited():
    coordinator = averaging(0)
    coordinator.handle(Violated(1, epoch=1))
    (aggregate,) = coordinator.handle(Aggregated(2, FAR))
    assert aggregate == Aggregate(2, (0, 1), (1.0, 1.0), measure=True)
    assert coordinator.phase is Phase.AVERAGING


def test_a_stale_violation_gets_the_reference_and_does_not_count():
    coordinator = idle()
    assert coordinator.handle(Violated(2, epoch=0)) == (Refresh(2, 1),)
    assert coordinator.handle(CheckDue(round=2)) == ()


def test_a_stale_violation_that_crosses_a_query_is_a_stale_reply():
    coordinator = collecting(0)
    (aggregate,) = coordinator.handle(Violated(1, epoch=0))
    assert aggregate.ids == (0,)
    persist, _, refresh = coordinator.handle(Aggregated(2, NEAR))
    assert (persist.outcome.violators, refresh) == ((0,), Refresh(1, 1))


def test_who_violates_again_while_its_violation_waits_has_said_it_already():
    coordinator = idle()
    coordinator.handle(Violated(2, epoch=1, weight=3.0))
    before = everything(coordinator)
    assert coordinator.handle(Violated(2, epoch=1, weight=8.0)) == ()
    assert everything(coordinator) == before


def test_who_violates_again_while_its_model_is_held_gets_its_answer_with_the_average():
    coordinator = averaging(0)
    before = everything(coordinator)
    assert coordinator.handle(Violated(0, epoch=1)) == ()
    assert everything(coordinator) == before


def test_a_waiting_violation_is_void_once_a_full_synchronisation_has_passed_it_by():
    coordinator = collecting(0, 1)
    coordinator.handle(Collected(2, missing=(3,)))
    coordinator.handle(Violated(3, epoch=1))
    coordinator.handle(came(2))
    _, send, refresh = coordinator.handle(Aggregated(2, FAR))
    assert (send.ids, send.as_reference) == ((0, 1, 2), True)
    assert refresh == Refresh(3, 2)
    assert coordinator.handle(CheckDue(round=3)) == ()


def test_a_waiting_violation_is_void_once_its_learner_is_to_start_anew():
    coordinator = collecting(0, 1)
    coordinator.handle(Collected(2, refused=(3,)))
    coordinator.handle(Violated(3, epoch=1))
    coordinator.handle(came(2))
    assert coordinator.handle(Aggregated(2, NEAR))[2] == Refresh(3, 2)
    assert coordinator.handle(CheckDue(round=3)) == ()


def test_a_violation_opens_one_resolution_only():
    coordinator = averaging(0)
    coordinator.handle(Aggregated(2, NEAR))
    assert coordinator.handle(CheckDue(round=3)) == ()


def test_who_is_sent_the_new_reference_is_not_refreshed_too_and_its_waiting_violation_is_void():
    moves = (
        Average(measure=False),
        Publish((0, 1), as_reference=True, cause=Cause.SCHEDULED),
    )
    coordinator = Coordinator(Scripted(moves), range(3))
    coordinator.handle(Violated(0, epoch=0))
    coordinator.handle(CheckDue(round=1))
    coordinator.handle(Violated(1, epoch=0))
    _, send = coordinator.handle(Aggregated(1))
    assert send == Send(1, (0, 1), as_reference=True, epoch=1)
    assert coordinator.pending == {}
