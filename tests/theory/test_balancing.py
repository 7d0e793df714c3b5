"""What a resolution does and leaves alone: partial and full synchronisation, thresholds, limits."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import dynavg
from tests.theory.examples import STRATEGIES, dynamics, scripts, seeds
from tests.theory.scripted import play, script


@settings(max_examples=30, deadline=None)
@given(dynamics(), scripts())
def test_a_partial_synchronisation_leaves_reference_and_outsiders_untouched(operator, script):
    for check in play(script, operator).checks:
        outside = [i for i in range(script.learners) if i not in check.members]
        np.testing.assert_array_equal(check.after[outside], check.before[outside])
        if not check.record.full:
            np.testing.assert_array_equal(check.reference, check.old_reference)


@settings(max_examples=30, deadline=None)
@given(dynamics(), scripts())
def test_the_balancing_set_shares_one_model_and_a_full_one_is_the_reference(operator, script):
    for check in play(script, operator).checks:
        if not check.record.stages:
            continue
        shared = check.after[check.members[0]]
        np.testing.assert_array_equal(
            check.after[check.members], np.tile(shared, (len(check.members), 1))
        )
        assert check.record.full == (len(check.members) == script.learners)
        if check.record.full:
            np.testing.assert_array_equal(check.reference, shared)


@settings(max_examples=30, deadline=None)
@given(dynamics(), scripts())
def test_distances_are_measured_from_the_last_full_synchronisation(operator, script):
    for check in play(script, operator).checks:
        distances = ((check.before - check.old_reference) ** 2).sum(1)
        record = check.record
        measured = (record.distance_min, record.distance_median, record.distance_max)
        expected = (distances.min(), np.median(distances), distances.max())
        np.testing.assert_allclose(measured, expected, rtol=1e-12, atol=1e-24)


@settings(max_examples=30, deadline=None)
@given(dynamics(weights="equal"), scripts(walks=("bursts", "gaussian", "few_move")))
def test_a_lone_violator_never_balances_alone(operator, script):
    for check in play(script, operator).checks:
        if check.record.violations == 1:
            assert check.record.balancing_set > 1 or script.learners == 1


@pytest.mark.parametrize("augmentation", STRATEGIES)
def test_several_violators_may_balance_among_themselves(augmentation):
    steps = [[[3.0, 0.0], [-3.0, 0.0], [0.5, 0.0], [0.0, 0.5]]]
    played = play(script(steps), dynavg.Dynamic(delta=1.0, augmentation=augmentation))
    (check,) = played.checks
    assert check.record.cause == "balanced"
    assert check.members == [0, 1]
    np.testing.assert_array_equal(check.after, [[0, 0], [0, 0], [0.5, 0], [0, 0.5]])
    assert played.result.ledger["type"].to_list() == ["violation"] * 2 + ["model"] * 2


@settings(max_examples=30, deadline=None)
@given(dynamics(), scripts(walks=("together", "gaussian")))
def test_where_all_violate_nobody_is_queried(operator, script):
    for check in play(script, operator).checks:
        if check.record.violations == script.learners:
            assert check.record.cause == "all violated"
            assert check.record.full
            assert check.record.query_bytes == check.record.reply_bytes == 0


@pytest.mark.parametrize(("distance", "delta"), [("squared", 25.0), ("norm", 5.0)])
def test_a_distance_equal_to_the_threshold_is_no_violation(distance, delta):
    walk = script([[[3.0, 4.0], [0.0, 0.0]]])
    on = play(walk, dynavg.Dynamic(delta=delta, distance=distance))
    assert on.checks[0].record.violations == 0
    below = dynavg.Dynamic(delta=math.nextafter(delta, 0), distance=distance)
    assert play(walk, below).checks[0].record.violations == 1


def test_a_mean_on_the_threshold_is_balanced():
    """‖(4 + 0)/2‖² = 4."""
    walk = script([[[4.0], [0.0], [0.0], [0.0]]])
    at = play(walk, dynavg.Dynamic(delta=4.0)).checks[0]
    assert (at.record.cause, at.record.balancing_set) == ("balanced", 2)
    below = play(walk, dynavg.Dynamic(delta=3.99)).checks[0]
    assert (below.record.cause, below.record.balancing_set) == ("exhausted", 4)


@settings(max_examples=30, deadline=None)
@given(scripts(walks=("gaussian", "together")), st.integers(1, 3), st.sampled_from(STRATEGIES))
def test_delta_zero_is_periodic_averaging_while_all_models_move(script, every, augmentation):
    dynamic = play(script, dynavg.Dynamic(0.0, every=every, augmentation=augmentation))
    periodic = play(script, dynavg.Periodic(every=every))
    for a, b in zip(dynamic.checks, periodic.checks, strict=True):
        np.testing.assert_array_equal(a.after, b.after)
    np.testing.assert_array_equal(dynamic.final, periodic.final)
    for view in ("total", "models_only", "uplink", "messages"):
        assert dynamic.result.bytes(view) == periodic.result.bytes(view)


def test_delta_zero_sends_less_than_periodic_where_a_model_stands_still():
    """Then the learner that did not move is queried, or two that cancel out leave it alone."""
    steps = [[[1.0], [-1.0], [0.0]]] * 4
    dynamic = play(script(steps), dynavg.Dynamic(0.0, counter="off"))
    assert [check.record.balancing_set for check in dynamic.checks] == [2, 2, 2, 2]
    periodic = play(script(steps), dynavg.Periodic())
    assert dynamic.result.bytes() < periodic.result.bytes()


@settings(max_examples=20, deadline=None)
@given(scripts(), dynamics(delta=math.inf))
def test_delta_infinity_is_no_synchronisation(script, operator):
    dynamic, alone = play(script, operator), play(script, dynavg.NoSync())
    np.testing.assert_array_equal(dynamic.final, alone.final)
    np.testing.assert_array_equal(dynamic.entering, alone.entering)
    assert dynamic.result.bytes() == 0


@settings(max_examples=30, deadline=None)
@given(dynamics(distance="squared"), scripts(walks=("gaussian", "bursts", "together")), seeds)
def test_the_norm_is_the_squared_distance_with_the_threshold_squared(operator, script, seed):
    assume(operator.delta > 0)
    root = {"delta": math.sqrt(operator.delta), "distance": "norm"}
    options = {name: getattr(operator, name) for name in operator.__slots__} | root
    squared = play(script, operator, seed=seed)
    norm = play(script, dynavg.Dynamic(**options), seed=seed)
    np.testing.assert_array_equal(squared.final, norm.final)
    assert squared.result.ledger.equals(norm.result.ledger)


@settings(max_examples=30, deadline=None)
@given(dynamics(counter="at_least"), scripts(walks=("bursts", "gaussian")))
def test_m_violations_since_the_last_counted_synchronisation_force_a_full_one(operator, script):
    v = 0
    for check in play(script, operator).checks:
        record = check.record
        v += record.violations
        if record.violations and v >= script.learners:
            assert record.full
            assert record.cause in ("counter", "all violated")
        else:
            assert record.cause in (None, "balanced", "exhausted")
        reset_by_choice = operator.reset_on_full and record.full
        v = 0 if record.cause in ("counter", "all violated") or reset_by_choice else v
