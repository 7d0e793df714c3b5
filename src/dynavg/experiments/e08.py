"""E8: any optimiser will do: SGD, Adam, RMSprop, each under periodic and dynamic averaging.

Ten learners, two epochs of MNIST together (14,000 samples each). Optimiser states stay local.
"""

from collections.abc import Sequence

from dynavg.experiments.claims import Claim, Finding, Scale, UndecidedError, each_is_beaten
from dynavg.experiments.experiment import Experiment
from dynavg.experiments.problems import mnist, sgd
from dynavg.experiments.rates import ADAM, MNIST, RMSPROP
from dynavg.experiments.spec import Settings, Spec
from dynavg.report.charts import Drawing, causes, front
from dynavg.report.points import Point, chosen

__all__ = ["EXPERIMENT"]

# RMSprop and Adam move every weight by about their rate in a step, a squared distance of rate² · P:
# 1.2 and 10.8 at these rates, far more than SGD. Their Δ are that much larger.
GRIDS: dict[str, tuple[Settings, tuple[float, ...]]] = {
    "SGD": (sgd(MNIST), (0.3, 1.0, 3.0, 6.0)),
    "Adam": ({"kind": "Adam", "lr": ADAM}, (10.0, 40.0, 120.0, 300.0)),
    "RMSprop": ({"kind": "RMSprop", "lr": RMSPROP}, (1.0, 4.0, 12.0, 30.0)),
}
SIZES: dict[Scale, dict[str, int]] = {
    "smoke": {"learners": 2, "rounds": 8},
    "quick": {"learners": 5, "rounds": 150},
    "full": {"learners": 10, "rounds": 1400},
}


def plan(scale: Scale) -> list[Spec]:
    """A spec for each optimiser."""
    every = [1, 2, 4, 8] if scale == "full" else [2, 8]
    specs = []
    for name, (optimizer, deltas) in GRIDS.items():
        chosen_deltas = deltas if scale == "full" else deltas[1::2]
        operators: list[Settings | str] = [
            {"kind": "periodic", "every": every},
            {"kind": "dynamic", "delta": list(chosen_deltas), "every": 1},
        ]
        grid = {"optimizer": [optimizer]}
        specs.append(mnist(operators, title=name, grid=grid, **SIZES[scale]))
    return specs


def _of(points: Sequence[Point], optimizer: str) -> list[Point]:
    return [point for point in points if point.spec["optimizer"]["kind"] == optimizer]


def dominated(points: Sequence[Point]) -> Finding:
    """For each optimiser, every periodic run is beaten by a dynamic one."""
    lines, holds = [], True
    for name in GRIDS:
        own = _of(points, name)
        if not own:
            raise UndecidedError(f"no runs with {name}")
        finding = each_is_beaten(chosen(own, kind="periodic"), chosen(own, kind="dynamic"))
        holds &= finding.holds
        lines.append(f"{name} {'yes' if finding.holds else 'no'} ({finding.measured})")
    return Finding(holds, "; ".join(lines))


def fronts(points: Sequence[Point]) -> list[Drawing]:
    """A front for each optimiser."""
    return [drawing for name in GRIDS for drawing in front(_of(points, name), of=name)]


EXPERIMENT = Experiment(
    id="E8",
    title="The optimiser as a black box",
    shows=__doc__,
    plan=plan,
    claims=(
        Claim("E8.1", "for each optimiser the dynamic front dominates the periodic front",
              "each periodic run is beaten: loss at most 1 % higher, fewer bytes", dominated,
              decided_at="full"),
    ),
    pictures=(fronts, causes),
)  # fmt: skip
