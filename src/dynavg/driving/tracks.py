"""The road: a closed centreline with a width, and every exact fact that follows from them.

Where a car is along the road, how far beside its middle, whether it touches a sideline and when
a lap is full: all of it is read off the centreline here, never off pictures. How the road looks
is `surface`; which roads exist is `catalogue`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

STEP = 0.25  # metres between the centreline's points
LINE_WIDTH = 0.16  # metres of white paint, its outer side on the edge of the road
CAR_HALF_WIDTH = 0.9  # metres


class Pose(NamedTuple):
    """A car on the ground: metres, and radians counter-clockwise from the x axis."""

    x: float
    y: float
    heading: float


class Place(NamedTuple):
    """A point relative to the road: metres along it, metres left of its middle, its direction."""

    s: float
    offset: float
    heading: float


@dataclass(frozen=True, eq=False)
class Track:
    """A closed road. `points` (n, 2) run in the driving direction, the last joins the first."""

    name: str
    width: float
    points: Floats
    along: Floats  # (n,) metres from the start to each point
    headings: Floats  # (n,) direction of the segment that leaves each point
    lengths: Floats  # (n,) metres of that segment
    bends: Floats  # (n,) curvature in 1/m, positive to the left
    wear: float  # 0 for fresh paint and clean asphalt, 1 for a lane that nobody looks after

    @property
    def length(self) -> float:
        """Metres of one lap."""
        return float(self.along[-1] + self.lengths[-1])

    def place(self, x: float, y: float, near: float | None = None) -> Place:
        """Where (x, y) lies: its foot on the nearest segment of the centreline.

        `near` (metres along) restricts the search to 6 m around it, which makes it fast and keeps
        a car on its own stretch of the road where two stretches run close to each other.

        >>> from dynavg.driving.catalogue import track
        >>> road = track("training")
        >>> place = road.place(*road.pose(100.0, offset=1.5)[:2])
        >>> round(place.s, 1), round(place.offset, 3)
        (100.0, 1.5)
        """
        if near is None:
            index = np.arange(len(self.points))
        else:
            reach = int(6.0 / STEP)
            index = (int(near / STEP) + np.arange(-reach, reach + 1)) % len(self.points)
        heading = self.headings[index]
        dx = x - self.points[index, 0]
        dy = y - self.points[index, 1]
        cos, sin = np.cos(heading), np.sin(heading)
        foot = np.clip(dx * cos + dy * sin, 0.0, self.lengths[index])
        distance = np.square(dx - foot * cos) + np.square(dy - foot * sin)
        best = int(distance.argmin())
        side = math.copysign(1.0, dy[best] * cos[best] - dx[best] * sin[best])
        s = (float(self.along[index[best]]) + float(foot[best])) % self.length
        return Place(s, side * math.sqrt(float(distance[best])), float(heading[best]))

    def pose(self, s: float, offset: float = 0.0, turn: float = 0.0) -> Pose:
        """The pose `s` metres along, `offset` metres left of the middle, turned left by `turn`."""
        s %= self.length
        i = min(int(np.searchsorted(self.along, s, side="right")) - 1, len(self.points) - 1)
        heading = float(self.headings[i])
        beyond = s - float(self.along[i])
        x = float(self.points[i, 0]) + beyond * math.cos(heading) - offset * math.sin(heading)
        y = float(self.points[i, 1]) + beyond * math.sin(heading) + offset * math.cos(heading)
        return Pose(x, y, heading + turn)

    def bend(self, s: float) -> float:
        """Curvature `s` metres along the road in 1/m, positive to the left."""
        return float(self.bends[int(s / STEP) % len(self.bends)])

    def on_line(self, offset: float) -> bool:
        """Whether a car at this offset has a side on, or beyond, the paint of a sideline."""
        return abs(offset) + CAR_HALF_WIDTH > self.width / 2 - LINE_WIDTH

    def off_road(self, offset: float) -> bool:
        """Whether the middle of a car at this offset is beyond the edge of the road."""
        return abs(offset) > self.width / 2

    def advance(self, before: float, after: float) -> float:
        """Metres driven from one place along to another, the short way round; back is negative."""
        half = self.length / 2
        return (after - before + half) % self.length - half

    def mirrored(self, name: str) -> Track:
        """The same road with left and right exchanged."""
        return from_points(name, self.width, self.points * np.array([-1.0, 1.0]), self.wear)


def from_points(name: str, width: float, points: Floats, wear: float = 0.0) -> Track:
    """A track through evenly spaced points (n, 2) of a closed curve."""
    steps = np.roll(points, -1, axis=0) - points
    lengths = np.hypot(steps[:, 0], steps[:, 1])
    headings = np.arctan2(steps[:, 1], steps[:, 0])
    along = np.concatenate(([0.0], np.cumsum(lengths)[:-1]))
    turns = (headings - np.roll(headings, 1) + math.pi) % (2 * math.pi) - math.pi
    return Track(name, width, points, along, headings, lengths, turns / lengths, wear)


def rounded(
    name: str,
    width: float,
    corners: list[tuple[float, float]],
    softness: float,
    wear: float = 0.0,
) -> Track:
    """A track along a polygon whose corners are rounded by a Gaussian of `softness` metres.

    Straights stay straight and bends tighten and open again gradually, as on real roads: a right
    angle becomes a bend of about `softness` metres radius where it is tightest.
    """
    polygon = np.asarray(corners, dtype=np.float64)
    fine = STEP / 16  # much finer than the result, so that resampling bends nothing
    dense = _resampled(polygon, fine)
    sigma = softness / fine
    frequency = np.fft.rfftfreq(len(dense))
    window = np.exp(-2.0 * np.square(math.pi * frequency * sigma))
    smooth = np.fft.irfft(np.fft.rfft(dense, axis=0) * window[:, None], n=len(dense), axis=0)
    return from_points(name, width, _resampled(smooth, STEP), wear)


def _resampled(points: Floats, step: float) -> Floats:
    closed = np.concatenate((points, points[:1]))
    pieces = np.hypot(*np.diff(closed, axis=0).T)
    along = np.concatenate(([0.0], np.cumsum(pieces)))
    count = max(3, round(float(along[-1]) / step))
    at = np.arange(count) * (along[-1] / count)
    return np.stack([np.interp(at, along, closed[:, k]) for k in (0, 1)], axis=1)
