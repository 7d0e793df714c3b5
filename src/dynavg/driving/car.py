"""The car: a kinematic bicycle that drives at constant speed and only steers."""

from __future__ import annotations

import math

from dynavg.driving.tracks import Pose

SPEED = 10.0  # metres per second
TICK = 0.1  # seconds from one picture, and one steering command, to the next
WHEELBASE = 2.5  # metres
FULL_LOCK = math.radians(25.0)  # the front wheels' angle at steering 1 (right) and -1 (left)


def turning(steering: float) -> float:
    """The path's curvature in 1/m, positive to the left, at a steering in [-1, 1].

    >>> round(1 / turning(-1.0), 2)
    5.36
    """
    return -math.tan(min(max(steering, -1.0), 1.0) * FULL_LOCK) / WHEELBASE


def steering_for(curvature: float) -> float:
    """The steering that drives a curvature, at most full lock: the inverse of `turning`."""
    return min(max(-math.atan(curvature * WHEELBASE) / FULL_LOCK, -1.0), 1.0)


def moved(pose: Pose, steering: float, metres: float) -> Pose:
    """Where the car is after `metres` with the wheels held: exactly along its circle."""
    curvature = turning(steering)
    turn = curvature * metres
    # The chord of an arc of angle `turn`: sin(turn / 2) / (turn / 2) of its length.
    half = turn / 2
    chord = metres * (math.sin(half) / half if abs(half) > 1e-9 else 1.0)
    middle = pose.heading + half
    heading = (pose.heading + turn + math.pi) % (2 * math.pi) - math.pi
    return Pose(pose.x + chord * math.cos(middle), pose.y + chord * math.sin(middle), heading)
