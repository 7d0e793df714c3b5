"""v: when past violations force a full synchronisation. Expected values are counted by hand."""

import pytest

from dynavg.operators import Dynamic
from dynavg.operators.dynamic import DynamicState
from dynavg.protocol.messages import Cause
from dynavg.protocol.operator import Ask, Average, Situation, Stage
from tests.operators.situations import Run, opened

NEAR, FAR = 0.0, 9.0


def run(counter, distance=NEAR, reset_on_full=False, members=4):
    operator = Dynamic(delta=1, counter=counter, augmentation="all", reset_on_full=reset_on_full)
    return Run(operator, members, distance)


def causes(run, *checks):
    return [end and end.cause for end, _ in (run.check(*violators) for violators in checks)]


def test_at_least_fires_when_v_reaches_m_and_v_starts_anew():
    # v = 2, then 4 = m: fires. Then 1, 3, 5 > m: fires.
    run_ = run("at_least")
    assert causes(run_, (0, 1), (0, 1)) == [Cause.BALANCED, Cause.COUNTER]
    assert run_.state.violations == 0
    assert causes(run_, (0,), (2, 3), (1, 2)) == [Cause.BALANCED, Cause.BALANCED, Cause.COUNTER]
    assert run_.state.violations == 0


def test_exactly_fires_when_v_is_m_and_never_once_v_has_jumped_over_m():
    # v = 2, 4 = m: fires. Then 3, 6, 7, 9: jumped over 4, silent for good.
    run_ = run("exactly")
    assert causes(run_, (0, 1), (0, 1)) == [Cause.BALANCED, Cause.COUNTER]
    assert run_.state.violations == 0
    assert causes(run_, (0, 1, 2), (0, 1, 2), (0,), (2, 3)) == [Cause.BALANCED] * 4
    assert run_.state.violations == 9


def test_off_never_fires():
    assert causes(run("off"), *[(0, 1)] * 9) == [Cause.BALANCED] * 9


@pytest.mark.parametrize("counter", ["at_least", "exactly", "off"])
def test_all_violated_sets_v_to_zero_under_every_rule(counter):
    run_ = run(counter)
    assert causes(run_, (0,), (0, 1, 2, 3)) == [Cause.BALANCED, Cause.ALL_VIOLATED]
    assert run_.state == DynamicState()


def test_a_check_without_violators_leaves_v():
    run_ = run("at_least")
    causes(run_, (0, 1), ())
    assert run_.state.violations == 2


@pytest.mark.parametrize(("reset_on_full", "left"), [(False, 1), (True, 0)])
def test_a_full_synchronisation_by_augmentation_leaves_v_unless_told(reset_on_full, left):
    run_ = run("at_least", FAR, reset_on_full)
    assert causes(run_, (0,)) == [Cause.EXHAUSTED]
    assert run_.state.violations == left


def test_the_counter_queries_everybody_else_at_once_whatever_the_distance():
    run_ = run("at_least", NEAR)
    run_.check(1, 2)
    end, queries = run_.check(0, 3)
    assert queries == [Ask((1, 2))]
    assert end.as_reference


def test_a_fired_counter_is_forgotten_at_the_next_check():
    run_ = run("at_least", FAR)
    assert causes(run_, (0, 1, 2), (0,), (1,)) == [
        Cause.EXHAUSTED,  # v = 3
        Cause.COUNTER,  # v = 4
        Cause.EXHAUSTED,  # v = 1
    ]


def test_a_violation_that_crosses_a_query_counts_after_the_firing():
    operator = Dynamic(delta=1)
    state, move = operator.step(DynamicState(3), opened(4, violators=[0]))
    assert move == Ask((1, 2, 3))
    crossed = Situation(
        seed=0, round=1, stage=Stage.COLLECTED, members=(0, 1), held=(0, 1), crossed=1
    )
    state, move = operator.step(state, crossed)
    assert (state, move) == (DynamicState(1, fired=True), Average(measure=True))


def test_the_counter_compares_with_the_members_of_now():
    state, _ = Dynamic(delta=1).step(DynamicState(1), opened(5, violators=[0]))
    assert not state.fired
    state, _ = Dynamic(delta=1).step(DynamicState(1), opened(2, violators=[0]))
    assert state.fired
