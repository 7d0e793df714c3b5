"""Sky and hills all around, as one strip of pixels that the camera cuts its view from."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dynavg import seeds
from dynavg.driving.surface import Pixels

WIDTH = 871  # columns for the full circle: the camera's own resolution straight ahead
AIR = (196, 208, 222)  # the colour of haze
HORIZON = 92  # the row of the horizon
_BELOW = 12  # rows of the nearest hills' foot below it

_HILLS = ((122, 140, 150), (96, 118, 110), (70, 96, 66))  # far to near


@lru_cache(maxsize=32)
def panorama(texture: int, haze: float) -> Pixels:
    """The strip (rows, 2 * WIDTH, 3): the full circle twice, so that every view is one piece."""
    rng = seeds.generator(texture, "driving/panorama")
    rows = np.arange(HORIZON + _BELOW)[:, None]
    height = np.clip(rows / HORIZON, 0, 1)[..., None]
    strip = (1 - height) * np.array([92, 142, 206.0]) + height * np.array([204, 218, 232.0])
    strip = np.repeat(strip, WIDTH, axis=1)
    cover = _clouds(rng, len(rows))[..., None] * (0.4 + 0.6 * height)
    strip += cover * (np.array([250, 250, 252.0]) - strip)
    air = np.array(AIR, np.float64)
    for k, colour in enumerate(_HILLS):
        tops = HORIZON - (13 - 4 * k) - (5.0 - 1.2 * k) * _outline(rng, 3 * 2**k + 2)
        if k == 2:  # the nearest hills carry trees
            tops -= np.abs(1.6 * rng.standard_normal(WIDTH))
        inside = np.clip(rows - tops[None, :] + 0.5, 0, 1)[..., None]
        hazy = min(0.9, (0.75 - 0.25 * k) * (0.35 + haze))
        strip += inside * ((1 - hazy) * np.array(colour) + hazy * air - strip)
    circle = np.clip(strip, 0, 255).astype(np.uint8)
    return np.concatenate((circle, circle), axis=1)


def _outline(rng: np.random.Generator, waves: int) -> NDArray[np.float64]:
    """A rolling line that closes on itself, of standard deviation about 1."""
    angle = np.linspace(0, 2 * np.pi, WIDTH, endpoint=False)
    order = np.arange(1, 4 * waves)
    size = rng.standard_normal(len(order)) / (1 + (order / waves) ** 2)
    phase = rng.uniform(0, 2 * np.pi, len(order))
    line = (size[:, None] * np.sin(order[:, None] * angle + phase[:, None])).sum(axis=0)
    return np.asarray(line / (line.std() + 1e-9))


def _clouds(rng: np.random.Generator, rows: int) -> NDArray[np.float64]:
    """How much cloud covers each pixel of the sky (rows, WIDTH), 0 to 1."""
    cover = np.zeros((rows, WIDTH))
    for octave in range(1, 5):
        columns = np.stack([_outline(rng, 3 * 2**octave) for _ in range(2 + 4 * octave)])
        at = np.linspace(0, len(columns) - 1.001, rows)
        low = at.astype(int)
        mix = (at - low)[:, None]
        cover += ((1 - mix) * columns[low] + mix * columns[low + 1]) / octave
    return np.clip((cover - 0.3) / 2.6, 0, 0.85)
