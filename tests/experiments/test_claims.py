"""Verdicts: a false result is found false, whatever the claim would like."""

import pytest

from dynavg.experiments import e05, e06, e08
from dynavg.experiments.catalogue import NAMES, experiment_named
from dynavg.experiments.claims import Claim, Finding, each_is_beaten, judged
from dynavg.report.points import chosen
from tests.experiments.made_up import diverged, points, run

PERIODIC = run(100.0, 1000, kind="periodic", every=1)


def beaten(*runs):
    made = points(*runs)
    return each_is_beaten(chosen(made, kind="periodic"), chosen(made, kind="dynamic"))


@pytest.mark.parametrize(
    ("loss", "sent", "holds"),
    [
        (100.0, 500, True),
        (100.9, 999, True),  # within the slack of one per cent
        (101.1, 500, False),  # planted: the loss is worse
        (99.0, 1001, False),  # planted: more bytes
        (99.0, 1000, False),
    ],
)
def test_a_periodic_run_is_beaten_only_by_fewer_bytes_at_a_loss_no_worse(loss, sent, holds):
    assert beaten(PERIODIC, run(loss, sent, kind="dynamic", delta=1)).holds is holds


def test_one_unbeaten_periodic_run_is_enough_to_fail():
    cheap = run(200.0, 10, kind="periodic", every=100)
    assert beaten(PERIODIC, run(99.0, 500, kind="dynamic", delta=1)).holds
    assert not beaten(PERIODIC, cheap, run(99.0, 500, kind="dynamic", delta=1)).holds


def test_seeds_are_averaged_before_they_are_compared():
    dynamic = [run(loss, 500, seed=s, kind="dynamic", delta=1) for s, loss in enumerate((90, 130))]
    assert not beaten(PERIODIC, *dynamic).holds
    assert beaten(PERIODIC, dynamic[0]).holds


def test_what_is_measured_shows_the_spread_over_seeds():
    runs = [run(loss, 1000, seed=s, kind="periodic", every=1) for s, loss in enumerate((90, 110))]
    runs += [run(loss, 500, seed=s, kind="dynamic", delta=1) for s, loss in enumerate((95, 105))]
    # The seeds' difficulties are 0.925 and 1.075: the means of 0.9, 0.95 and of 1.1, 1.05. What is
    # left differs by 90 / 0.925 - 110 / 1.075 = 5.03, which is 3.6 times the root of 2.
    told = beaten(*runs).measured
    assert told == "periodic 1: loss 100 ± 3.6, dynamic 1: 100 ± 3.6 with 50% of the bytes"


def test_a_diverged_run_beats_nothing():
    assert not beaten(PERIODIC, diverged(kind="dynamic", delta=1)).holds


@pytest.mark.parametrize(
    ("scale", "word"), [("smoke", "undecided at this scale"), ("quick", "does not hold")]
)
def test_a_planted_false_result_does_not_hold_where_the_scale_decides(scale, word):
    claim = Claim("X", "it is so", "so", lambda _: Finding(False, "it is not"), "quick")
    [verdict] = judged([claim], [], scale)
    assert verdict.word == word
    assert verdict.measured == "it is not"


@pytest.mark.parametrize("name", NAMES)
def test_no_claim_holds_on_nothing(name):
    experiment = experiment_named(name)
    verdicts = judged(experiment.claims, [], "full")
    assert verdicts
    assert [verdict.holds for verdict in verdicts] == [None] * len(verdicts)


@pytest.mark.parametrize("name", NAMES)
def test_ids_of_claims_and_keys_of_runs_tell_them_apart(name):
    experiment = experiment_named(name)
    assert len({claim.id for claim in experiment.claims}) == len(experiment.claims)
    for scale in ("smoke", "quick", "full"):
        keys = [one.key for spec in experiment.plan(scale) for one in spec.runs()]
        assert len(set(keys)) == len(keys)


def verdict_of(experiment, id, runs, scale="full"):
    [claim] = [claim for claim in experiment.EXPERIMENT.claims if claim.id == id]
    return judged([claim], points(*runs), scale)[0]


@pytest.mark.parametrize(("sent", "holds"), [(120, True), (130, False)])
def test_ten_times_fewer_is_at_least_eight(sent, holds):
    runs = [PERIODIC, run(104.0, sent, kind="dynamic", delta=1)]
    assert verdict_of(e06, "E6.2", runs).holds is holds


def with_accuracy(record, accuracy):
    record.summary["accuracy_last_100"] = accuracy
    return record


@pytest.mark.parametrize(
    ("loss", "accuracy", "sent", "holds"),
    [
        (108.0, 0.95, 400, True),
        (109.0, 0.96, 400, False),  # more than 8.3 % loss
        (105.0, 0.93, 400, False),  # more than 1.9 % accuracy lost
        (105.0, 0.96, 600, False),  # not half the bytes
    ],
)
def test_fedavg_is_beaten_by_half_the_bytes_at_little_loss(loss, accuracy, sent, holds):
    runs = [
        with_accuracy(run(100.0, 1000, kind="fedavg", every=5, fraction=0.5), 0.96),
        with_accuracy(run(loss, sent, kind="dynamic", delta=0.8), accuracy),
    ]
    assert verdict_of(e05, "E5.2", runs).holds is holds


def test_every_optimiser_has_to_be_dominated():
    def under(optimizer, *records):
        for record in records:
            record.spec["optimizer"] = {"kind": optimizer}
        return records

    def pair(loss):
        return run(100.0, 9, kind="periodic", every=1), run(loss, 5, kind="dynamic", delta=1)

    good = [*under("SGD", *pair(99)), *under("Adam", *pair(99))]
    assert verdict_of(e08, "E8.1", [*good, *under("RMSprop", *pair(99))]).holds is True
    assert verdict_of(e08, "E8.1", [*good, *under("RMSprop", *pair(150))]).holds is False
