"""Which learners, and how many, each augmentation strategy asks next."""

from collections import Counter
from dataclasses import replace

import pytest

from dynavg.operators.augmentation import STRATEGIES
from tests.operators.situations import averaged

# m, |𝓑| -> how many are asked
SIZES = {
    "random_doubling": {(10, 1): 1, (10, 3): 3, (10, 5): 5, (10, 6): 4, (10, 9): 1},
    "random_one": {(10, 1): 1, (10, 5): 1, (10, 9): 1},
    "all": {(10, 1): 9, (10, 9): 1},
    # 3·|𝓑| < m/2: twice as many as 𝓑 holds; else everyone.
    "tripling_half": {
        (20, 1): 2,
        (20, 3): 6,
        (20, 4): 16,
        (18, 3): 15,
        (19, 3): 6,
        (7, 1): 2,
        (6, 1): 5,
    },
    "least_recent": {(10, 1): 1, (10, 3): 3, (10, 6): 4},
}
CASES = [(name, m, b, size) for name, sizes in SIZES.items() for (m, b), size in sizes.items()]


def test_every_strategy_has_sizes_here():
    assert SIZES.keys() == STRATEGIES.keys()


@pytest.mark.parametrize(("name", "members", "held", "size"), CASES)
def test_a_strategy_asks_so_many(name, members, held, size):
    assert len(STRATEGIES[name](averaged(members, held=range(held)))) == size


@pytest.mark.parametrize(
    ("name", "queries"),
    [
        ("random_doubling", [1, 2, 4, 8, 4]),
        ("tripling_half", [2, 6, 11]),
        ("least_recent", [1, 2, 4, 8, 4]),
        ("all", [19]),
        ("random_one", [1] * 19),
    ],
)
def test_from_one_violator_among_twenty_the_balancing_set_grows(name, queries):
    held = (7,)
    for number, size in enumerate(queries):
        asked = STRATEGIES[name](averaged(20, held, queries=number))
        assert len(asked) == size
        held += asked
    assert sorted(held) == list(range(20))


def test_least_recent_asks_those_synchronised_longest_ago_and_the_never_synchronised_first():
    situation = averaged(8, held=(0, 1, 2), last_synced={3: 9, 4: 2, 5: 30, 6: 2})
    assert STRATEGIES["least_recent"](situation) == (4, 6, 7)  # rounds 2, 2, never


def test_least_recent_breaks_ties_by_id():
    situation = averaged(8, held=(3, 5), last_synced=dict.fromkeys(range(8), 4))
    assert STRATEGIES["least_recent"](situation) == (0, 1)


DRAWN = ["random_doubling", "random_one", "tripling_half"]


@pytest.mark.parametrize("name", DRAWN)
def test_a_draw_is_another_one_in_another_round_run_or_query(name):
    situation = averaged(1000, held=(0,))
    others = [
        replace(situation, round=2),
        replace(situation, seed=1),
        replace(situation, queries=1),
    ]
    draws = [STRATEGIES[name](other) for other in (situation, *others)]
    assert len(set(draws)) == 4


@pytest.mark.parametrize("name", DRAWN)
def test_every_member_of_the_rest_is_drawn_equally_often(name):
    """χ² with 7 degrees of freedom exceeds 24.3 once in a thousand; draws without replacement
    spread less than that.
    """
    held, rest = (2, 5, 9), (0, 1, 3, 4, 6, 7, 8, 10)
    members = tuple(range(11))
    if name == "tripling_half":  # a small 𝓑 in a larger fleet, or it asks everyone
        held, rest = (2,), (0, 1, 3, 4, 5, 6, 7, 8)
        members = tuple(range(9))
    counts = Counter(
        id
        for round in range(1, 2001)
        for id in STRATEGIES[name](averaged(members, held, round=round))
    )
    assert counts.keys() == set(rest)
    mean = counts.total() / len(rest)
    assert sum((count - mean) ** 2 / mean for count in counts.values()) < 24.3
