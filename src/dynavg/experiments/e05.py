"""E5: against FedAvg on MNIST, with a check every five rounds.

Thirty learners, 8,000 samples each; periodic averaging, FedAvg with C = 0.3, 0.5, 0.7, dynamic
averaging. Besides the published Δ a wider grid is run. Accuracy is that on each learner's last 100
samples, before learning from them.
"""

from collections.abc import Sequence

import numpy as np

from dynavg.experiments.claims import Claim, Finding, Scale, UndecidedError, cheapest, one
from dynavg.experiments.experiment import Experiment
from dynavg.experiments.problems import mnist
from dynavg.experiments.rates import MNIST
from dynavg.experiments.spec import Settings, Spec
from dynavg.report.charts import Drawing, causes, front, over_time, set_sizes
from dynavg.report.points import Point, chosen, curves_of

__all__ = ["EXPERIMENT"]

PUBLISHED = (0.1, 0.2, 0.4, 0.6, 0.8)
WIDER = (1.5, 3.0, 6.0, 12.0)
SIZES: dict[Scale, dict[str, int]] = {
    "smoke": {"learners": 3, "rounds": 10},
    "quick": {"learners": 10, "rounds": 400},
    "full": {"learners": 30, "rounds": 800},
}


def plan(scale: Scale) -> list[Spec]:
    """All on the same data; serial only at full scale."""
    full = scale == "full"
    deltas = [*PUBLISHED, *WIDER] if full else [0.8, 3.0, 6.0]
    operators: list[Settings | str] = [
        "nosync",
        {"kind": "periodic", "every": 5},
        {"kind": "fedavg", "every": 5, "fraction": [0.3, 0.5, 0.7] if full else [0.5]},
        {"kind": "dynamic", "delta": deltas, "every": 5},
        *(["serial"] if full else []),
    ]
    return [mnist(operators, rate=MNIST, title="against FedAvg", **SIZES[scale])]


def _accuracy(point: Point) -> float:
    return point.mean("accuracy_last_100")


def _fedavg(points: Sequence[Point]) -> Point:
    """The FedAvg run with the least loss."""
    sound = [point for point in chosen(points, kind="fedavg") if not point.diverged]
    if not sound:
        raise UndecidedError("no FedAvg run to compare with")
    return min(sound, key=lambda point: point.loss)


def linear_and_in_steps(points: Sequence[Point]) -> Finding:
    """How far bytes over time are from a straight line, as a share of all bytes."""
    bent: dict[str, list[float]] = {"fedavg": [], "dynamic": []}
    for point in points:
        if point.kind in bent and point.bytes and not point.diverged:
            sent = curves_of(point.runs[0]).bytes
            line = np.linspace(0, sent[-1], len(sent))
            bent[point.kind].append(float(np.abs(sent - line).max() / sent[-1]))
    if not bent["fedavg"] or not bent["dynamic"]:
        raise UndecidedError("both FedAvg and dynamic runs are wanted")
    straight, stepped = max(bent["fedavg"]), max(bent["dynamic"])
    told = f"at most {straight:.1%} off a line for FedAvg, up to {stepped:.1%} for dynamic"
    return Finding(straight < 0.02 < stepped, told)


def half_for_little(points: Sequence[Point]) -> Finding:
    """The cheapest dynamic within +8.3 % loss and −1.9 % accuracy of the best FedAvg."""
    best = _fedavg(points)
    close = [
        point
        for point in chosen(points, kind="dynamic")
        if point.loss <= 1.083 * best.loss and _accuracy(point) >= _accuracy(best) - 0.019
    ]
    match = cheapest(close)
    if match is None:
        return Finding(False, f"no dynamic run is that close to {best.name}, loss {best.loss:.4g}")
    saved = 1 - match.bytes / best.bytes
    loss, accuracy = match.loss / best.loss - 1, _accuracy(match) - _accuracy(best)
    told = (
        f"{match.name} sends {saved:.0%} less than {best.name}, at {loss:+.1%} loss and "
        f"{accuracy:+.2%} accuracy"
    )
    return Finding(saved > 0.5, told)


def less_at_same_accuracy(points: Sequence[Point]) -> Finding:
    """The cheapest dynamic whose accuracy is not below the best FedAvg's."""
    best = _fedavg(points)
    equal = [p for p in chosen(points, kind="dynamic") if _accuracy(p) >= _accuracy(best)]
    match = cheapest(equal)
    if match is None:
        return Finding(False, f"no dynamic run reaches the accuracy {_accuracy(best):.4f}")
    saved = 1 - match.bytes / best.bytes
    told = f"{match.name} sends {saved:.1%} less than {best.name} at {_accuracy(match):.4f} "
    return Finding(saved >= 0.169, told + f"against {_accuracy(best):.4f} accuracy")


def largest_saves(points: Sequence[Point]) -> Finding:
    """The largest published Δ against σ_5; the largest of all beside it."""
    every = one(chosen(points, kind="periodic"), "periodic")
    dynamic = sorted(
        chosen(points, kind="dynamic"), key=lambda p: float(p.spec["operator"]["delta"])
    )
    theirs = [point for point in dynamic if point.spec["operator"]["delta"] in PUBLISHED]
    if not theirs:
        raise UndecidedError("no run with a published Δ")
    saved = [(point, 1 - point.bytes / every.bytes) for point in (theirs[-1], dynamic[-1])]
    told = ", ".join(f"{point.name} saves {share:.0%}" for point, share in saved)
    return Finding(saved[0][1] > 0.8, told)


def published_front(points: Sequence[Point]) -> Sequence[Drawing]:
    """The front, with the published Δ marked."""
    return front(points, PUBLISHED)


EXPERIMENT = Experiment(
    id="E5",
    title="Against FedAvg on MNIST",
    shows=__doc__,
    plan=plan,
    claims=(
        Claim("E5.1", "FedAvg's bytes grow linearly, dynamic averaging's in steps",
              "FedAvg under 2 % off a straight line, dynamic over 2 %", linear_and_in_steps),
        Claim("E5.2", "a dynamic run sends over 50 % less than the best FedAvg at little more loss",
              "> 50 % at ≤ +8.3 % loss and ≤ −1.9 % accuracy", half_for_little),
        Claim("E5.3", "a dynamic run sends ≥ 16.9 % less than the best FedAvg at the same accuracy",
              "≥ 16.9 %", less_at_same_accuracy, decided_at="full"),
        Claim("E5.4", "the largest Δ saves over 80 % of periodic averaging's bytes", "> 80 %",
              largest_saves, decided_at="full"),
    ),
    pictures=(published_front, over_time, set_sizes, causes),
)  # fmt: skip
