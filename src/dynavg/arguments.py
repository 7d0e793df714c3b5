"""What arguments may be: one kind of mistake gives one kind of message.

Each check names what came, what is allowed and where. It happens once, where data comes in: in the
constructors of operators, in `simulate`, in `dynavg.data`, in specs. No tensors are needed for it.
"""

import math
from collections.abc import Iterable
from numbers import Integral, Real

__all__ = [
    "check_choice",
    "check_count",
    "check_number",
    "described",
    "probability",
    "rounds_ascending",
    "whole",
]


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


def described(value: object) -> str:
    """What came, in words short enough for an error message.

    >>> described((1, "a")), described([]), described(None)
    ('a tuple of 2 items (int, str)', 'an empty list', 'None')
    """
    if value is None:
        return "None"
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        kind = "tensor" if hasattr(value, "requires_grad") else type(value).__name__
        return f"a {kind} of shape {tuple(value.shape)} and type {value.dtype}"
    if isinstance(value, list | tuple):
        kind = type(value).__name__
        if not value:
            return f"an empty {kind}"
        names = ", ".join(type(item).__name__ for item in value[:4])
        return f"a {kind} of {len(value)} items ({names}{', …' if len(value) > 4 else ''})"
    if isinstance(value, bool | int | float | str):
        return f"the {type(value).__name__} {value!r}"
    return f"an object of type {type(value).__name__}"


def whole(name: str, value: object, least: int) -> int:
    """`value`, if it is a whole number of at least `least`.

    >>> whole("learners", 3, least=1)
    3
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number (int), but is {described(value)}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, but is {value}")
    return value


def probability(name: str, value: object) -> float:
    """`value`, if it is a probability.

    >>> probability("probability", 0.25)
    0.25
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number in [0, 1], but is {described(value)}")
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must lie in [0, 1], but is {value}")
    return float(value)


def rounds_ascending(name: str, value: object) -> tuple[int, ...]:
    """`value` as a tuple, if its entries are rounds at which something may change: 2, 3, ….

    >>> rounds_ascending("drifts", [5, 9])
    (5, 9)
    """
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise TypeError(f"{name} must be rounds, such as (100, 250), but is {described(value)}")
    rounds = tuple(whole(f"{name}[{place}]", entry, 2) for place, entry in enumerate(value))
    for place in range(1, len(rounds)):
        if rounds[place] <= rounds[place - 1]:
            raise ValueError(
                f"{name} must ascend, but {name}[{place}] = {rounds[place]} "
                f"follows {rounds[place - 1]}"
            )
    return rounds
