"""A collection: who comes, who does not, who comes with what does not count, who speaks first."""

from dynavg.operators import Dynamic, Periodic
from dynavg.protocol.coordinator import Coordinator, Phase
from dynavg.protocol.messages import (
    Aggregate,
    Aggregated,
    Arrival,
    Cause,
    CheckDue,
    Collected,
    Deadline,
    Expect,
    Expired,
    Outcome,
    Persist,
    Query,
    Refresh,
    Send,
    Violated,
)
from tests.protocol.scenes import FAR, NEAR, averaging, came, collecting, everything, idle

SAMPLES = Dynamic(delta=1, weights="samples", augmentation="least_recent", counter="off")


def test_violators_join_by_id_and_each_collection_after_them_by_id():
    coordinator = averaging(3, 1)
    assert coordinator.handle(Aggregated(2, FAR))[0] == Query(2, (0, 2))
    assert coordinator.handle(came(2)) == ()
    assert coordinator.handle(came(0)) == (Aggregate(2, (1, 3, 0, 2), (1.0,) * 4, measure=True),)


def test_weights_by_samples_travel_with_their_models():
    coordinator = Coordinator(SAMPLES, range(4))
    coordinator.handle(Violated(2, epoch=0, weight=30.0))
    (aggregate,) = coordinator.handle(CheckDue(round=1))
    assert aggregate == Aggregate(1, (2,), (30.0,), measure=True)
    coordinator.handle(Aggregated(1, FAR))
    (aggregate,) = coordinator.handle(Collected(1, (Arrival(0, 0, weight=10.0),)))
    assert aggregate == Aggregate(1, (2, 0), (30.0, 10.0), measure=True)


def test_equal_weights_ignore_the_samples():
    coordinator = idle()
    coordinator.handle(Violated(2, epoch=1, weight=30.0))
    assert coordinator.handle(CheckDue(round=2)) == (Aggregate(2, (2,), (1.0,), measure=True),)


def test_who_sends_unasked_is_expected_without_a_query():
    coordinator = Coordinator(Periodic(), range(3), patience=2.0)
    assert coordinator.handle(CheckDue(round=1)) == (Expect(1, (0, 1, 2)), Deadline(1, 2.0))


def test_a_full_set_makes_the_next_reference():
    coordinator = collecting(0, 1)
    coordinator.handle(came(2, 3))
    persist, send = coordinator.handle(Aggregated(2, FAR))
    assert send == Send(2, (0, 1, 2, 3), as_reference=True, epoch=2)
    assert coordinator.epoch == 2
    assert persist == Persist(
        Outcome(
            resolution=2,
            round=2,
            cause=Cause.EXHAUSTED,
            violators=(0, 1),
            stages=((0, 1), (2, 3)),
            receivers=(0, 1, 2, 3),
            as_reference=True,
        )
    )


def test_who_is_missing_is_out_of_this_resolution_and_full_means_all_that_can_be_had():
    coordinator = collecting(0, 1)
    coordinator.handle(came(3))
    assert coordinator.handle(Collected(2, missing=(2,)))[0].ids == (0, 1, 3)
    persist, send = coordinator.handle(Aggregated(2, FAR))
    assert send == Send(2, (0, 1, 3), as_reference=True, epoch=2)
    assert persist.outcome.missing == (2,)
    assert coordinator.members == [0, 1, 2, 3]


def test_a_deadline_makes_all_who_are_awaited_missing():
    coordinator = collecting(0, 1)
    assert coordinator.handle(Expired(2)) == (Aggregate(2, (0, 1), (1.0, 1.0), measure=True),)
    (persist, _) = coordinator.handle(Aggregated(2, NEAR))
    assert persist.outcome.missing == (2, 3)


def test_a_reply_after_its_deadline_is_too_late_even_in_the_same_resolution():
    coordinator = collecting(0)
    coordinator.handle(Expired(2))
    coordinator.handle(Aggregated(2, FAR))
    assert coordinator.awaited == (2,)
    before = everything(coordinator)
    assert coordinator.handle(came(1)) == ()
    assert everything(coordinator) == before


def test_a_late_reply_does_not_spoil_the_news_it_comes_with():
    coordinator = collecting(0)
    coordinator.handle(Expired(2))
    coordinator.handle(Aggregated(2, FAR))
    (aggregate,) = coordinator.handle(came(1, 2))
    assert aggregate.ids == (0, 2)


def test_a_second_word_of_a_learner_that_has_answered_is_ignored():
    coordinator = collecting(0, 1)
    coordinator.handle(came(2))
    before = everything(coordinator)
    for news in (came(2), Collected(2, missing=(2,)), Collected(2, refused=(2,))):
        assert coordinator.handle(news) == ()
    assert everything(coordinator) == before


def test_a_refused_learner_is_left_out_and_gets_the_reference_of_the_end():
    coordinator = collecting(0, 1)
    coordinator.handle(Collected(2, (Arrival(2, 1),), refused=(3,)))
    persist, send, refresh = coordinator.handle(Aggregated(2, FAR))
    assert send.ids == (0, 1, 2)
    assert (refresh, persist.outcome.refused) == (Refresh(3, 2), (3,))


def test_a_stale_model_does_not_count_and_its_learner_gets_the_reference():
    coordinator = collecting(0)
    (aggregate,) = coordinator.handle(came(1, epoch=0))
    assert aggregate.ids == (0,)
    persist, send, refresh = coordinator.handle(Aggregated(2, NEAR))
    assert (send.ids, refresh) == ((0,), Refresh(1, 1))
    assert persist.outcome.stages == ((0,),)


def test_who_only_gets_the_reference_gets_it_by_id():
    coordinator = collecting(2, 3)
    coordinator.handle(Collected(2, refused=(1,)))
    coordinator.handle(came(0, epoch=0))
    assert coordinator.handle(Aggregated(2, NEAR))[2:] == (Refresh(0, 2), Refresh(1, 2))


def test_a_resolution_in_which_nobody_can_be_had_is_abandoned():
    coordinator = Coordinator(Periodic(), range(2))
    coordinator.handle(CheckDue(round=1))
    coordinator.handle(Collected(1, refused=(1,)))
    persist, refresh = coordinator.handle(Expired(1))
    assert (persist.outcome.cause, persist.outcome.receivers) == (Cause.ABANDONED, ())
    assert refresh == Refresh(1, 0)
    assert (coordinator.phase, coordinator.epoch) == (Phase.IDLE, 0)


def test_a_check_at_which_nobody_has_anything_to_say_opens_no_resolution():
    coordinator = idle()
    before = everything(coordinator)
    assert coordinator.handle(CheckDue(round=2)) == ()
    assert everything(coordinator) == before
