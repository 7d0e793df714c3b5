"""Each claim's threshold from both sides: what is planted just beyond it does not hold."""

import polars as pl
import pytest

from dynavg.experiments.catalogue import experiment_named
from dynavg.experiments.claims import judged
from dynavg.report.points import points_of
from tests.experiments.made_up import run


def verdict(id, runs):
    experiment = experiment_named(id.partition(".")[0])
    [claim] = [claim for claim in experiment.claims if claim.id == id]
    return judged([claim], points_of(runs), "full")[0].holds


def periodic(loss, sent, every=1, **facts):
    return given(run(loss, sent, kind="periodic", every=every), **facts)


def dynamic(loss, sent, delta=0.3, every=1, **facts):
    return given(run(loss, sent, kind="dynamic", delta=delta, every=every), **facts)


def given(record, *, accuracy=None, held_out=None, **settings):
    """The run with these accuracies and settings; the data are dealt unless it says otherwise."""
    record.spec.update({"data": {}, **settings})
    record.spec["name"] += "".join(f", {key}={value}" for key, value in settings.items())
    record.summary.update(accuracy_last_100=accuracy, held_out_accuracy=held_out)
    return record


@pytest.mark.parametrize(("losses", "holds"), [((1, 2, 3), True), ((1, 3, 2), False)])
def test_e2_serial_is_below_periodic_and_periodic_below_none(losses, holds):
    serial, often, never = losses
    runs = [run(serial, 0, kind="serial"), periodic(often, 9, 50), run(never, 0, kind="nosync")]
    assert verdict("E2.2", runs) is holds


@pytest.mark.parametrize(
    ("loss", "sent", "holds"),
    [(101, 350, True), (101, 650, True), (101, 340, False), (101, 660, False), (101.1, 500, False)],
)
def test_e3_about_half_the_bytes_at_the_same_loss(loss, sent, holds):
    assert verdict("E3.2", [periodic(100, 1000), dynamic(loss, sent)]) is holds


@pytest.mark.parametrize(("loss", "holds"), [(99, True), (101, False)])
def test_e3_serial_is_lowest(loss, holds):
    runs = [given(run(loss, 0, kind="serial")), periodic(100, 9), dynamic(105, 5)]
    assert verdict("E3.3", runs) is holds


@pytest.mark.parametrize(("dealt", "fixed", "holds"), [(99, 101, True), (99, 99, False)])
def test_e3_rare_averaging_is_worse_than_none_under_some_way_to_hand_out(dealt, fixed, holds):
    share = {"data": {"share": "fixed"}}
    runs = [periodic(dealt, 9, 4), given(run(100, 0, kind="nosync"))]
    runs += [periodic(fixed, 9, 4, **share), given(run(100, 0, kind="nosync"), **share)]
    assert verdict("E3.4", runs) is holds


@pytest.mark.parametrize(("accuracy", "holds"), [(0.986, True), (0.994, True), (0.984, False)])
def test_e3_serial_reaches_an_accuracy_of_about_099(accuracy, holds):
    runs = [given(run(1, 0, kind="serial"), accuracy=accuracy)]
    assert verdict("E3.5", runs) is holds


@pytest.mark.parametrize(
    ("loss", "sent", "holds"), [(101, 999, True), (101.1, 999, False), (90, 1000, False)]
)
def test_e4_ends_with_no_more_loss_and_fewer_bytes(loss, sent, holds):
    assert verdict("E4.3", [periodic(100, 1000), dynamic(loss, sent)]) is holds


@pytest.mark.parametrize(
    ("accuracy", "sent", "holds"), [(0.96, 831, True), (0.96, 832, False), (0.959, 100, False)]
)
def test_e5_fewer_bytes_at_the_same_accuracy(accuracy, sent, holds):
    best = given(run(100, 1000, kind="fedavg", every=5, fraction=0.5), accuracy=0.96)
    assert verdict("E5.3", [best, dynamic(100, sent, accuracy=accuracy)]) is holds


@pytest.mark.parametrize(("sent", "holds"), [(199, True), (201, False)])
def test_e5_the_largest_published_delta_counts_not_the_largest(sent, holds):
    runs = [periodic(100, 1000, 5), dynamic(100, sent, 0.8, 5), dynamic(100, 1, 12.0, 5)]
    assert verdict("E5.4", runs) is holds


@pytest.mark.parametrize(("losses", "holds"), [((9, 8, 7), True), ((9, 7, 8), False)])
def test_e9_every_protocols_loss_falls_with_every_step(losses, holds):
    sizes = (10, 100, 200)
    runs = [periodic(9 - m / 1000, 9, learners=m) for m in sizes]
    runs += [dynamic(loss, 5, learners=m) for m, loss in zip(sizes, losses, strict=True)]
    assert verdict("E9.1", runs) is holds


