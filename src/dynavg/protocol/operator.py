"""What the coordinator asks of a synchronisation operator, and what an operator may answer.

An operator decides whom next and when it is enough. It is a pure pair: `init()` gives its state,
`step(state, situation)` the next state and one move. It sees ids and scalars, keeps nothing, draws
randomness from coordinates only, and never waits: collecting, deadlines and membership belong to
the coordinator. The operators themselves live in `dynavg.operators`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from dynavg.protocol.messages import Cause, Unasked


class Stage(Enum):
    """Where a resolution stands when the operator is asked for its move."""

    OPENED = "opened"
    COLLECTED = "collected"
    AVERAGED = "averaged"


@dataclass(frozen=True, slots=True)
class Situation:
    """All that an operator may know.

    `members` are those who can still take part in this resolution, ascending; `held` is 𝓑 in
    joining order; `violators` is V; `crossed` counts violators that joined V since the last move,
    because their violation crossed a query; `queries` counts the queries of this resolution so far.
    """

    seed: int
    round: int
    stage: Stage
    members: tuple[int, ...]
    violators: tuple[int, ...] = ()
    held: tuple[int, ...] = ()
    crossed: int = 0
    queries: int = 0
    distance: float | None = None
    last_synced: Mapping[int, int] = field(default_factory=dict)

    @property
    def rest(self) -> tuple[int, ...]:
        """The members outside 𝓑, ascending."""
        held = frozenset(self.held)
        return tuple(id for id in self.members if id not in held)


@dataclass(frozen=True, slots=True)
class Rest:
    """Nothing to do at this check."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Get the models of these members into 𝓑; `unasked` if they send without a query."""

    ids: tuple[int, ...]
    unasked: bool = False


@dataclass(frozen=True, slots=True)
class Average:
    """Average 𝓑; `measure` wants the squared distance of the result to the reference."""

    measure: bool


@dataclass(frozen=True, slots=True)
class Publish:
    """Send the average to these members and end the resolution."""

    ids: tuple[int, ...]
    as_reference: bool
    cause: Cause


Move = Rest | Ask | Average | Publish


class Operator(Protocol):
    """A synchronisation operator. Its state is a frozen dataclass of plain numbers of its own:
    whoever carries it does not look inside.
    """

    @property
    def every(self) -> int | None:
        """The paper's b: rounds between two checks. None for an operator that never checks."""
        ...

    @property
    def weights(self) -> str:
        """Whether models count alike ("equal") or by the samples behind them ("samples")."""
        ...

    @property
    def measures(self) -> bool:
        """Whether learners must know their distance to the reference at a check."""
        ...

    def unasked(self, distance: float) -> Unasked:
        """What a learner at this squared distance from the reference says at a check."""
        ...

    def init(self) -> Any:
        """The state before the first check."""
        ...

    def step(self, state: Any, situation: Situation) -> tuple[Any, Move]:
        """The next state and one move."""
        ...
