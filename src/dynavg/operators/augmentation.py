"""Whom to ask next when 𝓑's average is still too far from the reference.

A strategy is a pure function from the situation to the ids to query, all outside 𝓑 and at least
one. To add one: write the function, add its line to `STRATEGIES`.
"""

from collections.abc import Callable

from dynavg import seeds
from dynavg.protocol.operator import Situation

__all__ = ["STRATEGIES", "Strategy"]

Strategy = Callable[[Situation], tuple[int, ...]]


def _random(situation: Situation, size: int) -> tuple[int, ...]:
    rest = situation.rest
    return seeds.sample(
        situation.seed,
        "augmentation",
        rest,
        min(size, len(rest)),
        round=situation.round,
        call=situation.queries,
    )


def random_doubling(situation: Situation) -> tuple[int, ...]:
    """As many new learners as 𝓑 holds."""
    return _random(situation, len(situation.held))


def random_one(situation: Situation) -> tuple[int, ...]:
    """One new learner."""
    return _random(situation, 1)


def everyone(situation: Situation) -> tuple[int, ...]:
    """All that are left: a first failed balancing goes straight to full."""
    return situation.rest


def tripling_half(situation: Situation) -> tuple[int, ...]:
    """Twice as many new learners as 𝓑 holds, everyone as soon as 𝓑 would reach m/2: what the
    authors' later platform does.
    """
    tripled = 3 * len(situation.held)
    if 2 * tripled >= len(situation.members):
        return situation.rest
    return _random(situation, tripled - len(situation.held))


def least_recent(situation: Situation) -> tuple[int, ...]:
    """As many as 𝓑 holds, those synchronised longest ago first, ties by id."""
    by_age = sorted(situation.rest, key=lambda id: (situation.last_synced.get(id, 0), id))
    return tuple(sorted(by_age[: len(situation.held)]))


STRATEGIES: dict[str, Strategy] = {
    "random_doubling": random_doubling,
    "random_one": random_one,
    "all": everyone,
    "tripling_half": tripling_half,
    "least_recent": least_recent,
}
