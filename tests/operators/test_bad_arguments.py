"""What an operator does not accept: one message that says where, what came and what is wanted."""

import math
import re
from fractions import Fraction

import numpy as np
import pytest

from dynavg.operators import Dynamic, FedAvg, NoSync, Periodic

NUMBER, COUNT, SHARE = "a number >= 0", "a whole number >= 1", "a number in (0, 1]"
WRONG = [
    (Dynamic, {"delta": "much"}, TypeError, f"Dynamic(delta='much'): {NUMBER} is wanted"),
    (Dynamic, {"delta": None}, TypeError, f"Dynamic(delta=None): {NUMBER} is wanted"),
    (Dynamic, {"delta": True}, TypeError, f"Dynamic(delta=True): {NUMBER} is wanted"),
    (Dynamic, {"delta": 1j}, TypeError, f"Dynamic(delta=1j): {NUMBER} is wanted"),
    (Dynamic, {"delta": -0.1}, ValueError, f"Dynamic(delta=-0.1): {NUMBER} is wanted"),
    (Dynamic, {"delta": -math.inf}, ValueError, f"Dynamic(delta=-inf): {NUMBER} is wanted"),
    (Dynamic, {"delta": math.nan}, ValueError, f"Dynamic(delta=nan): {NUMBER} is wanted"),
    (Dynamic, {"every": 0}, ValueError, f"Dynamic(every=0): {COUNT} is wanted"),
    (Dynamic, {"every": 1.0}, TypeError, f"Dynamic(every=1.0): {COUNT} is wanted"),
    (Dynamic, {"reset_on_full": 1}, TypeError, "Dynamic(reset_on_full=1): True or False is wanted"),
    (
        Dynamic,
        {"augmentation": "double"},
        ValueError,
        (
            "Dynamic(augmentation='double'): allowed are 'random_doubling', 'random_one', 'all', "
            "'tripling_half', 'least_recent'"
        ),
    ),
    (
        Dynamic,
        {"weights": None},
        ValueError,
        "Dynamic(weights=None): allowed are 'equal', 'samples'",
    ),
    (
        Dynamic,
        {"distance": "l1"},
        ValueError,
        "Dynamic(distance='l1'): allowed are 'squared', 'norm'",
    ),
    (
        Dynamic,
        {"counter": "on"},
        ValueError,
        "Dynamic(counter='on'): allowed are 'at_least', 'exactly', 'off'",
    ),
    (FedAvg, {"every": -3}, ValueError, f"FedAvg(every=-3): {COUNT} is wanted"),
    (FedAvg, {"every": "5"}, TypeError, f"FedAvg(every='5'): {COUNT} is wanted"),
    (FedAvg, {"fraction": 0}, ValueError, f"FedAvg(fraction=0): {SHARE} is wanted"),
    (FedAvg, {"fraction": 1.01}, ValueError, f"FedAvg(fraction=1.01): {SHARE} is wanted"),
    (FedAvg, {"fraction": -0.5}, ValueError, f"FedAvg(fraction=-0.5): {SHARE} is wanted"),
    (FedAvg, {"fraction": math.nan}, ValueError, f"FedAvg(fraction=nan): {SHARE} is wanted"),
    (FedAvg, {"fraction": "all"}, TypeError, f"FedAvg(fraction='all'): {SHARE} is wanted"),
    (
        FedAvg,
        {"receivers": "some"},
        ValueError,
        "FedAvg(receivers='some'): allowed are 'participants', 'all'",
    ),
    (FedAvg, {"weights": "w"}, ValueError, "FedAvg(weights='w'): allowed are 'equal', 'samples'"),
    (Periodic, {"every": True}, TypeError, f"Periodic(every=True): {COUNT} is wanted"),
    (Periodic, {"every": None}, TypeError, f"Periodic(every=None): {COUNT} is wanted"),
    (
        Periodic,
        {"weights": "B"},
        ValueError,
        "Periodic(weights='B'): allowed are 'equal', 'samples'",
    ),
]
NEEDED = {Dynamic: {"delta": 1}, FedAvg: {"every": 1, "fraction": 0.5}, Periodic: {}}


@pytest.mark.parametrize(("operator", "wrong", "error", "message"), WRONG)
def test_a_wrong_argument_is_named_with_what_is_wanted(operator, wrong, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        operator(**(NEEDED[operator] | wrong))


@pytest.mark.parametrize("operator", [Dynamic, FedAvg, Periodic, NoSync])
def test_an_unknown_argument_is_an_error(operator):
    with pytest.raises(TypeError, match="period"):
        operator(**NEEDED.get(operator, {}), period=5)


def test_numbers_of_other_kinds_are_numbers():
    assert Dynamic(delta=np.float32(0.5), every=np.int64(5)).threshold == 0.5
    assert Dynamic(delta=Fraction(1, 2), distance="norm").threshold == 0.25
    assert FedAvg(every=1, fraction=Fraction(1, 3)).participants(30) == 10
    assert Dynamic(delta=math.inf).threshold == math.inf


def test_an_operator_cannot_be_changed_behind_its_check():
    with pytest.raises(AttributeError):
        Periodic().every = 0
