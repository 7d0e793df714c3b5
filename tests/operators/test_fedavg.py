"""Federated averaging: how many, who, and who gets the mean."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynavg.operators import FedAvg
from dynavg.protocol.messages import Cause, Unasked
from dynavg.protocol.operator import Average, Publish, Rest, Situation, Stage
from tests.operators.situations import Run, averaged, opened


@pytest.mark.parametrize(
    ("fraction", "members", "size"),
    [
        (0.3, 10, 3),
        (0.1, 30, 3),
        (0.7, 10, 7),
        (0.07, 100, 7),  # 7.000000000000001 before rounding
        (0.55, 100, 55),  # 55.00000000000001 before rounding
        (0.31, 10, 4),
        (0.01, 10, 1),
        (0.5, 1, 1),
        (1, 30, 30),
    ],
)
def test_a_fraction_of_the_members_rounded_up_is_asked(fraction, members, size):
    operator = FedAvg(every=1, fraction=fraction)
    assert operator.participants(members) == size
    _, ask = operator.step(operator.init(), opened(members))
    assert len(ask.ids) == size
    assert not ask.unasked


@settings(deadline=None)
@given(percent=st.integers(1, 100), members=st.integers(1, 300))
def test_hundredths_are_rounded_up_as_whole_numbers_are(percent, members):
    assert FedAvg(every=1, fraction=percent / 100).participants(members) == -(
        -percent * members // 100
    )


def test_however_small_the_fraction_somebody_is_asked():
    operator = FedAvg(every=1, fraction=1e-12)
    _, ask = operator.step(operator.init(), opened(5))
    assert len(ask.ids) == 1


def test_nobody_is_asked_where_there_is_nobody():
    operator = FedAvg(every=1, fraction=0.5)
    assert operator.step(operator.init(), opened(0))[1] == Rest()


def test_learners_wait_to_be_asked():
    assert FedAvg(every=1, fraction=0.5).unasked(1e9) is Unasked.NOTHING


def test_what_came_is_averaged_without_measuring():
    operator = FedAvg(every=1, fraction=0.5)
    collected = Situation(seed=0, round=1, stage=Stage.COLLECTED, members=(0, 1), held=(1,))
    assert operator.step(operator.init(), collected)[1] == Average(measure=False)


@pytest.mark.parametrize(
    ("receivers", "held", "expected"),
    [
        ("participants", (4, 1), Publish((1, 4), as_reference=False, cause=Cause.SCHEDULED)),
        ("all", (4, 1), Publish((0, 1, 2, 3, 4), as_reference=True, cause=Cause.SCHEDULED)),
        (
            "participants",
            (4, 1, 0, 2, 3),
            Publish((0, 1, 2, 3, 4), as_reference=True, cause=Cause.SCHEDULED),
        ),
    ],
)
def test_the_mean_goes_to_the_participants_or_to_all_and_whoever_has_it_all_has_a_reference(
    receivers, held, expected
):
    operator = FedAvg(every=1, fraction=0.4, receivers=receivers)
    assert operator.step(operator.init(), averaged(5, held))[1] == expected


def test_a_check_costs_one_query_to_each_participant():
    end, (ask,) = Run(FedAvg(every=1, fraction=0.3), 10).check()
    assert end.ids == ask.ids
    assert len(ask.ids) == 3


def test_every_member_is_drawn_equally_often():
    """χ² with 9 degrees of freedom exceeds 27.9 once in a thousand."""
    operator = FedAvg(every=1, fraction=0.3)
    counts = Counter()
    for round in range(1, 2001):
        counts.update(operator.step(operator.init(), opened(10, round=round))[1].ids)
    assert counts.total() == 6000
    assert sum((counts[id] - 600) ** 2 / 600 for id in range(10)) < 27.9


def test_the_draw_depends_on_the_round_and_the_seed():
    operator = FedAvg(every=1, fraction=0.1)

    def drawn(seed, round):
        return operator.step(operator.init(), opened(1000, seed=seed, round=round))[1].ids

    assert len({drawn(0, 1), drawn(1, 1), drawn(0, 2)}) == 3
    assert drawn(0, 1) == drawn(0, 1)
