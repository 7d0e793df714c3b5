"""T7: Algorithm 2 weighs each model with the samples that it has seen since its last check."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

import dynavg
from tests.theory.examples import STRATEGIES, dynamics, scripts, seeds
from tests.theory.scripted import play, script


@settings(max_examples=30, deadline=None)
@given(dynamics(weights="samples"), scripts(equal_sizes=False))
def test_t7_the_sample_weighted_mean_is_invariant(operator, script):
    for check in play(script, operator).checks:
        np.testing.assert_allclose(
            np.average(check.after, axis=0, weights=check.weights),
            np.average(check.before, axis=0, weights=check.weights),
            rtol=0,
            atol=1e-13,
        )


@settings(max_examples=30, deadline=None)
@given(
    dynamics(weights="samples"),
    scripts(equal_sizes=True, walks=("gaussian", "together", "apart", "bursts")),
    seeds,
)
def test_t7_with_equal_weights_it_is_algorithm_1(operator, script, seed):
    """Walks without ties: there the division by B would decide."""
    second = play(script, operator, seed=seed)
    first = play(script, replace(operator, weights="equal"), seed=seed)
    assert second.result.ledger.equals(first.result.ledger)
    columns = ["violations", "stages", "cause", "full"]
    assert (
        second.result.history.checks.select(columns).rows()
        == first.result.history.checks.select(columns).rows()
    )
    np.testing.assert_allclose(second.final, first.final, rtol=0, atol=1e-12)


def test_t7_a_heavy_learner_pulls_the_average_to_itself():
    """(3·8 + 1·0)/4 = 6 against (8 + 0)/2 = 4."""
    walk = script([[[8.0], [0.0]]], sizes=[[3, 1]])
    weighted = play(walk, dynavg.Dynamic(delta=1.0, weights="samples"))
    np.testing.assert_array_equal(weighted.final, [[6.0], [6.0]])
    plain = play(walk, dynavg.Dynamic(delta=1.0))
    np.testing.assert_array_equal(plain.final, [[4.0], [4.0]])


@pytest.mark.parametrize(
    "operator",
    [
        dynavg.Dynamic(0.0, 2, weights="samples"),
        dynavg.Periodic(2, weights="samples"),
        dynavg.FedAvg(2, 1.0, weights="samples"),
    ],
)
def test_t7_the_weight_counts_the_samples_since_the_previous_check(operator):
    """First check: 4 and 4 samples. Second: 1 + 2 = 3 and 4 + 5 = 9, so (3·4 + 9·8)/12 = 7."""
    sizes = [[1, 2], [3, 2], [1, 4], [2, 5]]
    steps = [[[1.0], [-1.0]], [[1.0], [-1.0]], [[2.0], [4.0]], [[2.0], [4.0]]]
    played = play(script(steps, sizes), operator)
    np.testing.assert_array_equal(played.checks[0].after, [[0.0], [0.0]])
    np.testing.assert_array_equal(played.final, [[7.0], [7.0]])


@pytest.mark.parametrize("augmentation", STRATEGIES)
def test_t7_violators_balance_by_their_weighted_mean(augmentation):
    """(1·6 − 3·2)/4 = 0 is near r = 0 where Δ = 1; (6 − 2)/2 = 2 is not."""
    walk = script([[[6.0], [-2.0], [0.5], [0.25]]], sizes=[[1, 3, 1, 1]])
    weighted = dynavg.Dynamic(1.0, augmentation=augmentation, weights="samples")
    (check,) = play(walk, weighted).checks
    np.testing.assert_array_equal(check.after, [[0.0], [0.0], [0.5], [0.25]])
    (plain,) = play(walk, replace(weighted, weights="equal")).checks
    assert plain.record.balancing_set > 2
