"""T1 and T2: the local conditions bound the divergence, and σ_Δ,b is a dynamic averaging operator.

An operator is one if it leaves the mean of the models as it was, leaves δ ≤ Δ behind, and does
nothing except every b rounds.
"""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import dynavg
from tests.theory.examples import dynamics, scripts
from tests.theory.scripted import Seen, divergence, play

FLOOR = 1e-12
"""Rounding of models of size 10 in float64, squared and added up."""


def squared_distances(models: np.ndarray, reference: np.ndarray) -> np.ndarray:
    return ((models - reference) ** 2).sum(1)


def at_most(left: float, right: float) -> bool:
    return left <= right * (1 + 1e-12) + FLOOR


def own_weights(operator: dynavg.Dynamic, check: Seen) -> np.ndarray | None:
    return check.weights if operator.weights == "samples" else None


@settings(max_examples=30, deadline=None)
@given(dynamics(), scripts())
def test_t1_divergence_is_at_most_the_largest_distance_from_the_reference(operator, script):
    played = play(script, operator, divergence=True)
    for check in played.checks:
        distances = squared_distances(check.before, check.old_reference)
        own = divergence(check.before, own_weights(operator, check))
        assert math.isclose(check.record.divergence_before, own, rel_tol=1e-9, abs_tol=FLOOR)
        assert at_most(own, distances.max())
        for r in (np.zeros(script.start.shape), check.before[0], check.reference):
            assert at_most(own, squared_distances(check.before, r).max())


@settings(max_examples=30, deadline=None)
@given(dynamics(), scripts())
def test_t1_where_nobody_violates_the_divergence_is_at_most_delta(operator, script):
    played = play(script, operator, divergence=True)
    threshold = operator.delta**2 if operator.distance == "norm" else operator.delta
    for check in played.checks:
        if check.record.violations == 0:
            assert at_most(check.record.divergence_before, threshold)
        assert check.record.false_alarm == (
            check.record.violations > 0 and check.record.divergence_before <= threshold
        )


@settings(max_examples=40, deadline=None)
@given(dynamics(), scripts())
def test_t2_a_check_leaves_the_mean_of_the_models_as_it_was(operator, script):
    for check in play(script, operator).checks:
        weights = own_weights(operator, check)
        np.testing.assert_allclose(
            np.average(check.after, axis=0, weights=weights),
            np.average(check.before, axis=0, weights=weights),
            rtol=0,
            atol=1e-13,
        )


@settings(max_examples=40, deadline=None)
@given(dynamics(), scripts())
def test_t2_after_a_check_the_divergence_is_at_most_delta(operator, script):
    threshold = operator.delta**2 if operator.distance == "norm" else operator.delta
    for check in play(script, operator, divergence=True).checks:
        assert at_most(divergence(check.after), threshold)
        assert at_most(divergence(check.after, check.weights), threshold)
        own = divergence(check.after, own_weights(operator, check))
        assert math.isclose(check.record.divergence_after, own, rel_tol=1e-9, abs_tol=FLOOR)


@settings(max_examples=30, deadline=None)
@given(
    st.one_of(
        dynamics(),
        st.builds(dynavg.Periodic, every=st.integers(1, 3)),
        st.builds(dynavg.FedAvg, every=st.integers(1, 3), fraction=st.just(0.5)),
    ),
    scripts(),
)
def test_t2_between_checks_models_move_by_their_own_steps_only(operator, script):
    played = play(script, operator)
    rounds = set(played.result.ledger["round"])
    assert all(t % operator.every == 0 for t in rounds)
    assert [check.record.round for check in played.checks] == list(
        range(operator.every, script.rounds + 1, operator.every)
    )
    leaving = dict.fromkeys(range(script.rounds + 1)) | {
        check.record.round: check.after for check in played.checks
    }
    for t in range(1, script.rounds):
        after = leaving[t] if t % operator.every == 0 else None
        expected = played.entering[t - 1] + script.increments[t - 1] if after is None else after
        np.testing.assert_array_equal(played.entering[t], expected)
