"""The coordinator: collecting, deadlines, membership. A state machine without I/O and tensors.

Theory of operation
-------------------
The coordinator is told what happened (`handle(event)`) and answers with what is to be done (a
tuple of instructions, in order). It never waits, sends or averages; an engine does that and comes
back with the next event. One *resolution* is the life of one check in which somebody has something
to say:

    IDLE --CheckDue--> [operator: whom?] --Ask--> COLLECTING --all in, or Expired--+
     ^                        |                                                    |
     |                        +--Average--> AVERAGING <---[operator: average]------+
     |                                          |
     +-- Publish: Persist, Send, Refresh… <-----+--[operator: enough?]-- Ask --> COLLECTING

Violations gather in `pending` until `CheckDue` opens a resolution with all of them: in lock-step
an engine raises it when the round's violators have spoken, in free pace as soon as there is one.
A violation that comes while a resolution is open waits for the next one, unless the same learner
is asked, before or after: then it is the reply, and counts as a violation too (asked after, it gets
no query: it waits, and would not answer). The first word of a learner stands until it gets a model;
what it says when it has given up waiting and speaks again is ignored.

Who can still take part is the resolution's own matter: a learner that is missing, refused, stale
or gone is no longer among its `members`, so "𝓑 = [m]" means all who can be had. A learner that
leaves after its model came in is dropped from 𝓑 and the average is made anew, because the average
it helped to shape would not reach it. Learners that come in wait for the end of the resolution.

Every reference has an epoch. A model trained from a stale reference does not count: its learner
gets the current one (`Refresh`) first. `Persist` stands before `Send`: a coordinator that dies
between the two has already written the epoch that some learners may have received. A resolution
that is open when the coordinator dies is lost on purpose; its learners will speak again.

An event that is impossible in the current phase raises `IllegalEventError` and changes nothing.
News of a resolution that is over (a late reply, a late deadline) is not impossible: it is ignored.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from enum import Enum
from typing import Any, ClassVar

from dynavg.protocol.messages import (
    Aggregate,
    Aggregated,
    Arrival,
    Cause,
    CheckDue,
    Collected,
    Deadline,
    Event,
    Expect,
    Expired,
    Instruction,
    Joined,
    Left,
    Persist,
    Query,
    Refresh,
    Send,
    Violated,
)
from dynavg.protocol.operator import Ask, Average, Operator, Publish, Rest, Stage
from dynavg.protocol.resolution import Resolution

__all__ = ["Coordinator", "IllegalEventError", "Phase"]

Instructions = tuple[Instruction, ...]


class Phase(Enum):
    """What the coordinator is waiting for: a check, models, or their average."""

    IDLE = "idle"
    COLLECTING = "collecting"
    AVERAGING = "averaging"


class IllegalEventError(Exception):
    """An event that cannot happen here; nothing was changed."""


class Coordinator:
    """The coordinator of one group of learners under one operator.

    `patience` is the number of seconds that a collection may take; only engines with a clock care.
    """

    def __init__(
        self,
        operator: Operator,
        members: Iterable[int] = (),
        *,
        seed: int = 0,
        patience: float = 30.0,
    ) -> None:
        self.operator = operator
        self.seed = seed
        self.patience = patience
        self.phase = Phase.IDLE
        self.members = sorted(set(members))
        self.epoch = 0
        self.resolutions = 0
        self.last_synced: dict[int, int] = {}
        self.pending: dict[int, Violated] = {}
        self._state = operator.init()
        self._open: Resolution | None = None

    @property
    def awaited(self) -> tuple[int, ...]:
        """The learners whose models the open collection still waits for."""
        return () if self._open is None else tuple(self._open.awaited)

    def handle(self, event: Event) -> Instructions:
        """Take one event in; what comes back is to be done, in that order."""
        handler = self._TABLE.get((self.phase, type(event)))
        if handler is None:
            raise self._illegal(event, "no such event in this phase")
        return handler(self, event)

    def snapshot(self) -> dict[str, Any]:
        """What outlives a crash, ready for JSON; an open resolution does not."""
        return {
            "members": list(self.members),
            "epoch": self.epoch,
            "resolutions": self.resolutions,
            "last_synced": [[id, round] for id, round in sorted(self.last_synced.items())],
            "operator": asdict(self._state),
        }

    @classmethod
    def restore(
        cls, operator: Operator, snapshot: Mapping[str, Any], *, seed: int, patience: float = 30.0
    ) -> "Coordinator":
        """The coordinator that wrote the snapshot, idle."""
        coordinator = cls(operator, snapshot["members"], seed=seed, patience=patience)
        coordinator.epoch = snapshot["epoch"]
        coordinator.resolutions = snapshot["resolutions"]
        coordinator.last_synced = dict(snapshot["last_synced"])
        coordinator._state = type(coordinator._state)(**snapshot["operator"])
        return coordinator

    def _joined_idle(self, event: Joined) -> Instructions:
        self._admit(event.id)
        return (Persist(), Refresh(event.id, self.epoch))

    def _joined_busy(self, event: Joined) -> Instructions:
        """Who comes (back) in starts from the reference: it is out of the open resolution."""
        self._admit(event.id)
        instructions = self._dropped(event.id)
        if self._open is None:
            return (*instructions, Persist(), Refresh(event.id, self.epoch))
        self._open.refresh.add(event.id)
        return instructions

    def _left_idle(self, event: Left) -> Instructions:
        self._dismiss(event)
        return (Persist(),)

    def _left_busy(self, event: Left) -> Instructions:
        self._dismiss(event)
        return self._dropped(event.id)

    def _admit(self, id: int) -> None:
        if id not in self.members:
            self.members = sorted((*self.members, id))
        self.pending.pop(id, None)

    def _dismiss(self, event: Left) -> None:
        if event.id not in self.members:
            raise self._illegal(event, "it is not a member")
        self.members.remove(event.id)
        self.pending.pop(event.id, None)
        self.last_synced.pop(event.id, None)

    def _dropped(self, id: int) -> Instructions:
        """Out of the open resolution; that may have been the last one it waited for."""
        resolution = self._resolution
        resolution.drop(id)
        if self.phase is Phase.COLLECTING and not resolution.awaited:
            return self._complete(resolution)
        return ()

    def _violated(self, event: Violated) -> Instructions:
        """Wait for the next resolution, unless it crosses a query of the open one."""
        resolution = self._open
        if event.id not in self.members:
            raise self._illegal(event, "it is not a member")
        if resolution is not None and event.id in resolution.awaited:
            return self._crossed(resolution, (event,))
        if event.id in self.pending or (resolution is not None and event.id in resolution.held):
            return ()  # it gave up waiting and speaks again; its first word stands
        if event.epoch != self.epoch:
            return (Refresh(event.id, self.epoch),)
        self.pending[event.id] = event
        return ()

    def _crossed(self, resolution: Resolution, events: Iterable[Violated]) -> Instructions:
        """Violations of learners that are awaited: replies, and violations all the same."""
        events = tuple(events)
        violators = [event.id for event in events if event.epoch == self.epoch]
        resolution.violators.extend(violators)
        resolution.crossed += len(violators)
        return self._news(resolution, tuple(Arrival(e.id, e.epoch, e.weight) for e in events))

    def _check_due(self, event: CheckDue) -> Instructions:
        resolution = Resolution.opened(
            self.resolutions + 1, event.round, self.members, self.pending
        )
        self.pending.clear()
        return self._advance(resolution, Stage.OPENED)

    def _collected(self, event: Collected) -> Instructions:
        resolution = self._current(event)
        if resolution is None:
            return ()
        late = resolution.settled
        got = tuple(arrival for arrival in event.got if arrival.id not in late)
        missing = tuple(id for id in event.missing if id not in late)
        refused = tuple(id for id in event.refused if id not in late)
        named = [*(arrival.id for arrival in got), *missing, *refused]
        if not named:
            return ()
        if len(set(named)) < len(named) or not resolution.awaited.keys() >= set(named):
            raise self._illegal(event, f"awaited are {self.awaited}, each of them once")
        return self._news(resolution, got, missing, refused)

    def _expired(self, event: Expired) -> Instructions:
        resolution = self._current(event)
        if resolution is None or self.phase is Phase.AVERAGING:
            return ()
        return self._news(resolution, missing=self.awaited)

    def _over(self, event: Collected | Aggregated | Expired) -> Instructions:
        self._current(event)
        return ()

    def _aggregated(self, event: Aggregated) -> Instructions:
        resolution = self._current(event)
        if resolution is None:
            return ()
        if resolution.shrunk and resolution.held:
            return self._average(resolution, measure="distance" in event.scalars)
        return self._advance(resolution, Stage.AVERAGED, event.scalars.get("distance"))

    def _news(
        self,
        resolution: Resolution,
        got: tuple[Arrival, ...] = (),
        missing: tuple[int, ...] = (),
        refused: tuple[int, ...] = (),
    ) -> Instructions:
        resolution.book(got, missing, refused, self.epoch)
        return () if resolution.awaited else self._complete(resolution)

    def _complete(self, resolution: Resolution) -> Instructions:
        resolution.in_order()
        return self._advance(resolution, Stage.COLLECTED)

    def _advance(
        self, resolution: Resolution, stage: Stage, distance: float | None = None
    ) -> Instructions:
        """Ask the operator for its move and carry it out."""
        if stage is not Stage.OPENED and not resolution.held:
            return self._close(resolution, Publish((), as_reference=False, cause=Cause.ABANDONED))
        situation = resolution.situation(stage, distance, self.seed, self.last_synced)
        self._state, move = self.operator.step(self._state, situation)
        match move:
            case Rest() if stage is Stage.OPENED:
                return ()
            case Ask():
                return self._ask(resolution, move)
            case Average() if resolution.held and stage is not Stage.AVERAGED:
                return self._average(resolution, move.measure)
            case Publish() if stage is Stage.AVERAGED and set(move.ids) <= set(resolution.members):
                return self._close(resolution, move)
            case _:
                raise ValueError(f"{self.operator} answers {move} to {situation}")

    def _ask(self, resolution: Resolution, move: Ask) -> Instructions:
        allowed = set(resolution.members) - resolution.held.keys()
        if not move.ids or not allowed >= set(move.ids):
            raise ValueError(
                f"{self.operator} asks for {move.ids}; at least one is wanted, out of the members "
                f"outside the balancing set: {tuple(sorted(allowed))}"
            )
        self._enter(resolution, Phase.COLLECTING)
        resolution.await_(move.ids)
        spoken = [self.pending.pop(id) for id in move.ids if id in self.pending]
        instructions = self._crossed(resolution, spoken)
        silent = tuple(id for id in move.ids if id in resolution.awaited)
        if not silent:
            return instructions
        request = Expect if move.unasked else Query
        return (request(resolution.number, silent), Deadline(resolution.number, self.patience))

    def _average(self, resolution: Resolution, measure: bool) -> Instructions:
        self._enter(resolution, Phase.AVERAGING)
        resolution.shrunk = False
        ids, weights = tuple(resolution.held), tuple(resolution.held.values())
        if self.operator.weights == "equal":
            weights = (1.0,) * len(ids)
        return (Aggregate(resolution.number, ids, weights, measure=measure),)

    def _enter(self, resolution: Resolution, phase: Phase) -> None:
        self._open = resolution
        self.phase = phase
        self.resolutions = resolution.number

    def _close(self, resolution: Resolution, move: Publish) -> Instructions:
        """Line 4: the average goes out, and is the reference if the operator says so."""
        self._open = None
        self.phase = Phase.IDLE
        self.epoch += move.as_reference
        for id in move.ids:
            self.last_synced[id] = resolution.round
        send = Send(resolution.number, move.ids, move.as_reference, self.epoch)
        stale = self.pending.keys() if move.as_reference else set()
        refresh = (resolution.refresh | stale) - set(move.ids)
        for id in (*move.ids, *refresh):  # who gets a model starts from it: its word is void
            self.pending.pop(id, None)
        return (
            Persist(resolution.outcome(move)),
            *((send,) if move.ids else ()),
            *(Refresh(id, self.epoch) for id in sorted(refresh)),
        )

    @property
    def _resolution(self) -> Resolution:
        assert self._open is not None, "the table leads here only while a resolution is open"
        return self._open

    def _current(self, event: Collected | Aggregated | Expired) -> Resolution | None:
        """The open resolution if the event is about it, None if that one is over."""
        if event.resolution > self.resolutions:
            raise self._illegal(event, f"the last resolution was {self.resolutions}")
        return self._open if event.resolution == self.resolutions else None

    def _illegal(self, event: Event, why: str) -> IllegalEventError:
        return IllegalEventError(
            f"{event} while {self.phase.value} (resolution {self.resolutions}, "
            f"epoch {self.epoch}, {len(self.members)} members): {why}"
        )

    _TABLE: ClassVar[dict[tuple[Phase, type], Callable[..., Instructions]]] = {
        (Phase.IDLE, Joined): _joined_idle,
        (Phase.IDLE, Left): _left_idle,
        (Phase.IDLE, Violated): _violated,
        (Phase.IDLE, CheckDue): _check_due,
        (Phase.IDLE, Collected): _over,
        (Phase.IDLE, Expired): _over,
        (Phase.IDLE, Aggregated): _over,
        (Phase.COLLECTING, Joined): _joined_busy,
        (Phase.COLLECTING, Left): _left_busy,
        (Phase.COLLECTING, Violated): _violated,
        (Phase.COLLECTING, Collected): _collected,
        (Phase.COLLECTING, Expired): _expired,
        (Phase.AVERAGING, Joined): _joined_busy,
        (Phase.AVERAGING, Left): _left_busy,
        (Phase.AVERAGING, Violated): _violated,
        (Phase.AVERAGING, Collected): _collected,
        (Phase.AVERAGING, Expired): _expired,
        (Phase.AVERAGING, Aggregated): _aggregated,
    }
