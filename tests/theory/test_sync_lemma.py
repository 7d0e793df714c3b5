"""T4, the lemma behind the regret theorem: synchronising d dynamically and s periodically raises
their mean squared distance (1/m) Σ ‖d_i − s_i‖² by at most Δ.
"""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import dynavg
from tests.theory.examples import dynamics, scripts
from tests.theory.scripted import Played, play, script


def rises(dynamic: Played, periodic: Played, weighted: bool) -> list[float]:
    """How much each check raises the distance between the two configurations."""
    found = []
    for d, s in zip(dynamic.checks, periodic.checks, strict=True):
        w = d.weights / d.weights.sum() if weighted else 1 / len(d.before)
        before = (w * ((d.before - s.before) ** 2).sum(1)).sum()
        found.append((w * ((d.after - s.after) ** 2).sum(1)).sum() - before)
    return found


@settings(max_examples=40, deadline=None)
@given(dynamics(), scripts(), st.data())
def test_t4_a_check_drives_dynamic_and_periodic_apart_by_at_most_delta(operator, walk, data):
    other = data.draw(scripts(learners=st.just(walk.learners)))
    P = min(len(walk.start), len(other.start))
    walks = [script(w.increments[:, :, :P], walk.sizes, start=w.start[:P]) for w in (walk, other)]
    dynamic = play(walks[0], operator)
    periodic = play(walks[1], dynavg.Periodic(operator.every, weights=operator.weights))
    threshold = operator.delta**2 if operator.distance == "norm" else operator.delta
    limit = threshold * (1 + 1e-12) + 1e-10
    assert max(rises(dynamic, periodic, operator.weights == "samples")) <= limit


def test_t4_the_bound_is_reached():
    """All learners at distance exactly Δ from r, in opposite pairs: averaging them would have
    cancelled them out, and nobody violates. The rise is Δ.
    """
    steps = np.array([[[2.0], [-2.0], [2.0], [-2.0]]])
    dynamic = play(script(steps), dynavg.Dynamic(delta=4.0))
    periodic = play(script(steps), dynavg.Periodic())
    assert rises(dynamic, periodic, weighted=False) == [4.0]
