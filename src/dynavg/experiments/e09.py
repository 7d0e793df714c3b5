"""E9: more learners.

10, 100 and 200 learners, 14,000 samples of MNIST each; two dynamic and two periodic protocols.
"""

from collections.abc import Sequence
from itertools import pairwise

from dynavg.experiments.claims import Claim, Finding, Scale, UndecidedError, one
from dynavg.experiments.experiment import Experiment
from dynavg.experiments.problems import mnist
from dynavg.experiments.rates import MNIST
from dynavg.experiments.spec import Spec
from dynavg.report.charts import Drawing, causes, front, lines_over
from dynavg.report.points import Point, chosen

__all__ = ["EXPERIMENT"]

LEARNERS: dict[Scale, tuple[int, ...]] = {
    "smoke": (2, 4),
    "quick": (3, 10, 20),
    "full": (10, 100, 200),
}
ROUNDS: dict[Scale, int] = {"smoke": 6, "quick": 150, "full": 1400}
PUBLISHED = (0.3, 0.7)
WIDER = (2.0, 6.0)


def plan(scale: Scale) -> list[Spec]:
    """All protocols with each number of learners, the small ones first."""
    return [
        mnist(
            [
                {"kind": "periodic", "every": [1, 2]},
                {"kind": "dynamic", "delta": [*PUBLISHED, *WIDER], "every": 1},
            ],
            rate=MNIST,
            title="scale-out",
            learners=LEARNERS[scale][0],
            rounds=ROUNDS[scale],
            grid={"learners": LEARNERS[scale]},
        )
    ]


def numbers(points: Sequence[Point]) -> list[int]:
    """The numbers of learners, ascending; all protocols have to be there for each."""
    found = sorted({int(point.spec["learners"]) for point in points})
    if len(found) < 2:
        raise UndecidedError("runs with at least two numbers of learners are wanted")
    return found


def falls(points: Sequence[Point]) -> Finding:
    """The loss per learner by m, for every protocol."""
    lines, holds, sizes = [], True, numbers(points)
    for operator in _operators(points):
        own = [_of(points, operator, learners) for learners in sizes]
        losses = [point.loss for point in own]
        holds &= all(more > less for more, less in pairwise(losses))
        told = " → ".join(f"{loss:.4g}" for loss in losses)
        lines.append(f"{_name(operator)}: {told}")
    return Finding(holds, "; ".join(lines))


def advantage(points: Sequence[Point], learners: int) -> float:
    """Bytes of continuous averaging over those of the cheapest dynamic run with at most 5 % more
    loss; 1 where there is none.
    """
    most = one(chosen(points, kind="periodic", every=1, learners=learners), "periodic b=1")
    alike = [
        point
        for point in chosen(points, kind="dynamic", learners=learners)
        if point.loss <= 1.05 * most.loss
    ]
    return max((most.bytes / point.bytes for point in alike if point.bytes), default=1.0)


def grows(points: Sequence[Point]) -> Finding:
    """The advantage by m."""
    ratios = {learners: advantage(points, learners) for learners in numbers(points)}
    told = ", ".join(f"m = {learners}: {ratio:.2f}" for learners, ratio in ratios.items())
    values = list(ratios.values())
    return Finding(values[-1] > values[0], f"times fewer bytes than b = 1 at ≤ +5 % loss: {told}")


def _operators(points: Sequence[Point]) -> list[dict[str, object]]:
    found: dict[str, dict[str, object]] = {}
    for point in points:
        found.setdefault(repr(point.spec["operator"]), point.spec["operator"])
    return list(found.values())


def _of(points: Sequence[Point], operator: dict[str, object], learners: int) -> Point:
    own = [point for point in points if point.spec["operator"] == operator]
    return one(chosen(own, learners=learners), f"{_name(operator)} with {learners} learners")


def _name(operator: dict[str, object]) -> str:
    return " ".join(f"{value}" for value in operator.values())


def by_learners(points: Sequence[Point]) -> list[Drawing]:
    """Loss and bytes per learner against the number of learners."""
    return [
        lines_over(points, "learners", lambda point: point.loss, "loss-by-learners",
                   "Loss per learner by number of learners", "cumulative loss per learner"),
        lines_over(points, "learners", lambda point: point.bytes / point.spec["learners"],
                   "bytes-by-learners", "Bytes per learner by number of learners",
                   "bytes per learner", y_unit="bytes"),
    ]  # fmt: skip


def fronts(points: Sequence[Point]) -> list[Drawing]:
    """One front for each number of learners."""
    return [
        drawing
        for learners in sorted({int(point.spec["learners"]) for point in points})
        for drawing in front(chosen(points, learners=learners), PUBLISHED, f"m = {learners}")
    ]


EXPERIMENT = Experiment(
    id="E9",
    title="Scale-out",
    shows=__doc__,
    plan=plan,
    claims=(
        Claim("E9.1", "the loss per learner falls with the number of learners",
              "for every protocol, from each m to the next", falls, decided_at="full"),
        Claim("E9.2", "the advantage of dynamic averaging grows with the number of learners",
              "times fewer bytes than b = 1 at ≤ +5 % loss: more at the largest m than at the "
              "smallest", grows, decided_at="full"),
    ),
    pictures=(by_learners, fronts, causes),
)  # fmt: skip
