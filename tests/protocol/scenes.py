"""A coordinator at a known place: where coordinator tests begin."""

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from dynavg.operators import Dynamic
from dynavg.protocol.coordinator import Coordinator
from dynavg.protocol.messages import (
    Aggregated,
    Arrival,
    CheckDue,
    Collected,
    Expired,
    Joined,
    Left,
    Unasked,
    Violated,
)
from dynavg.protocol.operator import Move, Situation

# It asks for the lowest ids first, as many as 𝓑 holds: nothing here depends on a draw.
OPERATOR = Dynamic(delta=1, augmentation="least_recent", counter="off")

NEAR, FAR = {"distance": 0.5}, {"distance": 1.5}


def idle(operator=OPERATOR, members=range(4)) -> Coordinator:
    """Resolution 1 is over; it was a full one, so the epoch is 1."""
    coordinator = Coordinator(operator, members, patience=7.0)
    for id in members:
        coordinator.handle(Violated(id, epoch=0))
    coordinator.handle(CheckDue(round=1))
    coordinator.handle(Aggregated(1, FAR))
    return coordinator


def averaging(*violators: int, operator=OPERATOR, members=range(4)) -> Coordinator:
    """Resolution 2: 𝓑 = V, and its average is being made."""
    coordinator = idle(operator, members)
    for id in violators or (0,):
        coordinator.handle(Violated(id, epoch=1))
    coordinator.handle(CheckDue(round=2))
    return coordinator


def collecting(*violators: int, operator=OPERATOR, members=range(4)) -> Coordinator:
    """Resolution 2: V was not enough, as many others as V has are awaited, lowest ids first."""
    coordinator = averaging(*violators, operator=operator, members=members)
    coordinator.handle(Aggregated(2, FAR))
    return coordinator


def came(*ids: int, resolution: int = 2, epoch: int = 1) -> Collected:
    return Collected(resolution, tuple(Arrival(id, epoch) for id in ids))


EVENTS = {
    "joined": Joined(9),
    "left": Left(3),
    "violated": Violated(2, epoch=1),
    "check due": CheckDue(round=3),
    "collected": came(1),
    "expired": Expired(2),
    "aggregated": Aggregated(2, NEAR),
}


def everything(coordinator: Coordinator) -> dict[str, Any]:
    """All of its state, deep."""
    return deepcopy(vars(coordinator))


@dataclass(frozen=True)
class Position:
    move: int = 0


@dataclass(frozen=True)
class Scripted:
    """An operator that makes the given moves, one after the other."""

    moves: tuple[Move, ...]
    weights: str = "equal"

    every = 1
    measures = False

    def unasked(self, distance: float) -> Unasked:
        return Unasked.NOTHING

    def init(self) -> Position:
        return Position()

    def step(self, state: Position, situation: Situation) -> tuple[Position, Move]:
        return Position(state.move + 1), self.moves[state.move]
