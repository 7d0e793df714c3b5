"""Checks of arguments that several public functions of `dynavg.data` share.

They exist so that one kind of mistake gives one kind of message: what came, what is allowed,
where. Nothing here knows of streams or datasets.
"""

from collections.abc import Iterable

from torch import Tensor

__all__ = ["described", "probability", "rounds_ascending", "whole"]


def described(value: object) -> str:
    """What came, in words short enough for an error message.

    >>> described((1, "a")), described([]), described(None)
    ('a tuple of 2 items (int, str)', 'an empty list', 'None')
    """
    if value is None:
        return "None"
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)} and type {value.dtype}"
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
