"""Runs over seeds as points."""

import pytest

from dynavg.report.page import rows_of
from tests.experiments.made_up import diverged, points, run


def losses(kind, *values):
    return [run(value, 1, seed=seed, kind=kind) for seed, value in enumerate(values)]


def test_the_spread_is_what_the_difficulty_of_the_seeds_does_not_explain():
    twice_as_hard = points(*losses("nosync", 100.0, 200.0), *losses("serial", 300.0, 600.0))
    assert [point.spread for point in twice_as_hard] == pytest.approx([0.0, 0.0])
    crossed = points(*losses("nosync", 110.0, 180.0), *losses("serial", 290.0, 620.0))
    assert all(point.spread > 5 for point in crossed)


def test_one_seed_and_diverged_runs_have_no_spread():
    alone = points(run(100.0, 1, kind="nosync"), diverged(kind="periodic", every=1))
    assert [point.spread for point in alone] == [0.0, 0.0]


def test_a_seed_that_only_some_were_run_with_still_counts():
    some, few = points(*losses("nosync", 100.0, 101.0, 102.0), *losses("serial", 50.0))
    assert some.spread == pytest.approx(0.0)  # it alone says how hard the seeds are
    assert few.spread == 0.0


def test_a_short_name_leaves_out_the_kind_unless_that_is_all():
    runs = run(1.0, 1, kind="dynamic", delta=0.5), run(1.0, 1, kind="nosync")
    assert [point.short_name for point in points(*runs)] == ["0.5", "nosync"]


def test_runs_of_different_specs_are_told_apart_by_what_differs():
    made = [run(1.0, 1, kind="periodic", every=1) for _ in range(3)]
    for record, rate, part in zip(made, (0.1, 0.1, 0.2), ("all", "train", "all"), strict=True):
        record.spec.update(optimizer={"kind": "SGD", "lr": rate}, data={"part": part})
    assert [point.name for point in points(*made, run(1.0, 1, kind="nosync"))] == [
        "periodic 1, part=all, lr=0.1",
        "periodic 1, part=train, lr=0.1",
        "periodic 1, part=all, lr=0.2",
        "nosync",
    ]


def test_where_the_pictures_lay_makes_no_difference():
    made = [run(1.0, 1, seed=seed, kind="periodic", every=1) for seed in (0, 1)]
    for record, folder in zip(made, (None, "mine"), strict=True):
        record.spec.update(data={"kind": "mnist", "folder": folder})
    [point] = points(*made)
    assert (point.name, len(point.runs)) == ("periodic 1", 2)


def test_of_many_differences_a_name_has_only_what_tells_apart():
    made = [run(1.0, 1, kind="periodic", every=1) for _ in range(3)]
    for n, record in enumerate(made):
        record.spec.update(a=n > 0, b=n, c=n, d=n)
    assert [point.name for point in points(*made)] == [
        "periodic 1, a=False, b=0",
        "periodic 1, a=True, b=1",
        "periodic 1, a=True, b=2",
    ]


@pytest.mark.parametrize(
    ("sent", "saved"), [(1000, "0%"), (130, "87%"), (4, "99.6%"), (0.01, "99.9%"), (0, "100%")]
)
def test_only_what_sends_nothing_saves_everything(sent, saved):
    made = [run(1.0, 1000, kind="periodic", every=1), run(1.0, sent, kind="dynamic", delta=1)]
    headings, rows = rows_of(points(*made))
    assert rows[1][headings.index("saved")] == saved
