"""The real operators, through the public `simulate`, against the naive second implementation."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import dynavg
from tests.naive import averaging as naive
from tests.theory.examples import dynamics, fedavgs, periodics, scripts, seeds
from tests.theory.scripted import Played, Script, play, script

LEDGER = ("round", "type", "sender", "receiver", "header_bytes", "payload_bytes")
Twin = naive.Dynamic | naive.Periodic | naive.FedAvg | naive.NoSync


def twin_of(operator: object, script: Script) -> Twin:
    """The naive operator that is to do the same."""
    match operator:
        case dynavg.Dynamic():
            single = script.start.dtype == np.float32
            return naive.Dynamic(
                delta=operator.delta,
                reference=script.start,
                strategy=operator.augmentation,
                weighted=operator.weights == "samples",
                unsquared=operator.distance == "norm",
                counter=operator.counter,
                reset_on_full=operator.reset_on_full,
                slack=1e-5 if single else 1e-12,
            )
        case dynavg.Periodic():
            return naive.Periodic(weighted=operator.weights == "samples")
        case dynavg.FedAvg():
            return naive.FedAvg(
                operator.fraction,
                to_all=operator.receivers == "all",
                weighted=operator.weights == "samples",
            )
        case _:
            return naive.NoSync()


def assert_agree(operator: dynavg.Dynamic, script: Script, played: Played) -> Counter[str]:
    """Round by round; returns how often a check ended for which cause."""
    twin, every = twin_of(operator, script), operator.every or script.rounds + 1
    # In float64 a product B_i · f_i may be rounded before it is added, or not (fused).
    bitwise = operator.weights == "equal" or script.start.dtype == np.float32
    tolerance = 0.0 if bitwise else 1e-12
    draws = played.result.history.checks["stages"].to_list()
    world = naive.World([script.start.copy() for _ in range(script.learners)], [])
    causes: Counter[str] = Counter()
    real = iter(played.checks)
    for t in range(1, script.rounds + 1):
        np.testing.assert_allclose(played.entering[t - 1], world.models, rtol=0, atol=tolerance)
        world.models = [f + g for f, g in zip(world.models, script.increments[t - 1], strict=True)]
        if t % every:
            continue
        world.round, world.weights = t, list(script.sizes[t - every : t].sum(0).astype(float))
        check = next(real)
        decision = twin.check(world, draws[t // every - 1])
        assert_same_decision(decision, check.record)
        np.testing.assert_allclose(check.after, world.models, rtol=0, atol=tolerance)
        if isinstance(twin, naive.Dynamic):
            np.testing.assert_allclose(check.reference, twin.reference, rtol=0, atol=tolerance)
        causes[str(decision.cause)] += 1
    assert next(real, None) is None
    np.testing.assert_allclose(played.final, world.models, rtol=0, atol=tolerance)
    assert_same_ledger(world.ledger, played.result)
    return causes


def assert_same_decision(decision: naive.Decision, record: object) -> None:
    assert [list(stage) for stage in record.stages] == decision.stages
    assert record.violations == len(decision.violators)
    assert record.balancing_set == sum(map(len, decision.stages))
    assert record.receivers == len(decision.receivers)
    assert record.cause == decision.cause
    assert record.full == decision.full


def assert_same_ledger(rows: list[tuple[int, str, int, int, int, int]], result: object) -> None:
    assert result.ledger.select(LEDGER).rows() == rows
    assert result.ledger["bytes"].to_list() == [row[4] + row[5] for row in rows]
    up = [row for row in rows if row[3] == -1]
    assert result.bytes() == sum(row[4] + row[5] for row in rows)
    assert result.bytes("models_only") == sum(row[5] for row in rows)
    assert result.bytes("uplink") == sum(row[4] + row[5] for row in up)
    assert result.bytes("messages") == len(rows)
    checks = result.history.checks
    for kind in ("violation", "query", "reply", "model"):
        sent = [(row[0], row[4] + row[5]) for row in rows if row[1] == kind]
        by_round = [sum(size for at, size in sent if at == t) for t in checks["round"]]
        assert checks[f"{kind}_bytes"].to_list() == by_round


def compare(operator: object, script: Script, **others: object) -> Counter[str]:
    try:
        return assert_agree(operator, script, play(script, operator, **others))
    except naive.TooCloseError:
        reject()


@settings(max_examples=120, deadline=None)
@given(dynamics(), scripts(), seeds)
def test_dynamic_averaging_agrees_in_every_decision_byte_and_model(operator, script, seed):
    compare(operator, script, seed=seed)


@settings(max_examples=40, deadline=None)
@given(dynamics(), scripts(dtype=np.float32), seeds)
def test_dynamic_averaging_of_single_precision_models_agrees_bit_by_bit(operator, script, seed):
    compare(operator, script, seed=seed)


@settings(max_examples=25, deadline=None)
@given(fedavgs, scripts(), seeds)
def test_federated_averaging_agrees_in_every_draw_byte_and_model(operator, script, seed):
    compare(operator, script, seed=seed)


@settings(max_examples=15, deadline=None)
@given(st.one_of(periodics, st.just(dynavg.NoSync())), scripts())
def test_periodic_averaging_and_none_agree_in_every_byte_and_model(operator, script):
    compare(operator, script)


@pytest.mark.parametrize("weights", ["equal", "samples"])
def test_models_larger_than_a_block_agree(weights):
    rng = np.random.default_rng(5)
    walk = script(rng.standard_normal((6, 4, 40_001)) / 200, rng.integers(1, 4, (6, 4)))
    causes = compare(dynavg.Dynamic(delta=2.0, weights=weights), walk)
    assert causes.keys() - {"None"}


@pytest.mark.slow
@pytest.mark.timeout(280)
@settings(max_examples=1000, deadline=None)
@given(dynamics(), scripts(rounds=25), seeds)
def test_dynamic_averaging_agrees_over_many_more_runs(operator, script, seed):
    compare(operator, script, seed=seed)


def test_the_random_walks_reach_every_cause_and_every_counter_rule():
    """Else the agreement above would say little."""
    causes: Counter[str] = Counter()
    rng = np.random.default_rng(3)
    for counter in ("at_least", "exactly", "off"):
        steps = 2 * rng.standard_normal((40, 6, 2)) * (rng.random((40, 6, 1)) < 0.4)
        operator = dynavg.Dynamic(delta=3.0, augmentation="random_one", counter=counter)
        causes += compare(operator, script(steps, rng.integers(1, 5, (40, 6))))
    for cause in ("None", "balanced", "counter", "exhausted"):
        assert causes[cause] >= 3, causes
    together = script(np.ones((5, 3, 2)))
    assert compare(dynavg.Dynamic(delta=1.0), together)["all violated"] == 5


def test_the_naive_implementation_refuses_illegal_draws():
    for drawn in ([1, 2], [0], [3, 3], [2, 9], [3, 2], []):
        with pytest.raises(naive.IllegalDrawError):
            naive.legal(drawn, 2, outside=[0, 1], m=5)
    assert naive.legal([2, 4], 2, outside=[0, 1], m=5) == [2, 4]


def test_a_different_operator_does_not_agree():
    """The comparison can fail: here each option in turn is not the one that the run had."""
    rng = np.random.default_rng(1)
    steps = 2 * rng.standard_normal((60, 7, 2)) * (rng.random((60, 7, 1)) < 0.35)
    walk = script(steps, rng.integers(1, 5, (60, 7)))
    ran = dynavg.Dynamic(delta=3.0)
    played = play(walk, ran)
    assert_agree(ran, walk, played)
    for other in (
        {"delta": 3.3},
        {"augmentation": "random_one"},
        {"augmentation": "tripling_half"},
        {"augmentation": "least_recent"},
        {"weights": "samples"},
        {"distance": "norm"},
        {"counter": "off"},
        {"reset_on_full": True},
    ):
        with pytest.raises(AssertionError):
            assert_agree(replace(ran, **other), walk, played)
