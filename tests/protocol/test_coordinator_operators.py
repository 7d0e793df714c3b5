"""What the coordinator tells an operator, and what it does not take from one."""

import pytest

from dynavg.protocol.coordinator import Coordinator
from dynavg.protocol.messages import Aggregated, Cause, CheckDue, Collected, Expired, Violated
from dynavg.protocol.operator import Ask, Average, Publish, Rest, Situation, Stage
from tests.protocol.scenes import Scripted, came

AVERAGE = Average(measure=False)


def publish(*ids):
    return Publish(ids, as_reference=False, cause=Cause.SCHEDULED)


def play(*moves, members=range(3)):
    """Member 0 violates and the operator makes these moves; who is asked comes."""
    coordinator = Coordinator(Scripted(moves), members)
    coordinator.handle(Violated(0, epoch=0))
    instructions = coordinator.handle(CheckDue(round=1))
    for _ in moves[1:]:
        if coordinator.awaited:
            instructions = coordinator.handle(came(*coordinator.awaited, resolution=1, epoch=0))
        else:
            instructions = coordinator.handle(Aggregated(1))
    return instructions


def test_an_operator_may_send_to_members_outside_the_balancing_set():
    _, send = play(AVERAGE, publish(1, 2))
    assert send.ids == (1, 2)


def test_an_operator_may_end_a_resolution_without_giving_the_average_to_anybody():
    (persist,) = play(AVERAGE, publish())
    assert persist.outcome.receivers == ()


MISBEHAVIOUR = {
    "asks nobody": ([Ask(())], r"asks for \(\); at least one .*: \(1, 2\)"),
    "asks a stranger": ([Ask((1, 7))], r"asks for \(1, 7\); .*: \(1, 2\)"),
    "asks who is held": ([Ask((0,))], r"asks for \(0,\); .*: \(1, 2\)"),
    "asks who has come": ([Ask((1,)), Ask((1,))], r"asks for \(1,\); .*: \(2,\)"),
    "publishes without an average": ([publish(0)], "answers Publish"),
    "publishes what is not yet averaged": ([Ask((1,)), publish(0)], "answers Publish"),
    "publishes to a stranger": ([AVERAGE, publish(0, 7)], "answers Publish"),
    "averages the same again": ([AVERAGE, AVERAGE], "answers Average"),
    "rests on open work": ([AVERAGE, Rest()], "answers Rest"),
    "rests on models": ([Ask((1,)), Rest()], "answers Rest"),
}


@pytest.mark.parametrize(("moves", "message"), MISBEHAVIOUR.values(), ids=MISBEHAVIOUR)
def test_an_operator_that_misbehaves_is_named_with_its_move(moves, message):
    with pytest.raises(ValueError, match=message) as raised:
        play(*moves)
    assert "Scripted(" in str(raised.value)


def test_an_average_of_nothing_is_no_move():
    coordinator = Coordinator(Scripted((AVERAGE,)), range(3))
    with pytest.raises(ValueError, match="answers Average"):
        coordinator.handle(CheckDue(round=1))


def test_an_operator_sees_the_situation_at_each_stage():
    seen = []

    class Watching(Scripted):
        def step(self, state, situation):
            seen.append(situation)
            return super().step(state, situation)

    moves = (Ask((3, 1)), AVERAGE, Ask((2,)), AVERAGE, publish(0))
    coordinator = Coordinator(Watching(moves), range(4), seed=6)
    coordinator.last_synced[2] = 4
    coordinator.handle(Violated(0, epoch=0))
    coordinator.handle(CheckDue(round=5))
    coordinator.handle(Collected(1, missing=(3,)))
    coordinator.handle(Violated(1, epoch=0))
    coordinator.handle(Aggregated(1, {"distance": 2.5}))
    coordinator.handle(Expired(1))
    coordinator.handle(Aggregated(1, {"distance": 0.5}))
    synced = {2: 4, 0: 5}  # the coordinator's own, so all see its last state

    def situation(stage, **known):
        return Situation(seed=6, round=5, stage=stage, last_synced=synced, **known)

    assert seen == [
        situation(Stage.OPENED, members=(0, 1, 2, 3), violators=(0,), held=(0,)),
        situation(
            Stage.COLLECTED, members=(0, 1, 2), violators=(0, 1), held=(0, 1), crossed=1, queries=1
        ),
        situation(
            Stage.AVERAGED,
            members=(0, 1, 2),
            violators=(0, 1),
            held=(0, 1),
            queries=1,
            distance=2.5,
        ),
        situation(Stage.COLLECTED, members=(0, 1), violators=(0, 1), held=(0, 1), queries=2),
        situation(
            Stage.AVERAGED, members=(0, 1), violators=(0, 1), held=(0, 1), queries=2, distance=0.5
        ),
    ]


def test_the_rest_of_a_situation_is_who_is_not_held_by_id():
    situation = Situation(seed=0, round=1, stage=Stage.OPENED, members=(1, 3, 5, 7), held=(5, 1))
    assert situation.rest == (3, 7)
