"""E6: who speaks when the world changes.

A hundred learners, 5,000 samples each, from a random graphical model that is drawn anew with
probability 0.001 for each sample of a learner's stream. All protocols of a seed see the same
samples and drifts. Besides the published Δ a wider grid is run.
"""

from collections.abc import Sequence

import numpy as np

from dynavg.experiments.claims import (
    Claim,
    Finding,
    Scale,
    UndecidedError,
    cheapest,
    each_is_beaten,
    no_worse,
)
from dynavg.experiments.experiment import Experiment, geometric
from dynavg.experiments.problems import drift
from dynavg.experiments.rates import DRIFT
from dynavg.experiments.spec import Settings, Spec
from dynavg.records import Record
from dynavg.report.charts import Drawing, causes, divergence, front, over_time, set_sizes
from dynavg.report.points import Point, chosen, curves_of

__all__ = ["EXPERIMENT"]

PUBLISHED = (0.3, 0.7, 1.0)
ALIKE = 0.05
"""Losses are alike if one is at most this share above the other."""
WINDOW = 15
"""Rounds after a drift, and before the next, whose bytes are compared."""
SIZES: dict[Scale, dict[str, int]] = {
    "smoke": {"learners": 4, "rounds": 40},
    "quick": {"learners": 20, "rounds": 500},
    "full": {"learners": 100, "rounds": 500},
}
WIDER: dict[Scale, list[float]] = {
    "smoke": [],
    "quick": geometric(0.003, 30, 13),
    "full": geometric(0.003, 30, 17),
}
SEEDS = {"smoke": (0,), "quick": (0, 1), "full": (0, 1, 2, 3, 4)}


def plan(scale: Scale) -> list[Spec]:
    """Periodic and dynamic, none, and serial."""
    operators: list[Settings | str] = [
        {"kind": "periodic", "every": [1, 2, 4]},
        {"kind": "dynamic", "delta": sorted({*PUBLISHED, *WIDER[scale]}), "every": 1},
        "nosync",
        "serial",
    ]
    size = SIZES[scale]
    return [
        drift(operators, rate=DRIFT, title="drift", divergence=True, seeds=SEEDS[scale], **size)
    ]


def beaten(points: Sequence[Point]) -> Finding:
    """Periodic against dynamic."""
    return each_is_beaten(chosen(points, kind="periodic"), chosen(points, kind="dynamic"))


def ten_times_fewer(points: Sequence[Point]) -> Finding:
    """The largest ratio of bytes between a periodic run and a dynamic one with a loss alike."""
    ratios = []
    for periodic in chosen(points, kind="periodic"):
        match = cheapest(no_worse(chosen(points, kind="dynamic"), periodic, ALIKE))
        if match is not None and match.bytes:
            ratios.append((periodic.bytes / match.bytes, periodic, match))
    if not ratios:
        raise UndecidedError("no dynamic run has a loss alike a periodic one's")
    ratio, periodic, match = max(ratios, key=lambda entry: entry[0])
    told = (
        f"{ratio:.1f} times fewer for {match.name} (loss {match.loss:.4g}) than {periodic.name} "
        f"({periodic.loss:.4g})"
    )
    return Finding(ratio >= 8, told)


def rises_and_falls(points: Sequence[Point]) -> Finding:
    """Bytes just after each drift against those just before the next, for each dynamic run."""
    lines, holds = [], True
    for point in chosen(points, kind="dynamic"):
        if point.diverged or not point.bytes:
            continue
        pairs = [pair for run in point.runs for pair in _after_and_before(run)]
        if not pairs:
            continue
        after, before = (float(np.sum(column)) for column in zip(*pairs, strict=True))
        more = sum(a > b for a, b in pairs)
        holds &= after > before and more >= len(pairs) / 2
        ratio = f"{after / before:.1f}" if before else "∞"
        lines.append(f"{point.name}: {ratio} times the bytes, in {more} of {len(pairs)} stretches")
    if not lines:
        raise UndecidedError("no two drifts are far enough apart")
    return Finding(holds, "; ".join(lines))


def _after_and_before(run: Record) -> list[tuple[float, float]]:
    """Bytes of the WINDOW rounds after each drift, and of those before the next one or the end."""
    sent = np.diff(curves_of(run).bytes, prepend=0.0)
    rounds = sorted({int(drift["round"]) for drift in run.summary["drifts"]})
    ends = [*rounds, len(sent) + 1][1:]
    return [
        (
            float(sent[first - 1 : first - 1 + WINDOW].sum()),
            float(sent[end - 1 - WINDOW : end - 1].sum()),
        )
        for first, end in zip(rounds, ends, strict=True)
        if end - first >= 2 * WINDOW
    ]


def published_front(points: Sequence[Point]) -> Sequence[Drawing]:
    """The front, with the published Δ marked."""
    return front(points, PUBLISHED)


def some_over_time(points: Sequence[Point]) -> Sequence[Drawing]:
    """Curves of the published grid only: more lines cannot be told apart."""
    shown = [p for p in points if p.kind != "dynamic" or p.spec["operator"]["delta"] in PUBLISHED]
    return over_time(shown)


EXPERIMENT = Experiment(
    id="E6",
    title="Concept drift",
    shows=__doc__,
    plan=plan,
    claims=(
        Claim("E6.1", "for each periodic there is a dynamic with loss no worse and fewer bytes",
              "loss at most 1 % higher, fewer bytes", beaten),
        Claim("E6.2", "up to 10 times fewer bytes at a loss alike",
              "≥ 8 times fewer at a loss at most 5 % higher", ten_times_fewer),
        Claim("E6.3", "synchronisations rise right after each drift and fall until the next",
              f"more bytes in the {WINDOW} rounds after a drift than in the {WINDOW} before the "
              "next, in sum and in at least half of the stretches, for every Δ", rises_and_falls),
    ),
    pictures=(published_front, some_over_time, set_sizes, causes, divergence),
)  # fmt: skip
