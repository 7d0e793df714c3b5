"""What holds after every step of a play, whatever was lost, late, broken or gone."""

from dynavg.protocol.coordinator import Phase
from dynavg.protocol.messages import Cause, Outcome
from tests.protocol.play import Model, Play


def assert_sound(play: Play) -> None:
    coordinator = play.coordinator
    resolution = coordinator._open
    members = set(coordinator.members)
    assert coordinator.members == sorted(members)
    assert members == play.sides.keys()
    assert coordinator.pending.keys() <= members
    assert coordinator.last_synced.keys() <= members
    assert all(news.epoch == coordinator.epoch for news in coordinator.pending.values())
    assert (resolution is None) == (coordinator.phase is Phase.IDLE)
    assert bool(coordinator.awaited) == (coordinator.phase is Phase.COLLECTING)
    assert (play.order is not None) == (coordinator.phase is Phase.AVERAGING)
    if resolution is not None:
        _assert_sound_resolution(resolution, members, coordinator.pending.keys())
    for outcome in play.outcomes:
        _assert_sound_outcome(outcome)
    _assert_references(play)
    _assert_nobody_waits_in_vain(play)


def _assert_sound_resolution(resolution, members, pending) -> None:
    held, awaited = resolution.held.keys(), resolution.awaited.keys()
    part = set(resolution.members)
    assert held <= part <= members
    assert awaited <= part
    assert not held & awaited
    assert not pending & (held | awaited), "nobody is in two places"
    assert resolution.refresh <= members - part, "only who is out of it gets the reference instead"
    assert sorted(id for stage in resolution.stages for id in stage) == sorted(held)
    assert set(resolution.violators) >= set(resolution.stages[0])


def _assert_sound_outcome(outcome: Outcome) -> None:
    """Line 4: the average goes to those who made it, or (FedAvg, "all") to more of them."""
    made_it = outcome.balancing_set
    assert len(set(made_it)) == len(made_it)
    assert not set(made_it) & {*outcome.missing, *outcome.refused}
    assert (outcome.cause is Cause.ABANDONED) == (not made_it)
    if outcome.as_reference:
        assert set(outcome.receivers) >= set(made_it)
    else:
        assert outcome.receivers == tuple(sorted(made_it))
    if outcome.cause is Cause.ALL_VIOLATED:
        assert set(outcome.violators) >= set(made_it)


def _assert_references(play: Play) -> None:
    """Whoever has an epoch has its reference, at both ends and on the way."""
    for side in play.sides.values():
        assert side.machine.epoch <= play.coordinator.epoch
        assert side.reference == play.references[side.machine.epoch]
        for item in side.inbox:
            if isinstance(item, Model) and item.delivery.as_reference:
                assert item.value == play.references[item.delivery.epoch]


def _assert_nobody_waits_in_vain(play: Play) -> None:
    """Who waits has spoken, and an answer is due; who is awaited has been asked, or has spoken."""
    resolution = play.coordinator._open
    taken = set(play.coordinator.pending)
    if resolution is not None:
        taken |= resolution.held.keys() | resolution.refresh
    speaking = {word.id for word in play.words}
    for id, side in play.sides.items():
        if side.machine.waiting:
            answers = any(isinstance(item, Model) for item in side.inbox)
            assert id in taken | speaking | play.excused or answers
    for id in play.coordinator.awaited:
        asked = bool(play.sides[id].inbox)
        assert id in speaking | play.excused or asked
