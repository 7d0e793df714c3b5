"""The synchronisation operators a second time: plain, slow, from the paper's pseudocode.

Imports numpy and shares no code with `dynavg`, not even its seeds: where a protocol draws lots, the
caller says what was drawn, and `IllegalDrawError` says that it could not have been. The numbers in
comments are the steps of "Dynamic ... at one check" in the protocol's description.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

HEADER_BYTES = 84


class IllegalDrawError(AssertionError):
    """What is said to have been drawn is nothing that the strategy could have drawn."""


class TooCloseError(Exception):
    """A distance so near to the threshold that rounding decides; nothing can be compared."""


@dataclass(frozen=True)
class Decision:
    violators: list[int]
    stages: list[list[int]]
    receivers: list[int]
    cause: str | None
    full: bool


SILENCE = Decision([], [], [], None, full=False)


@dataclass
class World:
    """m models, B_i of this check, and what has been sent so far."""

    models: list[np.ndarray]
    weights: list[float]
    round: int = 0
    ledger: list[tuple[int, str, int, int, int, int]] = field(default_factory=list)

    @property
    def m(self) -> int:
        return len(self.models)

    def mean(self, ids: Sequence[int], weighted: bool) -> np.ndarray:
        """Summed up in float64 in the order of `ids`, divided once, cast once."""
        total = np.zeros(len(self.models[0]), dtype=np.float64)
        parts = 0.0
        for i in ids:
            w = self.weights[i] if weighted else 1.0
            total = total + w * self.models[i].astype(np.float64)
            parts += w
        return (total / parts).astype(self.models[0].dtype)

    def give(self, model: np.ndarray, ids: Sequence[int]) -> None:
        for i in ids:
            self.models[i] = model.copy()

    def log(self, kind: str, ids: Sequence[int]) -> None:
        payload = 0 if kind == "query" else self.models[0].nbytes
        for i in sorted(ids):
            ends = (i, -1) if kind in ("violation", "reply") else (-1, i)
            self.ledger.append((self.round, kind, *ends, HEADER_BYTES, payload))


def squared_distance(a: np.ndarray, b: np.ndarray) -> float:
    return float(((a.astype(np.float64) - b.astype(np.float64)) ** 2).sum())


class NoSync:
    def check(self, world: World, drawn: list[list[int]]) -> Decision:
        return SILENCE


@dataclass
class Periodic:
    weighted: bool = False

    def check(self, world: World, drawn: list[list[int]]) -> Decision:
        everyone = list(range(world.m))
        world.log("reply", everyone)
        world.give(world.mean(everyone, self.weighted), everyone)
        world.log("model", everyone)
        return Decision([], [everyone], everyone, "scheduled", full=True)


@dataclass
class FedAvg:
    fraction: float
    to_all: bool = False
    weighted: bool = False

    def check(self, world: World, drawn: list[list[int]]) -> Decision:
        size = math.ceil(round(self.fraction * world.m, 9))
        if len(drawn) != 1:
            raise IllegalDrawError(f"one draw is wanted, not {drawn}")
        chosen = legal(drawn[0], size, outside=[], m=world.m)
        receivers = list(range(world.m)) if self.to_all else chosen
        world.log("query", chosen)
        world.log("reply", chosen)
        world.give(world.mean(chosen, self.weighted), receivers)
        world.log("model", receivers)
        return Decision([], [chosen], receivers, "scheduled", full=len(receivers) == world.m)


@dataclass
class Dynamic:
    """Algorithm 1, and with `weighted` Algorithm 2. `slack` is the relative error of a distance."""

    delta: float
    reference: np.ndarray
    strategy: str = "random_doubling"
    weighted: bool = False
    unsquared: bool = False
    counter: str = "at_least"
    reset_on_full: bool = False
    slack: float = 1e-12
    v: int = 0
    synced: dict[int, int] = field(default_factory=dict)

    def check(self, world: World, drawn: list[list[int]]) -> Decision:
        m = world.m
        # 1
        V = [i for i in range(m) if not self.near(world.models[i])]
        if not V:
            return SILENCE
        world.log("violation", V)
        B, stages, cause = list(V), [list(V)], "balanced"
        queried: list[int] = []
        self.v += len(V)
        # 2
        if len(V) == m:
            self.v, cause = 0, "all violated"
        elif self.counter_fires(m):
            rest = [i for i in range(m) if i not in B]
            queried += rest
            B, stages = B + rest, [*stages, rest]
            self.v, cause = 0, "counter"
        # 3
        while len(B) < m and not self.near(world.mean(B, self.weighted)):
            A = self.augmentation(B, m, drawn[len(stages)] if len(stages) < len(drawn) else [])
            queried += A
            B, stages = B + A, [*stages, A]
            if len(B) == m:
                cause = "exhausted"
                self.v = 0 if self.reset_on_full else self.v
        world.log("query", queried)
        world.log("reply", queried)
        # 4
        mean = world.mean(B, self.weighted)
        world.give(mean, B)
        world.log("model", B)
        self.synced |= dict.fromkeys(B, world.round)
        if len(B) == m:
            self.reference = mean.copy()
        return Decision(V, stages, sorted(B), cause, full=len(B) == m)

    def near(self, model: np.ndarray) -> bool:
        """‖f − r‖² ≤ Δ, or ‖f − r‖ ≤ Δ."""
        d, limit = squared_distance(model, self.reference), self.delta
        if self.unsquared:
            d, limit = math.sqrt(d), self.delta
        # Twice the scale of a rounding error of the mean itself, as a distance.
        noise = (self.slack * (1 + float(np.abs(model).max()))) ** 2 * len(model) * 4
        if d > 0 and abs(d - limit) <= self.slack * (d + limit) + (
            math.sqrt(noise) if self.unsquared else noise
        ):
            raise TooCloseError
        return d <= limit

    def counter_fires(self, m: int) -> bool:
        return {"at_least": self.v >= m, "exactly": self.v == m, "off": False}[self.counter]

    def augmentation(self, B: list[int], m: int, drawn: list[int]) -> list[int]:
        rest = [i for i in range(m) if i not in B]
        if self.strategy == "all":
            return rest
        if self.strategy == "least_recent":
            oldest_first = sorted((self.synced.get(i, 0), i) for i in rest)
            return sorted(i for _, i in oldest_first[: len(B)])
        if self.strategy == "tripling_half":
            if 3 * len(B) >= m / 2:
                return rest
            size = 2 * len(B)
        elif self.strategy == "random_doubling":
            size = len(B)
        else:
            assert self.strategy == "random_one"
            size = 1
        return legal(drawn, min(size, len(rest)), outside=B, m=m)


def legal(drawn: Sequence[int], size: int, outside: Sequence[int], m: int) -> list[int]:
    """The draw, ascending, if it could have been one."""
    allowed = set(range(m)) - set(outside)
    if len(drawn) != size or len(set(drawn)) != size or not set(drawn) <= allowed:
        raise IllegalDrawError(f"{size} out of {sorted(allowed)} are wanted, not {list(drawn)}")
    if list(drawn) != sorted(drawn):
        raise IllegalDrawError(f"learners join by id, not as {list(drawn)}")
    return list(drawn)
