"""E2, Figure 1b: one drift, and what it does to a serial learner, periodic averaging and none.

Ten learners on the drift data of E6; the concept changes once, halfway.
"""

from collections.abc import Sequence
from itertools import pairwise

from dynavg.experiments.claims import Claim, Finding, Scale, UndecidedError, one
from dynavg.experiments.experiment import Experiment
from dynavg.experiments.problems import drift
from dynavg.experiments.rates import DRIFT
from dynavg.experiments.spec import Spec
from dynavg.report.charts import front, over_time
from dynavg.report.points import Point, chosen, curves_of

__all__ = ["EXPERIMENT"]

WINDOW = 20
"""Rounds before and after the drift whose slopes are compared."""


def plan(scale: Scale) -> list[Spec]:
    """5,000 samples per learner; with one seed where it has to be quick."""
    rounds = 60 if scale == "smoke" else 500
    return [
        drift(
            ["serial", {"kind": "periodic", "every": 10 if scale == "smoke" else 50}, "nosync"],
            rate=DRIFT,
            title="one drift",
            data={"kind": "drift", "drifts": [rounds // 2 + 1]},
            learners=3 if scale == "smoke" else 10,
            rounds=rounds,
            seeds={"smoke": (0,), "quick": (0, 1, 2), "full": tuple(range(10))}[scale],
        )
    ]


def steepens(points: Sequence[Point]) -> Finding:
    """The loss per round just after the drift against that just before, for every run."""
    if not points:
        raise UndecidedError("there are no runs")
    lines, holds = [], True
    for point in points:
        ratios = []
        for run in point.runs:
            loss, at = curves_of(run).loss, int(run.summary["drifts"][0]["round"]) - 1
            before = loss[at - 1] - loss[at - 1 - WINDOW]
            ratios.append(float((loss[at - 1 + WINDOW] - loss[at - 1]) / before))
        holds &= min(ratios) > 1
        lines.append(f"{point.name}: {min(ratios):.2f} to {max(ratios):.2f} times as steep")
    return Finding(holds, "; ".join(lines))


def in_order(points: Sequence[Point]) -> Finding:
    """serial < periodic < nosync."""
    named = [one(chosen(points, kind=kind), kind) for kind in ("serial", "periodic", "nosync")]
    losses = [point.loss for point in named]
    counts = [
        all(a < b for a, b in pairwise(row))
        for row in zip(*(point.values("loss_per_learner") for point in named), strict=True)
    ]
    told = " < ".join(f"{point.name} {loss:.4g}" for point, loss in zip(named, losses, strict=True))
    measured = f"wanted {told}; so in {sum(counts)} of {len(counts)} seeds"
    return Finding(losses[0] < losses[1] < losses[2], measured)


EXPERIMENT = Experiment(
    id="E2",
    title="One drift (Figure 1b)",
    shows=__doc__,
    plan=plan,
    claims=(
        Claim(
            "E2.1",
            "after the drift every curve steepens",
            f"slope of the {WINDOW} rounds after > of the {WINDOW} before, in every run",
            steepens,
        ),
        Claim(
            "E2.2",
            "serial < periodic < no synchronisation in cumulative loss",
            "means over seeds in this order",
            in_order,
        ),
    ),
    pictures=(over_time, front),
)
