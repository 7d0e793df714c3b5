"""Every event in every phase: what is possible happens, what is not changes nothing."""

import pytest

from dynavg.protocol.coordinator import Coordinator, IllegalEventError, Phase
from dynavg.protocol.messages import (
    Aggregate,
    Aggregated,
    Arrival,
    Collected,
    Deadline,
    Expired,
    Left,
    Persist,
    Query,
    Refresh,
    Send,
    Violated,
)
from tests.protocol.scenes import (
    EVENTS,
    FAR,
    NEAR,
    OPERATOR,
    averaging,
    came,
    collecting,
    everything,
    idle,
)

SCENES = {Phase.IDLE: idle, Phase.COLLECTING: collecting, Phase.AVERAGING: averaging}

# What an event leads to: the phase after it, and the kinds of the instructions it gives.
POSSIBLE = {
    (Phase.IDLE, "joined"): (Phase.IDLE, [Persist, Refresh]),
    (Phase.IDLE, "left"): (Phase.IDLE, [Persist]),
    (Phase.IDLE, "violated"): (Phase.IDLE, []),
    (Phase.IDLE, "check due"): (Phase.IDLE, []),
    (Phase.COLLECTING, "joined"): (Phase.COLLECTING, []),
    (Phase.COLLECTING, "left"): (Phase.COLLECTING, []),
    (Phase.COLLECTING, "violated"): (Phase.COLLECTING, []),
    (Phase.COLLECTING, "collected"): (Phase.AVERAGING, [Aggregate]),
    (Phase.COLLECTING, "expired"): (Phase.AVERAGING, [Aggregate]),
    (Phase.AVERAGING, "joined"): (Phase.AVERAGING, []),
    (Phase.AVERAGING, "left"): (Phase.AVERAGING, []),
    (Phase.AVERAGING, "violated"): (Phase.AVERAGING, []),
    (Phase.AVERAGING, "expired"): (Phase.AVERAGING, []),
    (Phase.AVERAGING, "aggregated"): (Phase.IDLE, [Persist, Send]),
}
PAIRS = [(phase, event) for phase in Phase for event in EVENTS]


@pytest.mark.parametrize(("phase", "event"), PAIRS)
def test_an_event_is_carried_out_where_it_is_possible_and_changes_nothing_elsewhere(phase, event):
    coordinator = SCENES[phase]()
    assert coordinator.phase is phase
    before = everything(coordinator)
    if (phase, event) in POSSIBLE:
        instructions = coordinator.handle(EVENTS[event])
        after, kinds = POSSIBLE[phase, event]
        assert (coordinator.phase, [type(i) for i in instructions]) == (after, kinds)
    else:
        with pytest.raises(IllegalEventError):
            coordinator.handle(EVENTS[event])
        assert everything(coordinator) == before


IMPOSSIBLE = {
    "news of a resolution to come": (idle, Expired(5), "the last resolution was 1"),
    "an average of a resolution to come": (averaging, Aggregated(3), "the last resolution was 2"),
    "a stranger leaves": (idle, Left(7), "it is not a member"),
    "a stranger leaves while collecting": (collecting, Left(7), "it is not a member"),
    "a stranger violates": (averaging, Violated(7, epoch=1), "it is not a member"),
    "who was not asked answers": (collecting, came(2), r"awaited are \(1,\)"),
    "a violator answers": (collecting, came(0), r"awaited are \(1,\)"),
    "one of two was not asked": (collecting, came(1, 2), r"awaited are \(1,\)"),
    "who was not asked is refused": (collecting, Collected(2, refused=(3,)), "each of them once"),
    "one comes twice at once": (collecting, came(1, 1), "each of them once"),
    "one comes and is missing": (
        collecting,
        Collected(2, got=(Arrival(1, 1),), missing=(1,)),
        "each of them once",
    ),
    "a reply while nobody is awaited": (averaging, came(1), r"awaited are \(\)"),
}


@pytest.mark.parametrize(("scene", "event", "why"), IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_an_impossible_event_says_why_and_where_and_changes_nothing(scene, event, why):
    coordinator = scene()
    before = everything(coordinator)
    with pytest.raises(IllegalEventError, match=why) as raised:
        coordinator.handle(event)
    assert everything(coordinator) == before
    assert type(event).__name__ in str(raised.value)
    assert f"while {coordinator.phase.value}" in str(raised.value)


OVER = [came(1, resolution=1), Collected(1, missing=(1,)), Collected(1, refused=(1,)), Expired(1)]


@pytest.mark.parametrize("news", OVER, ids=lambda news: str(news)[:40])
@pytest.mark.parametrize("scene", SCENES.values(), ids=lambda scene: scene.__name__)
def test_news_of_a_resolution_that_is_over_is_ignored(scene, news):
    coordinator = scene()
    before = everything(coordinator)
    assert coordinator.handle(news) == ()
    assert everything(coordinator) == before


@pytest.mark.parametrize("scene", [idle, averaging], ids=lambda scene: scene.__name__)
def test_an_average_for_a_resolution_that_is_over_is_ignored(scene):
    coordinator = scene()
    before = everything(coordinator)
    assert coordinator.handle(Aggregated(1, FAR)) == ()
    assert everything(coordinator) == before


def test_news_of_nobody_is_no_news():
    coordinator = collecting()
    before = everything(coordinator)
    assert coordinator.handle(Collected(2)) == ()
    assert everything(coordinator) == before


def test_a_new_coordinator_is_idle_with_its_members_in_order_and_each_once():
    coordinator = Coordinator(OPERATOR, [3, 1, 3, 2])
    assert coordinator.members == [1, 2, 3]
    assert (coordinator.phase, coordinator.epoch, coordinator.awaited) == (Phase.IDLE, 0, ())


def test_a_collection_names_whom_it_awaits_and_how_long():
    coordinator = averaging(1, 3)
    instructions = coordinator.handle(Aggregated(2, FAR))
    assert instructions == (Query(2, (0, 2)), Deadline(2, 7.0))
    assert coordinator.awaited == (0, 2)


def test_a_balanced_set_is_persisted_then_sent_and_the_reference_stays():
    coordinator = averaging(1, 3)
    persist, send = coordinator.handle(Aggregated(2, NEAR))
    assert isinstance(persist, Persist)
    assert send == Send(2, (1, 3), as_reference=False, epoch=1)
    assert coordinator.epoch == 1
