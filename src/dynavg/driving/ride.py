"""One ride: a car on a track from its start until it leaves the road or finishes its laps.

The one place where steering becomes motion and motion becomes facts; the environment, the judge,
the recorder and the tests of the bridge all drive through it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from dynavg.driving.car import SPEED, TICK, moved
from dynavg.driving.tracks import Place, Pose, Track

LAPS = 2
# A ride that has not ended after this multiple of the time its laps take is stopped.
PATIENCE = 1.5


class Outcome(Enum):
    """How a ride ended."""

    DRIVING = "driving"  # it has not
    FINISHED = "finished"
    OFF_ROAD = "off road"
    TURNED_ROUND = "turned round"  # across the road or worse; there is no wall to crash into
    OUT_OF_TIME = "out of time"


@dataclass(slots=True)
class Ride:
    """The state of a ride. `step` is the only thing that changes it."""

    road: Track
    pose: Pose
    place: Place
    laps_wanted: int = LAPS
    outcome: Outcome = Outcome.DRIVING
    ticks: int = 0
    line_ticks: int = 0
    crossings: int = 0  # how often the car came onto a sideline, from either side
    metres: float = 0.0  # along the centreline
    on_line: bool = False

    @classmethod
    def from_start(cls, road: Track, start: float, offset: float = 0.0, turn: float = 0.0) -> Ride:
        """A ride that begins `start` metres along the road."""
        pose = road.pose(start, offset, turn)
        ride = cls(road, pose, road.place(pose.x, pose.y))
        ride.on_line = road.on_line(ride.place.offset)
        return ride

    @property
    def seconds(self) -> float:
        """Driven so far."""
        return self.ticks * TICK

    @property
    def line_seconds(self) -> float:
        """Of these, touching a sideline."""
        return self.line_ticks * TICK

    @property
    def laps(self) -> float:
        """Driven so far, with fractions."""
        return self.metres / self.road.length

    @property
    def over(self) -> bool:
        """Whether it has ended, in whichever way."""
        return self.outcome is not Outcome.DRIVING

    def step(self, steering: float) -> None:
        """Hold the wheels at `steering` for one tick.

        >>> from dynavg.driving.catalogue import track
        >>> ride = Ride.from_start(track("training"), start=0.0)
        >>> while not ride.over:
        ...     ride.step(1.0)
        >>> ride.outcome.value, ride.seconds < 3
        ('off road', True)
        """
        if self.over:
            raise RuntimeError(f"the ride is over ({self.outcome.value}): start another")
        self.pose = moved(self.pose, steering, SPEED * TICK)
        place = self.road.place(self.pose.x, self.pose.y, near=self.place.s)
        self.metres += self.road.advance(self.place.s, place.s)
        self.place = place
        self.ticks += 1
        touching = self.road.on_line(place.offset)
        self.line_ticks += touching
        self.crossings += touching and not self.on_line
        self.on_line = touching
        self.outcome = self._judged()

    def _judged(self) -> Outcome:
        if self.road.off_road(self.place.offset):
            return Outcome.OFF_ROAD
        if math.cos(self.pose.heading - self.place.heading) < 0:
            return Outcome.TURNED_ROUND
        if self.metres >= self.laps_wanted * self.road.length:
            return Outcome.FINISHED
        if self.ticks * TICK * SPEED > PATIENCE * self.laps_wanted * self.road.length:
            return Outcome.OUT_OF_TIME
        return Outcome.DRIVING
