"""How well a model drives: closed-loop rides, and the paper's loss L_dd over them.

A model is judged by what happens when it drives, not by its error on pictures: small errors that
all point to one side leave the road, larger ones that cancel do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from dynavg.driving.camera import Camera
from dynavg.driving.catalogue import track
from dynavg.driving.conditions import Conditions, day
from dynavg.driving.ride import LAPS, Outcome, Ride
from dynavg.driving.surface import Pixels
from dynavg.driving.tracks import Pose

# From pictures (n, 3, 68, 320) uint8 and the rides they were taken on, to n steerings.
Steer = Callable[[Pixels, Sequence[Ride]], Sequence[float]]


@dataclass(frozen=True, slots=True)
class Start:
    """Where and on what day a judged ride begins. `at` is a share of the lap."""

    track: str = "training"
    at: float = 0.0
    day: str = "noon"
    conditions: Conditions | None = None  # in place of the day's

    def weather(self) -> Conditions:
        """The conditions of the day, or those given in its place."""
        return self.conditions if self.conditions is not None else day(self.day)


_NUMBERS = ("seconds", "crossings", "line_seconds", "laps")


@dataclass(frozen=True, eq=False)
class Driven:
    """What one ride came to. `path` is (n, 4): x and y in metres, the heading in radians, and 1
    where on a sideline; a row for the start and for every tick.
    """

    start: Start
    outcome: Outcome
    seconds: float
    crossings: int
    line_seconds: float
    laps: float
    path: NDArray[np.float64]

    @property
    def finished(self) -> bool:
        """Whether all laps were driven."""
        return self.outcome is Outcome.FINISHED

    def facts(self) -> dict[str, str | float]:
        """All but the path, as plain values that `of` reads."""
        if self.start.conditions is not None:
            raise ValueError("a ride in conditions of its own cannot be told by the day's name")
        return {
            **{name: getattr(self.start, name) for name in ("track", "at", "day")},
            "outcome": self.outcome.value,
            **{name: getattr(self, name) for name in _NUMBERS},
        }

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Driven:
        """The ride with these facts, without its path."""
        start = Start(facts["track"], facts["at"], facts["day"])
        numbers = {name: facts[name] for name in _NUMBERS}
        return cls(start, Outcome(facts["outcome"]), path=np.empty((0, 4)), **numbers)

    def pose(self, tick: int) -> Pose:
        """Where the car was after so many ticks."""
        x, y, heading = self.path[tick, :3].tolist()
        return Pose(x, y, heading)


def starts(
    tracks: Sequence[str] = ("training", "narrow"),
    days: Sequence[str] = ("noon", "forest", "evening"),
    places: int = 2,
) -> list[Start]:
    """Every track on every day from `places` evenly spaced places.

    >>> len(starts())
    12
    """
    return [Start(t, at / places, d) for t in tracks for d in days for at in range(places)]


def model_steers(model: nn.Module) -> Steer:
    """The model at the wheel: pictures / 255 in, one steering each out."""

    def steer(pictures: Pixels, _: Sequence[Ride]) -> Sequence[float]:
        with torch.inference_mode():
            out = model(torch.from_numpy(pictures).float().div_(255))
        return [float(value) for value in out.flatten().tolist()]

    return steer


def drive_starts(
    steer: Steer | nn.Module, begin: Sequence[Start], laps: int = LAPS
) -> list[Driven]:
    """One ride from each start, all at once, so that a model sees many pictures in one batch.

    A model is put into evaluation mode for the rides and back afterwards.

    >>> rides = drive_starts(lambda pictures, rides: [0.0] * len(rides), [Start("narrow")])
    >>> rides[0].outcome.value, rides[0].laps < 0.3
    ('off road', True)
    """
    if not isinstance(steer, nn.Module):
        return _all_driven(steer, begin, laps)
    was_training = steer.training
    steer.eval()
    try:
        with one_thread():
            return _all_driven(model_steers(steer), begin, laps)
    finally:
        steer.train(was_training)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread meanwhile. A dozen pictures are too little work to wait for a second
    one at every layer, least of all on a machine that is busy otherwise.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _all_driven(steer: Steer, begin: Sequence[Start], laps: int) -> list[Driven]:
    rides, cameras = [], []
    for start in begin:
        road = track(start.track)
        rides.append(Ride.from_start(road, start.at * road.length))
        rides[-1].laps_wanted = laps
        cameras.append(Camera(road, start.weather()))
    paths = [[(*ride.pose, float(ride.on_line))] for ride in rides]
    going = list(range(len(rides)))
    while going:
        seen = np.stack([cameras[k].crop(rides[k].pose, rides[k].ticks) for k in going])
        steerings = steer(seen.transpose(0, 3, 1, 2), [rides[k] for k in going])
        for k, steering in zip(going, steerings, strict=True):
            ride = rides[k]
            # A model whose weights are not numbers any more holds the wheel straight.
            ride.step(steering if np.isfinite(steering) else 0.0)
            paths[k].append((*ride.pose, float(ride.on_line)))
        going = [k for k in going if not rides[k].over]
    return [
        _driven(start, ride, path) for start, ride, path in zip(begin, rides, paths, strict=True)
    ]


def _driven(start: Start, ride: Ride, path: list[tuple[float, float, float, float]]) -> Driven:
    return Driven(
        start,
        ride.outcome,
        ride.seconds,
        ride.crossings,
        ride.line_seconds,
        ride.laps,
        np.array(path, np.float64),
    )
