"""T6: communication is bounded by how far models move, and never exceeds periodic averaging's.

Where every violation leads to a full synchronisation, a learner that violates has walked further
than √Δ since the last one, all by its own steps, and no step counts for two violations: so it
violates at most (path length)/√Δ times. Partial synchronisations void the argument: they put a
learner anywhere within √Δ of r without moving r.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dynavg
from tests.theory.examples import dynamics, fedavgs, scripts, seeds
from tests.theory.scripted import Played, Script, play, script

HEADER_BYTES = 84


def violations(played: Played, learners: int) -> np.ndarray:
    """How often each learner violated."""
    frame = played.result.ledger
    senders = frame.filter(frame["type"] == "violation")["sender"].to_numpy()
    return np.bincount(senders, minlength=learners)


def path_lengths(script: Script) -> np.ndarray:
    """How far each learner's own steps have led it."""
    return np.linalg.norm(script.increments, axis=2).sum(0)


def radius(operator: dynavg.Dynamic) -> float:
    return operator.delta if operator.distance == "norm" else math.sqrt(operator.delta)


@settings(max_examples=30, deadline=None)
@given(dynamics(augmentation="all"), scripts(learners=st.integers(1, 2), rounds=30))
def test_t6_violations_are_at_most_path_length_over_root_delta(operator, script):
    """One or two learners: there every synchronisation is a full one."""
    played = play(script, operator)
    assert all(check.record.full for check in played.checks if check.record.violations)
    bound = path_lengths(script) * (1 + 1e-12)
    assert (violations(played, script.learners) * radius(operator) <= bound).all()


@settings(max_examples=30, deadline=None)
@given(dynamics(augmentation="all"), st.integers(3, 9), st.integers(1, 4), seeds)
def test_t6_the_bound_holds_for_many_learners_that_walk_one_way(operator, m, P, seed):
    """One direction, many speeds: violators' averages stay far, so nothing balances."""
    rng = np.random.default_rng(seed)
    speed = rng.exponential(1.0, (30, m, 1)) * rng.random(m)[None, :, None]
    direction = rng.standard_normal(P)
    walk = script(speed * direction / np.linalg.norm(direction))
    operator = replace(operator, weights="equal")
    played = play(walk, operator)
    # All of one mind, so those who have walked too far on average have a mean that is too far.
    assert all(check.record.full for check in played.checks if check.record.violations)
    bound = path_lengths(walk) * (1 + 1e-12)
    assert (violations(played, m) * radius(operator) <= bound).all()


def test_t6_the_bound_is_tight():
    """Every step is a little longer than √Δ, and every step violates."""
    steps = np.full((20, 1, 1), 1.0 + 1e-9)
    played = play(script(steps), dynavg.Dynamic(delta=1.0, augmentation="all"))
    assert violations(played, 1)[0] == 20


def test_t6_partial_synchronisations_void_the_bound():
    """Two learners balance each other at the very edge, again and again: `augmentation="all"` does
    not synchronise fully at *every* violation. 40 violations on a path of 2.95 √Δ.
    """
    steps = np.zeros((40, 8, 2))
    steps[0, :2, 0] = 0.999
    steps[:, 0, 1], steps[:, 1, 1] = 0.05, -0.05
    operator = dynavg.Dynamic(delta=1.0, augmentation="all", counter="off")
    played = play(script(steps), operator)
    assert {check.record.cause for check in played.checks} == {"balanced"}
    assert violations(played, 8)[:2].tolist() == [40, 40]
    assert path_lengths(script(steps))[0] < 3


@settings(max_examples=30, deadline=None)
@given(dynamics(), scripts())
def test_t6_a_check_never_costs_more_than_periodic_averaging_and_its_queries(operator, script):
    played = play(script, operator)
    periodic = play(script, dynavg.Periodic(operator.every)).result
    payload = 8 * len(script.start)
    checks = len(played.checks)
    assert periodic.bytes("models_only") == checks * 2 * script.learners * payload
    assert periodic.bytes() == checks * 2 * script.learners * (payload + HEADER_BYTES)
    queries = 0
    for check in played.checks:
        asked = check.record.query_bytes // HEADER_BYTES
        assert asked == check.record.balancing_set - check.record.violations
        models = 2 * check.record.balancing_set
        assert check.record.bytes == models * (payload + HEADER_BYTES) + asked * HEADER_BYTES
        assert models <= 2 * script.learners
        queries += asked
    assert played.result.bytes("models_only") <= periodic.bytes("models_only")
    assert played.result.bytes() <= periodic.bytes() + queries * HEADER_BYTES


@settings(max_examples=15, deadline=None)
@given(fedavgs, scripts())
def test_federated_averaging_costs_a_query_and_two_models_per_participant(operator, script):
    m, payload = script.learners, 8 * len(script.start)
    drawn = math.ceil(round(operator.fraction * m, 9))
    receivers = m if operator.receivers == "all" else drawn
    played = play(script, operator)
    models = (drawn + receivers) * (payload + HEADER_BYTES)
    assert all(c.record.bytes == models + drawn * HEADER_BYTES for c in played.checks)


@pytest.mark.parametrize("every", [1, 3])
def test_t6_models_that_have_come_to_rest_send_nothing_more(every):
    """Steps that shrink geometrically have finite length, so communication ends; periodic's not."""
    rng = np.random.default_rng(0)
    steps = rng.standard_normal((120, 5, 3)) * 0.9 ** np.arange(120)[:, None, None]
    dynamic = play(script(steps), dynavg.Dynamic(delta=0.5, every=every)).result.ledger["round"]
    assert 1 <= dynamic.max() <= 60
    assert play(script(steps), dynavg.Periodic(every)).result.ledger["round"].max() == 120
