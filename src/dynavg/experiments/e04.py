"""E4, Figure A.1: Δ = 0.3 against averaging in every round, over a long time.

A hundred learners, 28,000 samples each (40 epochs of MNIST together).
"""

from collections.abc import Sequence

import numpy as np

from dynavg.experiments.claims import NO_WORSE, Claim, Finding, Scale, one
from dynavg.experiments.experiment import Experiment
from dynavg.experiments.problems import mnist
from dynavg.experiments.spec import Spec
from dynavg.report.charts import causes, front, over_time, set_sizes
from dynavg.report.points import Curves, Point, chosen, curves_of

__all__ = ["EXPERIMENT"]

EARLY, LATE = 500, 3000
"""Samples per learner up to which, and from which on, communication is compared."""

SIZES: dict[Scale, dict[str, int]] = {
    "smoke": {"learners": 3, "rounds": 6},
    "quick": {"learners": 10, "rounds": 500},
    "full": {"learners": 100, "rounds": 2800},
}


def plan(scale: Scale) -> list[Spec]:
    """Two runs."""
    both = [{"kind": "periodic", "every": 1}, {"kind": "dynamic", "delta": 0.3, "every": 1}]
    return [mnist(both, title="dynamic against continuous averaging", **SIZES[scale])]


def _both(points: Sequence[Point]) -> tuple[Point, Point]:
    return one(chosen(points, kind="dynamic"), "dynamic"), one(
        chosen(points, kind="periodic"), "periodic"
    )


def _sent(curves: Curves, first: float, last: float) -> float:
    """Bytes between two numbers of samples."""
    ends = np.interp([first, last], curves.samples, curves.bytes, left=0.0)
    return float(ends[1] - ends[0])


def more_at_first(points: Sequence[Point]) -> Finding:
    """Bytes up to EARLY samples."""
    dynamic, periodic = (curves_of(point.runs[0]) for point in _both(points))
    share = _sent(dynamic, 0, EARLY) / _sent(periodic, 0, EARLY)
    return Finding(share > 1, f"{share:.3f} times the bytes of b = 1")


def less_later(points: Sequence[Point]) -> Finding:
    """Bytes from LATE samples on."""
    dynamic, periodic = (curves_of(point.runs[0]) for point in _both(points))
    end = float(periodic.samples[-1])
    sent = _sent(periodic, LATE, end)
    share = _sent(dynamic, LATE, end) / sent if sent else float("nan")
    return Finding(share < 1, f"{share:.3f} times the bytes of b = 1")


def ends_better(points: Sequence[Point]) -> Finding:
    """Loss and bytes at the end."""
    dynamic, periodic = _both(points)
    told = (
        f"loss {dynamic.loss:.4g} against {periodic.loss:.4g}, "
        f"{dynamic.bytes / periodic.bytes:.0%} of the bytes"
    )
    less = dynamic.loss <= periodic.loss * (1 + NO_WORSE)
    return Finding(less and dynamic.bytes < periodic.bytes, told)


EXPERIMENT = Experiment(
    id="E4",
    title="Dynamic against continuous averaging over time (Figure A.1)",
    shows=__doc__,
    plan=plan,
    claims=(
        Claim("E4.1", f"dynamic averaging sends more in the first {EARLY} samples", "> 1",
              more_at_first, decided_at="full"),
        Claim("E4.2", f"and less after {LATE} samples", "< 1", less_later, decided_at="full"),
        Claim("E4.3", "it ends with no more loss and with fewer bytes",
              "loss at most 1 % higher, fewer bytes", ends_better, decided_at="full"),
    ),
    pictures=(over_time, front, set_sizes, causes),
)  # fmt: skip
