"""Rides as pictures: a film of one, and one picture of a model's rides."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynavg.driving.camera import Camera
from dynavg.driving.car import TICK
from dynavg.driving.catalogue import track
from dynavg.driving.judging import Driven
from dynavg.driving.pictures import dashboard
from dynavg.driving.surface import Pixels

FILM_FRAMES = 200  # at most; a longer drive is shown in larger steps


def film(driven: Driven, frames: int = FILM_FRAMES) -> list[Pixels]:
    """A ride as pictures (400, 320, 3): what the car saw, above where it had driven.

    >>> from dynavg.driving.judging import Start, drive_starts
    >>> ride = drive_starts(lambda seen, rides: [0.0] * len(rides), [Start("narrow")])[0]
    >>> len(film(ride, frames=5)) <= 5
    True
    """
    every = -(-len(driven.path) // frames)
    camera = _camera(driven)
    return [_seen(driven, camera, tick) for tick in range(0, len(driven.path), every)]


def sheet(rides: Sequence[Driven]) -> Pixels:
    """What the car saw last, above where it had driven: the first of the rides on each track, side
    by side.
    """
    firsts = {ride.start.track: ride for ride in reversed(rides)}
    in_order = [firsts[name] for name in dict.fromkeys(ride.start.track for ride in rides)]
    shown = [_seen(ride, _camera(ride), len(ride.path) - 1) for ride in in_order]
    return np.concatenate(shown, axis=1)


def _camera(driven: Driven) -> Camera:
    return Camera(track(driven.start.track), driven.start.weather())


def _seen(driven: Driven, camera: Camera, tick: int) -> Pixels:
    pose = driven.pose(tick)
    path = driven.path[: tick + 1]
    road = track(driven.start.track)
    return dashboard(camera.frame(pose, tick), road, path, pose, f"{tick * TICK:5.1f} s")
