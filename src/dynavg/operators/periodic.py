"""Periodic averaging σ_b (continuous averaging is b = 1), and its limit, no synchronisation."""

from dataclasses import dataclass
from typing import Literal

from dynavg.arguments import check_choice, check_count
from dynavg.protocol.messages import Cause, Unasked
from dynavg.protocol.operator import Ask, Average, Move, Publish, Rest, Situation, Stage

__all__ = ["NoSync", "Periodic", "Stateless"]


@dataclass(frozen=True, slots=True)
class Stateless:
    """The state of an operator that keeps none."""


@dataclass(frozen=True, slots=True)
class Periodic:
    """Every `every` rounds all learners send unasked, and the mean goes to all.

    >>> Periodic(every=0)
    Traceback (most recent call last):
    ValueError: Periodic(every=0): a whole number >= 1 is wanted
    """

    every: int = 1
    weights: Literal["equal", "samples"] = "equal"

    measures = False

    def __post_init__(self) -> None:
        check_count("Periodic", "every", self.every)
        check_choice("Periodic", "weights", self.weights, ("equal", "samples"))

    def unasked(self, distance: float) -> Unasked:
        """Everybody sends at every check."""
        return Unasked.REPLY

    def init(self) -> Stateless:
        """No state."""
        return Stateless()

    def step(self, state: Stateless, situation: Situation) -> tuple[Stateless, Move]:
        """Collect from all, average, give to all."""
        match situation.stage:
            case Stage.OPENED:
                members = situation.members
                return state, Ask(members, unasked=True) if members else Rest()
            case Stage.COLLECTED:
                return state, Average(measure=False)
            case Stage.AVERAGED:  # pragma: no branch
                return state, Publish(situation.members, as_reference=True, cause=Cause.SCHEDULED)


@dataclass(frozen=True, slots=True)
class NoSync:
    """Never a word: every learner stays alone."""

    every = None
    weights = "equal"
    measures = False

    def unasked(self, distance: float) -> Unasked:
        """Nothing."""
        return Unasked.NOTHING

    def init(self) -> Stateless:
        """No state."""
        return Stateless()

    def step(self, state: Stateless, situation: Situation) -> tuple[Stateless, Move]:
        """Nothing."""
        return state, Rest()
