"""Δ found by bracketing, on few learners and rounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynavg.experiments.specfile import SpecError
from dynavg.experiments.tuning import CLOSE, Budget, Loss, _boundary, goal_of, tune, tuned_path
from tests.experiments import tiny


@pytest.mark.parametrize(
    ("target", "budget", "goal"),
    [
        ("loss=+5%", None, Loss(0.05)),
        ("loss = 0.5%", None, Loss(0.005)),
        (None, "2GB", Budget(2e9)),
        (None, "1.5 kB", Budget(1500)),
    ],
)
def test_goals(target, budget, goal):
    assert goal_of(target, budget) == goal


@pytest.mark.parametrize(
    ("target", "budget", "message"),
    [
        (None, None, "name one goal"),
        ("loss=+5%", "2GB", "name one goal"),
        ("accuracy=5%", None, "loss=.* is wanted"),
        ("loss=0%", None, "above 0"),
        (None, "2 apples", "bytes such as 500MB are wanted"),
    ],
)
def test_a_goal_that_is_none_is_told(target, budget, message):
    with pytest.raises(ValueError, match=message):
        goal_of(target, budget)


@given(edge=st.floats(1e-3, 1e3), larger=st.booleans())
def test_the_search_ends_close_to_the_edge_on_the_good_side(edge, larger):
    found = _boundary(lambda d: d <= edge if larger else d >= edge, 1.0, larger, 40)
    ratio = edge / found if larger else found / edge
    assert 1 / 1.01 <= ratio <= CLOSE * 1.01


def test_loss_takes_the_largest_delta_within_and_budget_the_smallest(tmp_path):
    spec = tiny.spec(learners=8, rounds=100, optimizer={"kind": "SGD", "lr": 0.3})
    size = {"learners": 4, "rounds": 50}
    loose = tune(spec, Loss(0.05), tmp_path, **size)
    good = [t for t in loose.trials if t.loss <= 1.05 * loose.periodic.loss]
    assert loose.delta == max(trial.delta for trial in good)
    tight = tune(spec, Budget(loose.periodic.bytes / 4), tmp_path, **size)
    cheap = [t for t in tight.trials if t.bytes <= loose.periodic.bytes / 4]
    assert tight.delta == min(trial.delta for trial in cheap)
    assert tight.spec.operators[-1] == tiny.DYNAMIC | {"delta": tight.delta}
    assert tight.spec.operators[0] == tiny.PERIODIC
    assert {t.record.spec["seed"] for t in tight.trials} == {1}, "a seed that the spec has not"


def test_the_search_ends_where_nobody_speaks_or_everybody_does(tmp_path):
    spec = tiny.spec(rounds=40)
    silent = tune(spec, Loss(100.0), tmp_path)
    assert [trial.bytes == 0 for trial in silent.trials][-2:] == [False, True]
    assert silent.delta == silent.trials[-1].delta
    loud = tune(spec, Budget(1e12), tmp_path)
    full = [trial.bytes >= loud.periodic.bytes for trial in loud.trials]
    assert full[-2:] == [False, True]
    assert loud.delta == loud.trials[-1].delta


def test_bytes_are_those_of_the_whole_run(tmp_path):
    spec = tiny.spec(learners=6, rounds=60)
    found = tune(spec, Budget(1e9), tmp_path, learners=3, rounds=20, most=1)
    [trial] = found.trials
    assert trial.bytes == pytest.approx(6 * trial.record.summary["bytes"]["total"])


def test_what_cannot_be_tuned_is_told(tmp_path):
    with pytest.raises(SpecError, match="the spec has a grid over init_noise"):
        tune(tiny.spec(grid={"init_noise": [0.0, 1.0]}), Loss(0.1), tmp_path)
    with pytest.raises(SpecError, match="no Δ from"):
        tune(tiny.spec(rounds=40), Budget(1), tmp_path, most=1)


def test_the_new_spec_lies_beside_the_old(tmp_path):
    assert tuned_path(tmp_path / "my.toml") == tmp_path / "my.tuned.toml"
