"""Makes recordings: lets drivers drive and writes down what they did."""

from __future__ import annotations

import itertools

import numpy as np

from dynavg import seeds
from dynavg.driving.catalogue import track
from dynavg.driving.conditions import drawn
from dynavg.driving.drivers import HUMANS, Driver, habits
from dynavg.driving.recording import Recording, Scene
from dynavg.driving.ride import Ride
from dynavg.driving.tracks import Pose

PICTURES = 48_000  # about as many as the paper's recordings have
TRACKS = ("training", "mirror", "narrow")

_Row = tuple[Pose, float, int]


def record(
    count: int = PICTURES,
    tracks: tuple[str, ...] = TRACKS,
    drivers: tuple[str, ...] = HUMANS,
    days: int = 2,
    seed: int = 0,
    car: int = 0,
) -> Recording:
    """`count` pictures of every driver on every track, on `days` different days each; another
    `car` of the same seed has other days.

    >>> recording = record(90, tracks=("narrow",), drivers=("ada", "bruno"), days=1)
    >>> len(recording), [scene.driver for scene in recording.scenes]
    (90, ['ada', 'bruno'])
    """
    combinations = list(itertools.product(tracks, drivers, range(days)))
    if count < len(combinations) or not combinations:
        raise ValueError(
            f"{count} pictures of {len(tracks)} tracks x {len(drivers)} drivers x {days} days: "
            "there must be at least one of each"
        )
    scenes, rows = [], []
    for k, (name, driver, _) in enumerate(combinations):
        rng = seeds.generator(seed, "driving/record", learner=car, call=k)
        scenes.append(Scene(name, driver, drawn(rng)))
        share = count * (k + 1) // len(combinations) - count * k // len(combinations)
        rows.append(_driven(scenes[-1], share, rng))
    flat = list(itertools.chain.from_iterable(rows))
    return Recording(
        tuple(scenes),
        np.repeat(np.arange(len(rows)), [len(part) for part in rows]).astype(np.int16),
        np.array([pose for pose, _, _ in flat], np.float64),
        np.array([steering for _, steering, _ in flat], np.float32),
        np.array([tick for _, _, tick in flat], np.int32),
    )


def _driven(scene: Scene, count: int, rng: np.random.Generator) -> list[_Row]:
    """`count` rows; where a driver lets the car drift, the recording is paused."""
    road = track(scene.track)
    driver = Driver(habits(scene.driver), rng)
    rows: list[_Row] = []
    ride = Ride.from_start(road, float(rng.uniform(0, road.length)))
    tick = 0
    while len(rows) < count:
        if ride.over:
            ride = Ride.from_start(road, float(rng.uniform(0, road.length)))
        steering = driver.steer(ride)
        if not driver.drifting:
            rows.append((ride.pose, steering, tick))
        ride.step(steering)
        tick += 1
    return rows
