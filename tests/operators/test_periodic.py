"""Periodic averaging and no synchronisation: the two ends of dynamic averaging."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynavg.operators import NoSync, Periodic
from dynavg.protocol.messages import Cause, Unasked
from dynavg.protocol.operator import Ask, Average, Publish, Rest, Situation, Stage
from tests.operators.situations import averaged, opened

PERIODIC = Periodic()


@settings(deadline=None)
@given(distance=st.floats())
def test_under_periodic_everybody_sends_whatever_the_distance(distance):
    assert PERIODIC.unasked(distance) is Unasked.REPLY


@settings(deadline=None)
@given(distance=st.floats())
def test_under_nosync_nobody_ever_speaks(distance):
    assert NoSync().unasked(distance) is Unasked.NOTHING


def test_periodic_expects_all_members_without_a_query():
    assert PERIODIC.step(PERIODIC.init(), opened((2, 5, 9)))[1] == Ask((2, 5, 9), unasked=True)


def test_periodic_without_members_rests():
    assert PERIODIC.step(PERIODIC.init(), opened(0))[1] == Rest()


def test_periodic_averages_without_measuring():
    collected = Situation(seed=0, round=1, stage=Stage.COLLECTED, members=(0, 1), held=(1, 0))
    assert PERIODIC.step(PERIODIC.init(), collected)[1] == Average(measure=False)


def test_the_periodic_mean_is_everybodys_next_reference():
    _, move = PERIODIC.step(PERIODIC.init(), averaged((2, 5), held=(2, 5)))
    assert move == Publish((2, 5), as_reference=True, cause=Cause.SCHEDULED)


@pytest.mark.parametrize("stage", Stage)
def test_nosync_never_does_anything(stage):
    operator = NoSync()
    situation = Situation(seed=0, round=1, stage=stage, members=(0, 1), violators=(0,), held=(0,))
    assert operator.step(operator.init(), situation) == (operator.init(), Rest())


def test_nosync_has_no_check():
    assert NoSync().every is None
