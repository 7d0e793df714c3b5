"""E10: how far apart the learners may start.

Ten learners, 500 samples of MNIST each, Glorot initialisation plus noise of relative scale ε that
differs between them, averaged every b rounds: periodically, and dynamically. What counts is the
accuracy of the averaged model on held-out pictures, relative to that of ε = 0, b = 1.
"""

from collections.abc import Sequence

from dynavg.experiments.claims import Claim, Finding, Scale, UndecidedError, one
from dynavg.experiments.experiment import Experiment
from dynavg.experiments.problems import mnist
from dynavg.experiments.rates import MNIST
from dynavg.experiments.spec import Spec
from dynavg.report.charts import Drawing, grid
from dynavg.report.points import Point, chosen

__all__ = ["EXPERIMENT"]

EPSILONS: dict[Scale, tuple[float, ...]] = {
    "smoke": (0.0, 20.0),
    "quick": (0.0, 3.0, 5.0, 10.0, 20.0),
    "full": (0.0, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0),
}
PERIODS: dict[Scale, tuple[int, ...]] = {
    "smoke": (1,),
    "quick": (1, 5, 25),
    "full": (1, 2, 5, 10, 25, 50),
}
SIZES: dict[Scale, dict[str, int]] = {
    "smoke": {"learners": 2, "rounds": 5},
    "quick": {"learners": 10, "rounds": 50},
    "full": {"learners": 10, "rounds": 50},
}
SEEDS = {"smoke": (0,), "quick": (0,), "full": (0, 1, 2)}
DELTA = 1.0
KINDS = ("periodic", "dynamic")


def plan(scale: Scale) -> list[Spec]:
    """All ε and b, periodically and dynamically; the test part of MNIST is held out."""
    every = list(PERIODS[scale])
    return [
        mnist(
            [
                {"kind": "periodic", "every": every},
                {"kind": "dynamic", "delta": DELTA, "every": every},
            ],
            rate=MNIST,
            title="initialisation",
            data={"kind": "mnist", "part": "train"},
            evaluate_every=SIZES[scale]["rounds"],
            grid={"init_noise": EPSILONS[scale]},
            seeds=SEEDS[scale],
            **SIZES[scale],
        )
    ]


def relative(points: Sequence[Point], kind: str) -> dict[tuple[float, int], float]:
    """The accuracy of each (ε, b), relative to that of ε = 0 and b = 1; 0 where a run diverged."""
    own = chosen(points, kind=kind)
    base = one(chosen(own, init_noise=0.0, every=1), f"{kind} run with ε = 0, b = 1")
    full = base.mean("held_out_accuracy")
    return {
        (float(point.spec["init_noise"]), int(point.spec["operator"]["every"])): (
            0.0 if point.diverged else point.mean("held_out_accuracy") / full
        )
        for point in own
    }


def _rows(points: Sequence[Point], *epsilons: float) -> list[tuple[str, float, list[float]]]:
    """(kind, ε, relative accuracies over b) for these ε, where they were run."""
    rows = []
    for kind in KINDS:
        cells = relative(points, kind)
        for epsilon in epsilons:
            row = [value for (noise, _), value in sorted(cells.items()) if noise == epsilon]
            if row:
                rows.append((kind, epsilon, row))
    if not rows:
        raise UndecidedError(f"no runs with ε in {epsilons}")
    return rows


def _told(rows: Sequence[tuple[str, float, list[float]]]) -> str:
    return "; ".join(f"{kind} ε = {e:g}: {min(row):.2f} to {max(row):.2f}" for kind, e, row in rows)


def weak_without_noise(points: Sequence[Point]) -> Finding:
    """ε = 0: all b."""
    rows = _rows(points, 0.0)
    return Finding(all(min(row) >= 0.9 for *_, row in rows), _told(rows))


def converges(points: Sequence[Point]) -> Finding:
    """ε ≤ 3: the best b."""
    rows = _rows(points, 1.0, 2.0, 3.0)
    return Finding(all(max(row) >= 0.9 for *_, row in rows), _told(rows))


def depends(points: Sequence[Point]) -> Finding:
    """ε from 5 to 10: the spread over b."""
    rows = _rows(points, 5.0, 10.0)
    return Finding(all(max(row) - min(row) >= 0.2 for *_, row in rows), _told(rows))


def fails(points: Sequence[Point]) -> Finding:
    """ε = 20: no b helps."""
    rows = _rows(points, 20.0)
    return Finding(all(max(row) <= 0.5 for *_, row in rows), _told(rows))


def grids(points: Sequence[Point]) -> list[Drawing]:
    """Relative accuracy by ε and b, for each kind."""
    made: list[Drawing] = []
    for kind in KINDS:
        cells = relative(points, kind)
        made.append(
            grid(
                chosen(points, kind=kind),
                "init_noise",
                "every",
                lambda point, cells=cells: cells[
                    float(point.spec["init_noise"]), int(point.spec["operator"]["every"])
                ],  # type: ignore[misc]
                f"Accuracy relative to ε = 0, b = 1 (0: diverged): {kind} averaging",
                f"initialisation-{kind}",
            )
        )
    return made


EXPERIMENT = Experiment(
    id="E10",
    title="Heterogeneous initialisation",
    shows=__doc__,
    plan=plan,
    claims=(
        Claim("E10.1", "without noise the period hardly matters", "≥ 0.9 for every b at ε = 0",
              weak_without_noise),
        Claim("E10.2", "ε up to 3 still converges", "≥ 0.9 with the best b for ε ≤ 3", converges),
        Claim("E10.3", "ε from 5 to 10 is the transition, where the period matters much",
              "best and worst b at least 0.2 apart at ε = 5 and ε = 10", depends),
        Claim("E10.4", "ε = 20 fails", "≤ 0.5 with every b", fails),
    ),
    pictures=(grids,),
)  # fmt: skip
