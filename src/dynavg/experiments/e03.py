"""E3: MNIST with a hundred learners, 14,000 samples each.

Periodic averaging with b = 1, 2, 4 against dynamic averaging with b = 1, no synchronisation, and a
serial learner that sees all 1,400,000 samples (20 epochs). η = 0.25 for learners, 0.1 for serial.
Besides the published Δ a wider grid is run, and σ_4 and no synchronisation once more with a fixed
share of the pictures for each learner, which lets a learner memorise its share.
"""

from collections.abc import Sequence

from dynavg.experiments.claims import (
    Claim,
    Finding,
    Scale,
    UndecidedError,
    cheapest,
    each_is_beaten,
    no_worse,
    one,
)
from dynavg.experiments.experiment import Experiment
from dynavg.experiments.problems import mnist
from dynavg.experiments.spec import Settings, Spec
from dynavg.report.charts import Drawing, causes, front, over_time, set_sizes
from dynavg.report.points import Point, chosen

__all__ = ["EXPERIMENT", "PUBLISHED"]

PUBLISHED = (0.3, 0.7, 1.0)
WIDER = (2.0, 4.0, 8.0)
SIZES: dict[Scale, dict[str, int]] = {
    "smoke": {"learners": 3, "rounds": 6},
    "quick": {"learners": 10, "rounds": 250},
    "full": {"learners": 100, "rounds": 1400},
}


def plan(scale: Scale) -> list[Spec]:
    """The grid, the serial learner, and two runs with fixed shares."""
    size = SIZES[scale]
    periodic: Settings = {"kind": "periodic", "every": [1, 2, 4] if scale == "full" else [1, 4]}
    deltas = [*PUBLISHED, *WIDER] if scale == "full" else [0.3, 1.0, 4.0]
    dynamic: Settings = {"kind": "dynamic", "delta": deltas, "every": 1}
    specs = [
        mnist([periodic, dynamic, "nosync"], title="dealt", **size),
        mnist(["serial"], rate=0.1, title="serial", **size),
    ]
    if scale == "quick":
        return specs
    alone: list[Settings | str] = [{"kind": "periodic", "every": 4}, "nosync"]
    return [*specs, mnist(alone, title="fixed shares", grid={"data.share": ["fixed"]}, **size)]


def dealt(points: Sequence[Point]) -> list[Point]:
    """The runs in which every epoch is dealt out anew."""
    return [point for point in points if point.spec["data"].get("share") != "fixed"]


def beaten(points: Sequence[Point]) -> Finding:
    """Periodic against dynamic, both dealt."""
    own = dealt(points)
    return each_is_beaten(chosen(own, kind="periodic"), chosen(own, kind="dynamic"))


def half(points: Sequence[Point]) -> Finding:
    """The cheapest dynamic that matches b = 1."""
    own = dealt(points)
    most = one(chosen(own, kind="periodic", every=1), "periodic b=1")
    match = cheapest(no_worse(chosen(own, kind="dynamic"), most))
    if match is None:
        return Finding(False, f"no dynamic run has a loss as low as {most.loss:.4g}")
    share = match.bytes / most.bytes
    return Finding(0.35 <= share <= 0.65, f"{match.name}: {share:.0%} of the bytes of b = 1")


def serial_is_lowest(points: Sequence[Point]) -> Finding:
    """Serial against the best of the others."""
    serial = one(chosen(points, kind="serial"), "serial")
    best = min((p for p in points if p.kind != "serial"), key=lambda point: point.loss)
    told = f"serial {serial.loss:.4g}; lowest other: {best.name} {best.loss:.4g}"
    return Finding(serial.loss < best.loss, told)


def rare_is_worse_than_never(points: Sequence[Point]) -> Finding:
    """σ_4 against nosync, dealt and with fixed shares."""
    lines, holds = [], False
    own = dealt(points)
    for name, group in (("dealt", own), ("fixed", [p for p in points if p not in own])):
        if not group and name == "fixed":
            continue
        rare = one(chosen(group, kind="periodic", every=4), f"periodic b=4, {name}")
        never = one(chosen(group, kind="nosync"), f"nosync, {name}")
        holds |= rare.loss > never.loss
        lines.append(f"{name}: σ_4 {rare.loss:.4g}, no synchronisation {never.loss:.4g}")
    if not lines:
        raise UndecidedError("no runs")
    return Finding(holds, "; ".join(lines))


def accuracy(points: Sequence[Point]) -> Finding:
    """Serial's accuracy before learning from each sample, over the last samples."""
    serial = one(chosen(points, kind="serial"), "serial")
    last = serial.mean("accuracy_last_100")
    return Finding(abs(last - 0.99) <= 0.005, f"{last:.4f} on each stream's last 100 samples")


def published_front(points: Sequence[Point]) -> Sequence[Drawing]:
    """The front, with the published Δ marked."""
    return front(dealt(points), PUBLISHED)


CLAIMS = (
    Claim("E3.1", "for each periodic there is a dynamic with loss no worse and fewer bytes",
          "loss at most 1 % higher, fewer bytes", beaten, decided_at="full"),
    Claim("E3.2", "the dynamic run that matches b = 1 uses about half its bytes",
          "35 % to 65 % of the bytes", half, decided_at="full"),
    Claim("E3.3", "the serial learner has the lowest loss", "below all others", serial_is_lowest,
          decided_at="full"),
    Claim("E3.4", "averaging every 4 rounds is worse than no synchronisation",
          "σ_4's loss above nosync's, under either way to hand out samples",
          rare_is_worse_than_never, decided_at="full"),
    Claim("E3.5", "the serial learner's incremental accuracy is about 0.99", "0.985 to 0.995",
          accuracy, decided_at="full"),
)  # fmt: skip

EXPERIMENT = Experiment(
    id="E3",
    title="MNIST with 100 learners",
    shows=__doc__,
    plan=plan,
    claims=CLAIMS,
    pictures=(published_front, over_time, set_sizes, causes),
)
