"""What arguments may be: one kind of mistake gives one kind of message.

Each check names what came, what is allowed and where. It happens once, where data comes in: in the
constructors of operators, in `simulate`, in specs.
"""

import math
from collections.abc import Iterable
from numbers import Integral, Real

__all__ = ["check_choice", "check_count", "check_number"]


def check_count(owner: str, name: str, value: object) -> int:
    """A whole number, at least 1.

    >>> check_count("Periodic", "every", 0)
    Traceback (most recent call last):
    ValueError: Periodic(every=0): a whole number >= 1 is wanted
    """
    wanted = f"{owner}({name}={value!r}): a whole number >= 1 is wanted"
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(wanted)
    if value < 1:
        raise ValueError(wanted)
    return int(value)


def check_number(owner: str, name: str, value: object, wanted: str) -> float:
    """A number that is not NaN; the caller tests its range and says the same `wanted`."""
    message = f"{owner}({name}={value!r}): {wanted} is wanted"
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(message)
    if math.isnan(value):
        raise ValueError(message)
    return float(value)


def check_choice(owner: str, name: str, value: object, allowed: Iterable[str]) -> None:
    """One of a few words."""
    words = tuple(allowed)
    if value not in words:
        raise ValueError(f"{owner}({name}={value!r}): allowed are {', '.join(map(repr, words))}")
