"""Claims as data, and how they are judged: on points over seeds, by thresholds that stand in code.

A claim looks at the points of an experiment and finds whether it holds, with the numbers that were
compared. Where the scale is too small to decide it, the verdict says so and shows the numbers all
the same; where runs are missing, too. What does not hold is reported as that.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dynavg.report.points import Point

__all__ = [
    "NO_WORSE",
    "Claim",
    "Finding",
    "Scale",
    "UndecidedError",
    "Verdict",
    "cheapest",
    "judged",
    "no_worse",
    "one",
]

Scale = Literal["smoke", "quick", "full"]
SCALES: tuple[Scale, ...] = ("smoke", "quick", "full")

NO_WORSE = 0.01
"""A loss counts as no worse than another if it is at most this share above it."""


class UndecidedError(Exception):
    """What a claim compares is not there: a run is missing or diverged."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Whether a claim holds on some runs, and the numbers that say so."""

    holds: bool
    measured: str


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim of the paper. `decided_at` is the smallest scale that can decide it."""

    id: str
    text: str
    expected: str
    judge: Callable[[Sequence[Point]], Finding]
    decided_at: Scale = "quick"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a claim; `holds` is None where it could not be decided."""

    id: str
    text: str
    expected: str
    measured: str
    holds: bool | None

    @property
    def word(self) -> str:
        """In words."""
        return {True: "holds", False: "does not hold", None: "undecided at this scale"}[self.holds]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "id": self.id,
            "text": self.text,
            "holds": self.holds,
            "verdict": self.word,
            "measured": self.measured,
            "expected": self.expected,
        }


def judged(claims: Iterable[Claim], points: Sequence[Point], scale: Scale) -> list[Verdict]:
    """A verdict for each claim.

    >>> claim = Claim("X.1", "it is so", "> 0", lambda points: Finding(True, "1"), "full")
    >>> [verdict.word for scale in ("quick", "full") for verdict in judged([claim], [], scale)]
    ['undecided at this scale', 'holds']
    """
    verdicts = []
    for claim in claims:
        decided = SCALES.index(scale) >= SCALES.index(claim.decided_at)
        try:
            finding = claim.judge(points)
        except UndecidedError as error:
            finding, decided = Finding(False, str(error)), False
        holds = finding.holds if decided else None
        verdicts.append(Verdict(claim.id, claim.text, claim.expected, finding.measured, holds))
    return verdicts


def one(points: Sequence[Point], what: str) -> Point:
    """The only one of these points, which has not diverged."""
    sound = [point for point in points if not point.diverged]
    if len(sound) != 1:
        raise UndecidedError(f"one {what} is wanted, there are {len(sound)} that did not diverge")
    return sound[0]


def no_worse(points: Iterable[Point], than: Point, slack: float = NO_WORSE) -> list[Point]:
    """Those whose loss is no worse than that point's."""
    return [point for point in points if point.loss <= (1 + slack) * than.loss]


def cheapest(points: Iterable[Point]) -> Point | None:
    """The one with the fewest bytes."""
    return min(points, key=lambda point: point.bytes, default=None)


def each_is_beaten(periodic: Sequence[Point], dynamic: Sequence[Point]) -> Finding:
    """For each periodic point there is a dynamic one with loss no worse and fewer bytes."""
    if not periodic or not dynamic:
        raise UndecidedError("there are no periodic or no dynamic runs to compare")
    lines, holds = [], True
    for point in periodic:
        best = cheapest(no_worse(dynamic, point))
        won = best is not None and best.bytes < point.bytes
        holds &= won
        if best is None:
            lines.append(f"{point.name}: loss {_loss(point)}, no dynamic as good")
        else:
            lines.append(
                f"{point.name}: loss {_loss(point)}, {best.name}: {_loss(best)} with "
                f"{best.bytes / point.bytes:.0%} of the bytes"
            )
    return Finding(holds, "; ".join(lines))


def _loss(point: Point) -> str:
    """With its spread, where there are seeds to tell it."""
    return f"{point.loss:.4g} ± {point.spread:.2g}" if len(point.runs) > 1 else f"{point.loss:.4g}"
