"""Points with the numbers that a test wants, without running anything."""

from pathlib import Path
from typing import Any

from dynavg.records import Record
from dynavg.report.points import Point, points_of


def run(loss: float, sent: float, *, seed: int = 0, **operator: Any) -> Record:
    """A finished run that came to this loss and these bytes."""
    name = " ".join(str(value) for value in operator.values())
    summary = {"loss_per_learner": loss, "bytes": {"total": sent}, "learners": 1, "seconds": 1.0}
    return Record(Path(name), {"name": name, "operator": operator, "seed": seed}, summary)


def diverged(**operator: Any) -> Record:
    """A run that ended before its time."""
    told = {"diverged": {"learner": 1, "round": 2, "what": "the loss"}}
    return Record(Path("x"), {"name": "x", "operator": operator, "seed": 0}, told)


def points(*runs: Record) -> list[Point]:
    """The points that these runs make."""
    return points_of(runs)
