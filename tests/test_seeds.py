"""Randomness is a function of its coordinates, and of nothing else."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynavg import seeds

COORDINATES = ("seed", "name", "learner", "round", "call")
PLACE = {"seed": 7, "name": "data", "learner": 3, "round": 5, "call": 2}
ELSEWHERE = {"seed": 8, "name": "date", "learner": 4, "round": 6, "call": 3}


def numbers(size=8, **place):
    return tuple(seeds.generator(**place).integers(1 << 62, size=size).tolist())


def test_the_same_place_gives_the_same_numbers_whatever_was_drawn_before():
    first = numbers(**PLACE)
    np.random.default_rng(0).random(100)
    numbers(**ELSEWHERE)
    assert numbers(**PLACE) == first
    assert numbers(size=20, **PLACE)[:8] == first


@pytest.mark.parametrize("coordinate", COORDINATES)
def test_another_coordinate_gives_other_numbers(coordinate):
    other = PLACE | {coordinate: ELSEWHERE[coordinate]}
    assert not set(numbers(**PLACE)) & set(numbers(**other))


def test_neighbouring_places_have_nothing_in_common():
    seen = set()
    for learner, round, call in product(range(10), repeat=3):
        seen.update(numbers(4, seed=1, name="data", learner=learner, round=round, call=call))
    assert len(seen) == 4 * 1000


def test_coordinates_do_not_run_into_each_other():
    assert numbers(seed=1, name="1/a") != numbers(seed=11, name="/a")
    assert numbers(seed=0, name="a", learner=1) != numbers(seed=0, name="a", round=1)
    assert numbers(seed=0, name="a", call=1) != numbers(seed=0, name="a", round=1)


def test_a_long_draw_does_not_reach_the_next_call():
    long = numbers(100_000, seed=0, name="a", call=0)
    assert not set(long) & set(numbers(1000, seed=0, name="a", call=1))


@pytest.mark.parametrize("coordinate", ["learner", "round", "call"])
@pytest.mark.parametrize(("value", "other"), [(-1, -2), (2**63 + 1, 2**63 + 2)])
def test_coordinates_may_be_any_64_bit_number(coordinate, value, other):
    place = PLACE | {coordinate: value}
    assert numbers(**place) != numbers(**place | {coordinate: other})


def test_no_draw_depends_on_the_thread_that_makes_it():
    places = [PLACE | {"learner": learner} for learner in range(50)]
    alone = [numbers(**place) for place in places]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda place: numbers(**place), places))
    assert together == alone


def test_numpys_own_generator_is_left_alone():
    np.random.seed(3)  # noqa: NPY002
    expected = np.random.random()  # noqa: NPY002
    np.random.seed(3)  # noqa: NPY002
    numbers(**PLACE)
    assert np.random.random() == expected  # noqa: NPY002


def test_an_integer_is_a_63_bit_function_of_its_place():
    drawn = [seeds.integer(**PLACE | {"call": call}) for call in range(200)]
    assert drawn == [seeds.integer(**PLACE | {"call": call}) for call in range(200)]
    assert len(set(drawn)) == 200
    assert all(0 <= number < 2**63 for number in drawn)
    assert max(drawn) > 2**62


@settings(deadline=None)
@given(
    population=st.lists(st.integers(0, 1000), unique=True, max_size=30),
    data=st.data(),
    round=st.integers(0, 2**40),
)
def test_a_sample_is_so_many_different_members_ascending(population, data, round):
    size = data.draw(st.integers(0, len(population)))
    drawn = seeds.sample(1, "draw", population, size, round)
    assert len(drawn) == size
    assert drawn == tuple(sorted(set(drawn)))
    assert set(drawn) <= set(population)
    assert seeds.sample(1, "draw", population, size, round) == drawn


def test_a_sample_of_more_than_there_are_is_an_error():
    with pytest.raises(ValueError, match="larger"):
        seeds.sample(1, "draw", [1, 2], 3)


def test_every_pair_is_drawn_equally_often():
    """χ² with 9 degrees of freedom exceeds 27.9 once in a thousand."""
    counts = Counter(seeds.sample(2, "pairs", range(5), 2, round, 1) for round in range(5000))
    assert len(counts) == 10
    assert sum((count - 500) ** 2 / 500 for count in counts.values()) < 27.9
