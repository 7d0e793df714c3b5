"""Federated averaging (McMahan et al.): a random share of the learners, on schedule."""

import math
from dataclasses import dataclass
from typing import Literal

from dynavg import seeds
from dynavg.arguments import check_choice, check_count, check_number
from dynavg.operators.periodic import Stateless
from dynavg.protocol.messages import Cause, Unasked
from dynavg.protocol.operator import Ask, Average, Move, Publish, Rest, Situation, Stage

__all__ = ["FedAvg"]

_FRACTION = "a number in (0, 1]"


@dataclass(frozen=True, slots=True)
class FedAvg:
    """Every `every` rounds a `fraction` of the learners is queried; their mean goes to them
    (`receivers="participants"`) or to all.

    >>> FedAvg(every=5, fraction=0.3).participants(30)
    9
    """

    every: int
    fraction: float
    receivers: Literal["participants", "all"] = "participants"
    weights: Literal["equal", "samples"] = "equal"

    measures = False

    def __post_init__(self) -> None:
        check_count("FedAvg", "every", self.every)
        fraction = check_number("FedAvg", "fraction", self.fraction, _FRACTION)
        if not 0 < fraction <= 1:
            raise ValueError(f"FedAvg(fraction={self.fraction!r}): {_FRACTION} is wanted")
        check_choice("FedAvg", "receivers", self.receivers, ("participants", "all"))
        check_choice("FedAvg", "weights", self.weights, ("equal", "samples"))

    def participants(self, members: int) -> int:
        """⌈C·m⌉; rounded first, so that 0.07 · 100 = 7.000000000000001 does not ask for 8."""
        return math.ceil(round(self.fraction * members, 9))

    def unasked(self, distance: float) -> Unasked:
        """Learners wait to be asked."""
        return Unasked.NOTHING

    def init(self) -> Stateless:
        """No state: who is drawn depends on the round alone."""
        return Stateless()

    def step(self, state: Stateless, situation: Situation) -> tuple[Stateless, Move]:
        """Draw and query, average, give to the participants or to all."""
        members = situation.members
        match situation.stage:
            case Stage.OPENED:
                if not members:
                    return state, Rest()
                size = max(1, self.participants(len(members)))
                return state, Ask(
                    seeds.sample(situation.seed, "fedavg", members, size, situation.round)
                )
            case Stage.COLLECTED:
                return state, Average(measure=False)
            case Stage.AVERAGED:  # pragma: no branch
                full = self.receivers == "all" or len(situation.held) == len(members)
                receivers = members if full else tuple(sorted(situation.held))
                return state, Publish(receivers, as_reference=full, cause=Cause.SCHEDULED)
