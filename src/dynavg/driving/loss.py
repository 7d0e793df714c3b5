"""The paper's loss of a driven model, L_dd, and its boundary cases.

With t the seconds driven, c how often a sideline was crossed, t_line the seconds on it, and t_max,
c_max the largest of all compared models:

    L_dd = λ (t_max − t) / t_max + μ c / c_max + (1 − μ − λ) t_line / t,   λ = 0.8, μ = 0.15.

The paper leaves these cases open; here

- a ride that finished its laps has lost no time, even if a slower line took longer: first term 0;
- where no model crossed a line (c_max = 0), the second term is 0;
- a model that did not drive at all (t = 0) counts as on the line all the time: third term 1;
- where no model drove at all (t_max = 0), the first term is 1.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dynavg.driving.judging import Driven

LAMBDA, MU = 0.8, 0.15


@dataclass(frozen=True, slots=True)
class Score:
    """A model's L_dd over its starts; `spread` is the standard deviation between starts."""

    loss: float
    spread: float
    per_start: tuple[float, ...]
    finished: int  # how many of the rides finished all laps


def driving_loss(
    seconds: float,
    crossings: int,
    line_seconds: float,
    *,
    longest: float,
    most_crossings: int,
    finished: bool = False,
) -> float:
    """L_dd of one ride, `longest` and `most_crossings` being t_max and c_max.

    >>> round(driving_loss(30.0, 2, 3.0, longest=60.0, most_crossings=4), 6)
    0.48
    """
    if not (0 <= line_seconds <= seconds and 0 <= crossings <= most_crossings):
        raise ValueError(
            f"a ride of {seconds} s, {line_seconds} s of them on a line, with {crossings} of at "
            f"most {most_crossings} crossings: need 0 <= line <= all and 0 <= crossings <= most"
        )
    if seconds > longest:
        raise ValueError(f"the ride took {seconds} s, more than the longest ride's {longest} s")
    lost = (longest - seconds) / longest if longest > 0 else 1.0
    crossed = crossings / most_crossings if most_crossings > 0 else 0.0
    on_line = line_seconds / seconds if seconds > 0 else 1.0
    return LAMBDA * (0.0 if finished else lost) + MU * crossed + (1 - MU - LAMBDA) * on_line


def scores(rides: Mapping[str, Sequence[Driven]]) -> dict[str, Score]:
    """The score of every model, from its rides from the same starts in the same order.

    t_max and c_max are taken over the models, start by start: a long track does not outweigh a
    short one, and a hard day is compared with the same day only.
    """
    begin = {name: [ride.start for ride in driven] for name, driven in rides.items()}
    first = next(iter(begin.values()), [])
    if not first:
        raise ValueError("no rides to score: every model needs at least one")
    for name, its in begin.items():
        if its != first:
            raise ValueError(f"{name} drove from {len(its)} starts that are not those of the first")
    losses: dict[str, list[float]] = {name: [] for name in rides}
    for k in range(len(first)):
        here = {name: driven[k] for name, driven in rides.items()}
        longest = max(ride.seconds for ride in here.values())
        most = max(ride.crossings for ride in here.values())
        for name, ride in here.items():
            losses[name].append(
                driving_loss(
                    ride.seconds,
                    ride.crossings,
                    ride.line_seconds,
                    longest=longest,
                    most_crossings=most,
                    finished=ride.finished,
                )
            )
    return {
        name: _score(values, sum(ride.finished for ride in rides[name]))
        for name, values in losses.items()
    }


def pooled(scores: Sequence[Score]) -> Score:
    """The score of several models over all their starts, such as of cars that each have their own.

    >>> pooled([Score(0.2, 0.0, (0.2,), 1), Score(0.4, 0.0, (0.4,), 0)]).finished
    1
    """
    return _score(
        [value for score in scores for value in score.per_start],
        sum(score.finished for score in scores),
    )


def _score(values: Sequence[float], finished: int) -> Score:
    return Score(statistics.fmean(values), statistics.pstdev(values), tuple(values), finished)
