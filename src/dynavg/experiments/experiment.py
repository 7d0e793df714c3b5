"""What an experiment of the paper consists of: data and functions, no behaviour of its own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dynavg.experiments.claims import Claim, Scale
from dynavg.experiments.running import Also
from dynavg.experiments.spec import Spec
from dynavg.report.charts import Picture
from dynavg.report.points import Point

__all__ = ["Album", "Experiment", "geometric"]

Album = Callable[[Sequence[Point]], Sequence[tuple[str, Path]]]
"""Pictures that are no charts, each with its caption: files that `also` wrote."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """One experiment. `plan` gives its specs at a scale; `pictures` draw its figures from points;
    `also` finds out about each run what its records alone do not tell.
    """

    id: str
    title: str
    shows: str
    plan: Callable[[Scale], Sequence[Spec]]
    claims: tuple[Claim, ...]
    pictures: tuple[Picture, ...]
    also: Also | None = None
    album: Album | None = None


def geometric(first: float, last: float, steps: int) -> list[float]:
    """`steps` numbers from `first` to `last`, each the same factor above the one before, to two
    digits.

    >>> geometric(0.1, 10, 5)
    [0.1, 0.32, 1.0, 3.2, 10.0]
    """
    ratio = (last / first) ** (1 / (steps - 1))
    return [float(f"{first * ratio**step:.2g}") for step in range(steps)]
