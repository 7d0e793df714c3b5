"""What a day does to the picture: light, shadows, ground, dirt on the lens, a shaking camera.

Conditions change pictures only, never where the car is or what is true about the road.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynavg.driving.surface import TEXTURES


@dataclass(frozen=True, slots=True)
class Conditions:
    """One kind of day. Everything but `texture` and `seed` is a strength; 0 means none."""

    light: float = 1.0  # brightness of everything, 1 is noon
    warmth: float = 0.0  # -1 blue (dawn) to 1 orange (evening)
    haze: float = 0.25  # 0 clear to 1 fog that hides the far road
    clouds: float = 0.0  # how far the light rises and falls while driving
    shadows: float = 0.0  # how dark the shadows of trees across the road are
    texture: int = 0  # which look of road and countryside
    dirt: float = 0.0  # specks on the lens
    jitter: float = 0.0  # 1 is a camera on a rough road
    seed: int = 0  # of the specks, the clouds and the shaking

    def __post_init__(self) -> None:
        if not 0.1 <= self.light <= 2.0:
            raise ValueError(f"light is {self.light}: it lies between 0.1 and 2")
        if not -1.0 <= self.warmth <= 1.0:
            raise ValueError(f"warmth is {self.warmth}: it lies between -1 and 1")
        for name in ("haze", "clouds", "shadows", "dirt", "jitter"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ValueError(f"{name} is {getattr(self, name)}: it lies between 0 and 1")
        if not 0 <= self.texture < TEXTURES:
            raise ValueError(f"texture is {self.texture}: there are 0 to {TEXTURES - 1}")


# The days that models are judged on; "noon" is the plain picture.
DAYS = {
    "noon": Conditions(),
    "morning": Conditions(light=0.85, warmth=-0.5, haze=0.7, texture=2, jitter=0.3, seed=1),
    "forest": Conditions(light=0.95, shadows=0.6, clouds=0.2, texture=2, jitter=0.3, seed=2),
    "evening": Conditions(light=0.8, warmth=0.8, shadows=0.5, texture=3, jitter=0.5, seed=3),
    "rough": Conditions(light=1.15, dirt=0.8, clouds=0.3, texture=1, jitter=1.0, seed=4),
}


def day(name: str) -> Conditions:
    """The conditions of that name.

    >>> day("evening").warmth
    0.8
    """
    if name not in DAYS:
        raise ValueError(f"unknown day {name!r}: the days are {', '.join(DAYS)}")
    return DAYS[name]


def drawn(rng: np.random.Generator) -> Conditions:
    """Random conditions; the ground comes from the few looks that are kept painted."""
    return Conditions(
        light=float(rng.uniform(0.5, 1.35)),
        warmth=float(rng.uniform(-1.0, 1.0)),
        haze=float(rng.uniform(0.1, 0.85)),
        clouds=float(rng.uniform(0.0, 0.5)),
        shadows=float(rng.choice([0.0, 0.6])),
        texture=int(rng.integers(TEXTURES)),
        dirt=float(max(0.0, rng.uniform(-0.4, 1.0))),
        jitter=float(rng.uniform(0.0, 1.0)),
        seed=int(rng.integers(2**31)),
    )
