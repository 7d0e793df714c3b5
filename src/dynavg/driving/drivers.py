"""People at the wheel: they see the road ahead, not the picture, and each drives in a way of
their own. What they do is what the learners imitate.

All aim at a point ahead of them (pure pursuit). They differ in how far ahead they look, how late
and how shakily they steer, how much they cut corners, where on the road they like to be, and how
often they let the car drift and have to bring it back.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from dynavg.driving.car import steering_for
from dynavg.driving.ride import Ride


@dataclass(frozen=True, slots=True)
class Habits:
    """A way of driving. Lengths in metres."""

    look_ahead: float = 7.0
    lag: float = 0.0  # 0 steers at once; 0.5 takes half of the last steering over
    shake: float = 0.0  # standard deviation of the steering's unrest
    corner_cutting: float = 0.0  # towards the inside of a bend of 10 m radius; a share as below
    lane: float = 0.0  # where on the road, positive left; a share of half the width
    drifts_per_minute: float = 0.0  # how often the car is let drift and then brought back


DRIVERS = {
    "expert": Habits(look_ahead=5.0),
    "ada": Habits(look_ahead=5.5, lag=0.1, shake=0.02, drifts_per_minute=8),
    "bruno": Habits(look_ahead=6.5, lag=0.25, shake=0.03, corner_cutting=0.25, drifts_per_minute=8),
    "chiara": Habits(look_ahead=5.0, lag=0.1, shake=0.05, lane=-0.12, drifts_per_minute=12),
    "deniz": Habits(look_ahead=6.0, lag=0.2, shake=0.03, lane=0.12, drifts_per_minute=8),
    "emil": Habits(look_ahead=5.5, lag=0.3, shake=0.06, corner_cutting=0.15, drifts_per_minute=12),
    "freya": Habits(
        look_ahead=7.0, shake=0.02, corner_cutting=0.15, lane=-0.08, drifts_per_minute=5
    ),
}
HUMANS = tuple(name for name in DRIVERS if name != "expert")


def habits(name: str) -> Habits:
    """The habits of that driver.

    >>> habits("expert").shake
    0.0
    """
    if name not in DRIVERS:
        raise ValueError(f"unknown driver {name!r}: the drivers are {', '.join(DRIVERS)}")
    return DRIVERS[name]


@dataclass(slots=True)
class Driver:
    """Someone driving now: habits, and what the hands are doing."""

    habits: Habits
    rng: np.random.Generator
    _hands: float = 0.0
    _unrest: float = 0.0
    _drift_ticks: int = field(default=0)
    _drift_to: float = 0.0

    @property
    def drifting(self) -> bool:
        """Whether the car is being let drift: not an example for anyone, so not recorded."""
        return self._drift_ticks > 0

    def steer(self, ride: Ride) -> float:
        """The steering in [-1, 1] for the next tick.

        >>> from dynavg.driving.catalogue import track
        >>> ride = Ride.from_start(track("narrow"), start=0.0)
        >>> driver = Driver(habits("expert"), np.random.default_rng(0))
        >>> while not ride.over:
        ...     ride.step(driver.steer(ride))
        >>> ride.outcome.value, ride.crossings
        ('finished', 0)
        """
        self._maybe_drift(ride)
        wanted = self._towards(ride, self._aim(ride))
        if self.habits.shake > 0:
            self._unrest = 0.7 * self._unrest + 0.71 * self.habits.shake * float(
                self.rng.standard_normal()
            )
        self._hands = self.habits.lag * self._hands + (1 - self.habits.lag) * wanted
        return min(max(self._hands + self._unrest, -1.0), 1.0)

    def _maybe_drift(self, ride: Ride) -> None:
        if self._drift_ticks > 0:
            self._drift_ticks -= 1
        elif self.rng.random() < self.habits.drifts_per_minute / 600:
            self._drift_ticks = int(self.rng.integers(5, 12))
            self._drift_to = float(self.rng.uniform(-0.75, 0.75)) * ride.road.width / 2

    def _aim(self, ride: Ride) -> float:
        """How far left of the middle the point ahead lies that the driver makes for."""
        if self.drifting:
            return self._drift_to
        bend = ride.road.bend(ride.place.s + self.habits.look_ahead)
        half = ride.road.width / 2
        share = self.habits.lane + self.habits.corner_cutting * 10 * bend
        return min(max(share, -0.3), 0.3) * half

    def _towards(self, ride: Ride, aim: float) -> float:
        ahead = ride.road.pose(ride.place.s + self.habits.look_ahead, aim)
        dx, dy = ahead.x - ride.pose.x, ahead.y - ride.pose.y
        angle = math.atan2(dy, dx) - ride.pose.heading
        return steering_for(2 * math.sin(angle) / math.hypot(dx, dy))
