"""Dynamic averaging at one check, move by move, as PROTOCOL writes Algorithms 1 and 2."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynavg.operators import Dynamic
from dynavg.operators.dynamic import DynamicState
from dynavg.protocol.messages import Cause, Unasked
from dynavg.protocol.operator import Ask, Average, Publish, Rest, Situation, Stage
from tests.operators.situations import Run, averaged, opened

OFF = Dynamic(delta=1, augmentation="all", counter="off")


def test_without_violators_nothing_is_sent_and_v_stays():
    state = DynamicState(violations=2)
    assert OFF.step(state, opened(3)) == (state, Rest())


def test_violators_are_averaged_first_and_the_average_is_measured():
    _, move = OFF.step(OFF.init(), opened(3, violators=[1]))
    assert move == Average(measure=True)
    collected = Situation(seed=0, round=1, stage=Stage.COLLECTED, members=(0, 1), held=(1, 0))
    assert OFF.step(OFF.init(), collected) == (OFF.init(), Average(measure=True))


@pytest.mark.parametrize(
    ("distance", "balanced"), [(0.0, True), (1.0, True), (1.0000001, False), (math.nan, False)]
)
def test_the_balancing_set_is_enough_when_its_average_is_within_delta(distance, balanced):
    _, move = OFF.step(DynamicState(), averaged(4, held=(3, 1), distance=distance))
    if balanced:
        assert move == Publish((1, 3), as_reference=False, cause=Cause.BALANCED)
    else:
        assert move == Ask((0, 2))


@pytest.mark.parametrize("distance", [0.0, 5.0, math.nan, None])
def test_a_full_set_becomes_the_reference_however_far_it_is(distance):
    _, move = OFF.step(DynamicState(), averaged(3, held=(2, 0, 1), distance=distance))
    assert move == Publish((0, 1, 2), as_reference=True, cause=Cause.EXHAUSTED)


CAUSES = {
    # held in joining order, violators, fired: what it is called
    "all violated": ((0, 1, 2), (0, 1, 2), False, Cause.ALL_VIOLATED),
    "all violated before counter": ((0, 1, 2), (0, 1, 2), True, Cause.ALL_VIOLATED),
    "counter before exhausted": ((0, 1, 2), (0, 1), True, Cause.COUNTER),
    "exhausted": ((0, 1, 2), (0, 1), False, Cause.EXHAUSTED),
    "exhausted before balanced": ((0, 1, 2), (0,), False, Cause.EXHAUSTED),
}


@pytest.mark.parametrize(("held", "violators", "fired", "cause"), CAUSES.values(), ids=CAUSES)
def test_of_several_causes_the_first_is_recorded(held, violators, fired, cause):
    situation = averaged(3, held, distance=0.0, violators=violators)
    _, move = OFF.step(DynamicState(1, fired), situation)
    assert move.cause is cause


def test_violators_that_have_left_do_not_matter_for_the_cause():
    situation = averaged((1, 2), held=(1, 2), distance=0.0, violators=(0, 1, 2))
    assert OFF.step(DynamicState(), situation)[1].cause is Cause.ALL_VIOLATED


def test_when_all_violate_nobody_is_asked():
    end, queries = Run(OFF, 4).check(0, 1, 2, 3)
    assert (end.cause, end.as_reference, queries) == (Cause.ALL_VIOLATED, True, [])


def test_a_lone_member_that_violates_makes_the_reference_alone():
    end, queries = Run(OFF, 1).check(0)
    assert (end.ids, end.cause, queries) == ((0,), Cause.ALL_VIOLATED, [])


@settings(deadline=None)
@given(delta=st.floats(0, 1e150), distance=st.floats(0))
def test_the_norm_with_delta_is_the_square_with_delta_squared(delta, distance):
    norm = Dynamic(delta=delta, distance="norm")
    square = Dynamic(delta=delta * delta)
    assert norm.threshold == square.threshold
    assert norm.unasked(distance) is square.unasked(distance)


def test_a_norm_is_compared_with_delta_and_a_square_with_delta():
    # ‖f − r‖ = 3, ‖f − r‖² = 9.
    assert Dynamic(delta=3, distance="norm").unasked(9.0) is Unasked.NOTHING
    assert Dynamic(delta=2.9, distance="norm").unasked(9.0) is Unasked.VIOLATION
    assert Dynamic(delta=9).unasked(9.0) is Unasked.NOTHING
    assert Dynamic(delta=3).unasked(9.0) is Unasked.VIOLATION


def test_a_norm_whose_square_is_no_float_any_more_is_never_exceeded():
    assert Dynamic(delta=1e200, distance="norm").unasked(1e300) is Unasked.NOTHING


def test_with_delta_zero_any_movement_violates_and_none_does_not():
    assert Dynamic(delta=0).unasked(0.0) is Unasked.NOTHING
    assert Dynamic(delta=0).unasked(5e-324) is Unasked.VIOLATION


@pytest.mark.parametrize("distance", ["squared", "norm"])
@settings(deadline=None)
@given(far=st.floats(0))
def test_with_delta_infinite_nothing_violates(distance, far):
    assert Dynamic(delta=math.inf, distance=distance).unasked(far) is Unasked.NOTHING


@pytest.mark.parametrize("delta", [0, 1, math.inf])
@pytest.mark.parametrize("distance", ["squared", "norm"])
def test_a_model_that_is_not_a_number_away_violates_whatever_delta_is(delta, distance):
    assert Dynamic(delta=delta, distance=distance).unasked(math.nan) is Unasked.VIOLATION
