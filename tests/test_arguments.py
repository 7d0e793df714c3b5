"""Checks of arguments: what passes, and what the message says where something does not."""

import math
import re
from fractions import Fraction

import numpy as np
import pytest

from dynavg.arguments import check_choice, check_count, check_number


@pytest.mark.parametrize("value", [1, 7, np.int32(4), np.uint8(255)])
def test_a_count_is_a_whole_number_from_one_and_comes_back_as_int(value):
    count = check_count("Here", "name", value)
    assert count == value
    assert type(count) is int


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (0, ValueError),
        (-4, ValueError),
        (np.int64(0), ValueError),
        (2.0, TypeError),
        (True, TypeError),
        ("3", TypeError),
        (None, TypeError),
        (Fraction(4, 2), TypeError),
    ],
)
def test_what_is_no_count_is_named_with_where_it_came(value, error):
    message = re.escape(f"Here(name={value!r}): a whole number >= 1 is wanted")
    with pytest.raises(error, match=f"^{message}$"):
        check_count("Here", "name", value)


@pytest.mark.parametrize(
    "value", [0, -2, 1.5, math.inf, -math.inf, np.float32(0.5), Fraction(1, 4)]
)
def test_a_number_comes_back_as_float_whatever_its_range(value):
    number = check_number("Here", "name", value, "anything")
    assert number == value
    assert type(number) is float


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (math.nan, ValueError),
        (np.float64("nan"), ValueError),
        (False, TypeError),
        ("1", TypeError),
        (1j, TypeError),
        (None, TypeError),
    ],
)
def test_what_is_no_number_is_named_with_what_is_wanted(value, error):
    message = re.escape(f"Here(name={value!r}): a number in [2, 3] is wanted")
    with pytest.raises(error, match=f"^{message}$"):
        check_number("Here", "name", value, "a number in [2, 3]")


def test_a_choice_is_one_of_the_allowed_words():
    check_choice("Here", "name", "b", iter(["a", "b"]))


@pytest.mark.parametrize("value", ["c", "", "A", None, 1])
def test_what_is_no_choice_is_named_with_the_choices(value):
    message = re.escape(f"Here(name={value!r}): allowed are 'a', 'b'")
    with pytest.raises(ValueError, match=f"^{message}$"):
        check_choice("Here", "name", value, {"a": 1, "b": 2})