@pytest.mark.parametrize(
    ("loss", "sent", "holds"), [(105, 400, True), (106, 400, False), (105, 600, False)]
)
def test_e9_the_advantage_grows_at_a_loss_at_most_5_percent_higher(loss, sent, holds):
    runs = [periodic(100, 1000, learners=m) for m in (10, 200)]
    runs += [dynamic(100, 500, learners=10), dynamic(loss, sent, learners=200)]
    assert verdict("E9.2", runs) is holds


def by_noise(cells):
    """Periodic runs with these held-out accuracies, by ε and b, beside the one that counts as 1."""
    accuracies = {(0.0, 1): 1.0} | cells
    return [
        periodic(1, 9, every, init_noise=noise, held_out=accuracy)
        for (noise, every), accuracy in accuracies.items()
    ]


@pytest.mark.parametrize(
    ("id", "cells", "holds"),
    [
        ("E10.1", {(0.0, 50): 0.9}, True),
        ("E10.1", {(0.0, 50): 0.89}, False),
        ("E10.2", {(3.0, 1): 0.9, (3.0, 50): 0.1}, True),
        ("E10.2", {(3.0, 1): 0.89, (1.0, 1): 1.0}, False),
        ("E10.3", {(5.0, 1): 0.8, (5.0, 50): 0.5, (10.0, 1): 0.5, (10.0, 50): 0.2}, True),
        ("E10.3", {(5.0, 1): 0.8, (5.0, 50): 0.5, (10.0, 1): 0.3, (10.0, 50): 0.2}, False),
        ("E10.4", {(20.0, 1): 0.5}, True),
        ("E10.4", {(20.0, 1): 0.51, (20.0, 50): 0.1}, False),
    ],
)
def test_e10_accuracies_relative_to_no_noise(id, cells, holds):
    runs = by_noise(cells) + [
        dynamic(record.summary["loss_per_learner"], 9, every=record.spec["operator"]["every"],
                init_noise=record.spec["init_noise"],
                held_out=record.summary["held_out_accuracy"])
        for record in by_noise(cells)
    ]  # fmt: skip
    assert verdict(id, runs) is holds


def over_time(record, *, loss=None, sent=None, drifts=()):
    """The run of one learner with ten samples a round, these losses and bytes in each round."""
    rounds = list(range(1, len(loss or sent) + 1))
    of_rounds = {"round": rounds, "learner": [0] * len(rounds), "samples": [10] * len(rounds)}
    record.__dict__["rounds"] = pl.DataFrame(of_rounds | {"loss": loss or [1.0] * len(rounds)})
    record.__dict__["checks"] = pl.DataFrame({"round": rounds, "bytes": sent or [0] * len(rounds)})
    record.summary["drifts"] = [{"round": round} for round in drifts]
    return record


@pytest.mark.parametrize(("after", "holds"), [(1.1, True), (0.9, False)])
def test_e2_every_curve_steepens_after_the_drift(after, holds):
    steeper = over_time(periodic(1, 9, 50), loss=[1.0] * 30 + [5.0] * 30, drifts=[31])
    planted = over_time(run(1, 0, kind="nosync"), loss=[1.0] * 30 + [after] * 30, drifts=[31])
    assert verdict("E2.1", [steeper, planted]) is holds


@pytest.mark.parametrize(
    ("id", "sent", "holds"),
    [
        ("E4.1", [11] * 50 + [1] * 350, True),
        ("E4.1", [9] * 50 + [20] * 350, False),
        ("E4.2", [20] * 300 + [9] * 100, True),
        ("E4.2", [1] * 300 + [11] * 100, False),
    ],
)
def test_e4_more_in_the_first_500_samples_and_less_after_3000(id, sent, holds):
    runs = [over_time(periodic(1, 4000), sent=[10] * 400), over_time(dynamic(1, 1), sent=sent)]
    assert verdict(id, runs) is holds


@pytest.mark.parametrize(
    ("ours", "theirs", "holds"),
    [
        ([1000] + [0] * 99, [10] * 100, True),
        ([10] * 100, [10] * 100, False),
        ([1000] + [0] * 99, [10] * 50 + [12] * 50, False),
    ],
)
def test_e5_fedavgs_bytes_grow_linearly_and_dynamics_do_not(ours, theirs, holds):
    straight = over_time(run(1, 1000, kind="fedavg", every=5, fraction=0.5), sent=theirs)
    assert verdict("E5.1", [straight, over_time(dynamic(1, 1000), sent=ours)]) is holds


@pytest.mark.parametrize(("before_the_next", "holds"), [(4, True), (6, False)])
def test_e6_synchronisations_fall_from_a_drift_to_the_next(before_the_next, holds):
    sent = [1] * 40 + [5] * 20 + [before_the_next] * 20 + [5] * 20
    planted = over_time(dynamic(1, 1000), sent=sent, drifts=[41, 81])
    planted.spec["rounds"] = 80
    assert verdict("E6.3", [planted]) is holds
