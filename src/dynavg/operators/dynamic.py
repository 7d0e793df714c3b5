"""Dynamic averaging σ_Δ,b: Algorithms 1 and 2 of the paper.

Line numbers in comments are those of PROTOCOL (docs/protocol.md), "Dynamic … at one check".
"""

from dataclasses import dataclass, replace
from typing import Literal

from dynavg.arguments import check_choice, check_count, check_number
from dynavg.operators.augmentation import STRATEGIES
from dynavg.protocol.messages import Cause, Unasked
from dynavg.protocol.operator import Ask, Average, Move, Publish, Rest, Situation, Stage

__all__ = ["Dynamic", "DynamicState"]

_DELTA = "a number >= 0"


@dataclass(frozen=True, slots=True)
class DynamicState:
    """`violations` is the paper's v; `fired` says that it has called for this full sync."""

    violations: int = 0
    fired: bool = False


@dataclass(frozen=True, slots=True)
class Dynamic:
    """Learners speak when ‖f − r‖² > `delta`; the coordinator balances before it calls everybody.

    `weights="samples"` is Algorithm 2; `distance="norm"` compares ‖f − r‖ with `delta`, as the
    authors' oldest code does; `counter` says when v violations force a full synchronisation.

    >>> Dynamic(delta=-1)
    Traceback (most recent call last):
    ValueError: Dynamic(delta=-1): a number >= 0 is wanted
    """

    delta: float
    every: int = 1
    augmentation: Literal[
        "random_doubling", "random_one", "all", "tripling_half", "least_recent"
    ] = "random_doubling"
    weights: Literal["equal", "samples"] = "equal"
    distance: Literal["squared", "norm"] = "squared"
    counter: Literal["at_least", "exactly", "off"] = "at_least"
    reset_on_full: bool = False

    measures = True

    def __post_init__(self) -> None:
        if check_number("Dynamic", "delta", self.delta, _DELTA) < 0:
            raise ValueError(f"Dynamic(delta={self.delta!r}): {_DELTA} is wanted")
        check_count("Dynamic", "every", self.every)
        check_choice("Dynamic", "augmentation", self.augmentation, STRATEGIES)
        check_choice("Dynamic", "weights", self.weights, ("equal", "samples"))
        check_choice("Dynamic", "distance", self.distance, ("squared", "norm"))
        check_choice("Dynamic", "counter", self.counter, ("at_least", "exactly", "off"))
        if not isinstance(self.reset_on_full, bool):
            raise TypeError(
                f"Dynamic(reset_on_full={self.reset_on_full!r}): True or False is wanted"
            )

    @property
    def threshold(self) -> float:
        """The largest squared distance that is no violation."""
        delta = float(self.delta)
        return delta * delta if self.distance == "norm" else delta

    def unasked(self, distance: float) -> Unasked:
        """The local condition; written so that a NaN violates it."""
        return Unasked.NOTHING if distance <= self.threshold else Unasked.VIOLATION

    def init(self) -> DynamicState:
        """v = 0."""
        return DynamicState()

    def step(self, state: DynamicState, situation: Situation) -> tuple[DynamicState, Move]:
        """One move of Algorithm 1 (or 2)."""
        match situation.stage:
            case Stage.OPENED:
                return self._open(state, situation)
            case Stage.COLLECTED:
                crossed = state.violations + situation.crossed
                return replace(state, violations=crossed), Average(measure=True)
            case Stage.AVERAGED:  # pragma: no branch
                return self._judge(state, situation)

    def _open(self, state: DynamicState, situation: Situation) -> tuple[DynamicState, Move]:
        if not situation.violators:
            return state, Rest()
        violations = state.violations + len(situation.violators)  # line 1
        fired = self._fires(violations, len(situation.members))
        rest = situation.rest
        if not rest:  # V = [m]: nobody is left to ask, the counter starts anew as in line 2
            return DynamicState(), Average(measure=True)
        if fired:  # line 2
            return DynamicState(fired=True), Ask(rest)
        return DynamicState(violations), Average(measure=True)

    def _fires(self, violations: int, members: int) -> bool:
        match self.counter:
            case "at_least":
                return violations >= members
            case "exactly":
                return violations == members
            case "off":  # pragma: no branch
                return False

    def _judge(self, state: DynamicState, situation: Situation) -> tuple[DynamicState, Move]:
        """Line 3's condition, and line 4."""
        held = tuple(sorted(situation.held))
        if situation.rest:
            assert situation.distance is not None, "line 3 asked for it"
            if situation.distance <= self.threshold:
                return state, Publish(held, as_reference=False, cause=Cause.BALANCED)
            return state, Ask(STRATEGIES[self.augmentation](situation))
        violations = state.violations
        if set(situation.violators) >= set(held):
            cause, violations = Cause.ALL_VIOLATED, 0
        elif state.fired:
            cause = Cause.COUNTER
        else:
            cause = Cause.EXHAUSTED
            violations = 0 if self.reset_on_full else violations
        return DynamicState(violations), Publish(held, as_reference=True, cause=cause)
