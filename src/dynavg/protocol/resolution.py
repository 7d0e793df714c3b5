"""The life of one check in which somebody has something to say: the bookkeeping of 𝓑.

Who is in, in which order, with which weight; who is still awaited; who cannot be had any more.
When to do what is `coordinator.py`'s.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dynavg.protocol.messages import Arrival, Outcome, Violated
from dynavg.protocol.operator import Publish, Situation, Stage

__all__ = ["Resolution"]


@dataclass(slots=True)
class Resolution:
    """One resolution. `members` are those who can still take part; `held` is 𝓑 with its weights,
    in joining order; `shrunk` says that somebody left 𝓑 since its models were last averaged.
    """

    number: int
    round: int
    members: list[int]
    violators: list[int]
    held: dict[int, float]
    stages: list[list[int]]
    awaited: dict[int, None] = field(default_factory=dict)
    asked: set[int] = field(default_factory=set)
    missing: list[int] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)
    refresh: set[int] = field(default_factory=set)
    crossed: int = 0
    queries: int = 0
    shrunk: bool = False

    @classmethod
    def opened(
        cls, number: int, round: int, members: Iterable[int], pending: Mapping[int, Violated]
    ) -> "Resolution":
        """Line 1: 𝓑 ← V."""
        violators = sorted(pending)
        return cls(
            number=number,
            round=round,
            members=list(members),
            violators=violators,
            held={id: pending[id].weight for id in violators},
            stages=[list(violators)],
        )

    @property
    def settled(self) -> set[int]:
        """Those who were asked and are not awaited any more: further news of them is late."""
        return self.asked - self.awaited.keys()

    def await_(self, ids: tuple[int, ...]) -> None:
        """A collection begins; its arrivals become a stage of their own."""
        self.awaited = dict.fromkeys(ids)
        self.asked.update(ids)
        self.stages.append([])
        self.queries += 1

    def book(
        self,
        got: tuple[Arrival, ...],
        missing: tuple[int, ...],
        refused: tuple[int, ...],
        epoch: int,
    ) -> None:
        """Note who came and who will not. A model from another epoch does not count."""
        fresh = [arrival for arrival in got if arrival.epoch == epoch]
        stale = [arrival.id for arrival in got if arrival.epoch != epoch]
        self.stages[-1].extend(arrival.id for arrival in fresh)
        self.held |= {arrival.id: arrival.weight for arrival in fresh}
        self.missing.extend(missing)
        self.refused.extend(refused)
        self.refresh.update(stale, refused)
        for id in (*stale, *missing, *refused):
            self._strike(id)
        for arrival in fresh:
            del self.awaited[arrival.id]

    def in_order(self) -> None:
        """Close a collection: its arrivals join 𝓑 by id, whatever order they came in."""
        self.stages[-1].sort()
        self.held |= {id: self.held.pop(id) for id in self.stages[-1]}

    def drop(self, id: int) -> None:
        """The learner has gone, or starts anew: what it sent or would send is void."""
        self.refresh.discard(id)
        if id in self.held:
            del self.held[id]
            self.shrunk = True
            for stage in self.stages:
                if id in stage:
                    stage.remove(id)
        elif id in self.awaited:
            self.missing.append(id)
        self._strike(id)

    def _strike(self, id: int) -> None:
        self.awaited.pop(id, None)
        if id in self.members:
            self.members.remove(id)

    def situation(
        self, stage: Stage, distance: float | None, seed: int, last_synced: Mapping[int, int]
    ) -> Situation:
        """What the operator may know now; asking for it counts the crossed violations off."""
        crossed, self.crossed = self.crossed, 0
        return Situation(
            seed=seed,
            round=self.round,
            stage=stage,
            members=tuple(self.members),
            violators=tuple(sorted(self.violators)),
            held=tuple(self.held),
            crossed=crossed,
            queries=self.queries,
            distance=distance,
            last_synced=last_synced,
        )

    def outcome(self, move: Publish) -> Outcome:
        """The record of how it ended."""
        return Outcome(
            resolution=self.number,
            round=self.round,
            cause=move.cause,
            violators=tuple(sorted(self.violators)),
            stages=tuple(tuple(stage) for stage in self.stages if stage),
            receivers=move.ids,
            as_reference=move.as_reference,
            missing=tuple(self.missing),
            refused=tuple(self.refused),
        )
