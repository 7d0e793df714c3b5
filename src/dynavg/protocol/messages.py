"""The vocabulary of the protocol: what happens (events) and what to do about it (instructions).

Every engine speaks it: the simulation, the fleet, a cluster. Ids and scalars only; a model travels
beside these records, never in them. What the four messages on the wire look like is `wire.py`'s.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum, StrEnum

COORDINATOR = -1
"""The coordinator's id as sender or receiver; learners count from 0."""


class MessageType(IntEnum):
    """The messages that cross the network, in the canonical order of the ledger."""

    VIOLATION = 1
    QUERY = 2
    REPLY = 3
    MODEL = 4


class What(StrEnum):
    """What a query asks for. Scalars and sketches come with the operators that need them."""

    MODEL = "model"


class How(StrEnum):
    """How models become one. Robust averages come with the operators that need them."""

    MEAN = "mean"


class Cause(StrEnum):
    """Why a resolution ended as it did; where several hold, the first in this order."""

    ALL_VIOLATED = "all violated"
    COUNTER = "counter"
    EXHAUSTED = "exhausted"
    BALANCED = "balanced"
    SCHEDULED = "scheduled"
    ABANDONED = "abandoned"


class Unasked(Enum):
    """What a learner says at a check without being asked."""

    NOTHING = "nothing"
    VIOLATION = "violation"
    REPLY = "reply"


@dataclass(frozen=True, slots=True)
class Joined:
    """A learner is in; it starts from the reference it is about to get, or from the initial one."""

    id: int


@dataclass(frozen=True, slots=True)
class Left:
    """A learner is gone: it said so, or its connection is known to be dead."""

    id: int


@dataclass(frozen=True, slots=True)
class Violated:
    """A learner's local condition failed.

    `epoch` is the reference that it measured against, `weight` is Algorithm 2's B_i.
    """

    id: int
    epoch: int
    weight: float = 1.0
    has_model: bool = True
    scalars: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CheckDue:
    """Whoever speaks unasked at this check has spoken; resolve it."""

    round: int


@dataclass(frozen=True, slots=True)
class Arrival:
    """One learner's model has come in and is sound."""

    id: int
    epoch: int
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Collected:
    """News of a collection, whole or in parts: who came, who will not, whose model is no model.

    `missing` are learners that are known not to answer, `refused` those whose model is not finite,
    has the wrong size or signature; the engine records why.
    """

    resolution: int
    got: tuple[Arrival, ...] = ()
    missing: tuple[int, ...] = ()
    refused: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Aggregated:
    """The average that was asked for exists; `scalars["distance"]` is ‖mean − r‖² if measured."""

    resolution: int
    scalars: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Expired:
    """The deadline of a collection has passed: who has not come by now does not count."""

    resolution: int


Event = Joined | Left | Violated | CheckDue | Collected | Aggregated | Expired


@dataclass(frozen=True, slots=True)
class Query:
    """Ask these learners for their models."""

    resolution: int
    ids: tuple[int, ...]
    what: What = What.MODEL


@dataclass(frozen=True, slots=True)
class Expect:
    """These learners send unasked: collect, but send no query (periodic averaging)."""

    resolution: int
    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Deadline:
    """Raise `Expired(resolution)` after so many seconds, unless told otherwise by then."""

    resolution: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Average the models of `ids`, in this order, with these weights; measure the result if told.

    Within one resolution the ids of the next `Aggregate` usually extend those of the last one, so
    that a running sum can go on; when somebody has left they do not.
    """

    resolution: int
    ids: tuple[int, ...]
    weights: tuple[float, ...]
    how: How = How.MEAN
    measure: bool = False


@dataclass(frozen=True, slots=True)
class Send:
    """Send the average to `ids`; it becomes the reference of that epoch, or it does not."""

    resolution: int
    ids: tuple[int, ...]
    as_reference: bool
    epoch: int


@dataclass(frozen=True, slots=True)
class Refresh:
    """Send the current reference to a learner that has a stale one, none, or a broken model."""

    id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one check came to. `stages` are the ids that joined 𝓑, in the order in which they did:
    first the violators (or whoever spoke or was drawn), then each augmentation.
    """

    resolution: int
    round: int
    cause: Cause
    violators: tuple[int, ...]
    stages: tuple[tuple[int, ...], ...]
    receivers: tuple[int, ...]
    as_reference: bool
    missing: tuple[int, ...] = ()
    refused: tuple[int, ...] = ()

    @property
    def balancing_set(self) -> tuple[int, ...]:
        """𝓑 at the end, in joining order."""
        return tuple(id for stage in self.stages for id in stage)


@dataclass(frozen=True, slots=True)
class Persist:
    """The coordinator's state has changed for good: write it down before anything else happens."""

    outcome: Outcome | None = None


Instruction = Query | Expect | Deadline | Aggregate | Send | Refresh | Persist
