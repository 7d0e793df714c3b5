"""How the ground looks from above: the picture that the camera lays out in front of the car.

Every pixel near the road knows its exact place along and beside the centreline, so asphalt, paint,
kerbs, gravel and dirt are plain functions of those two numbers. A surface is painted once per
track and look, kept at several resolutions (the far ground needs few pixels), and then only read.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import cv2
import numpy as np
from numpy.typing import NDArray

from dynavg import seeds
from dynavg.driving import catalogue
from dynavg.driving.tracks import LINE_WIDTH, Track

Pixels = NDArray[np.uint8]
Field = NDArray[np.floating]

RESOLUTION = 10.0  # pixels per metre of the finest level
COARSER = 4  # each further level has this many times fewer pixels per metre
LEVELS = 3
MARGIN = 24.0  # metres of countryside around the road
BAND = 2.5  # metres beyond the road's edge that are painted relative to the road

# Two colours of vegetation, gravel, asphalt (RGB).
_PALETTES = (
    ((94, 128, 58), (126, 146, 74), (150, 138, 112), (104, 104, 108)),  # summer meadow
    ((142, 132, 72), (168, 152, 92), (168, 148, 116), (118, 114, 112)),  # dry grass
    ((62, 98, 52), (88, 116, 62), (120, 110, 96), (84, 86, 92)),  # forest
    ((112, 116, 66), (150, 118, 62), (142, 122, 98), (100, 96, 98)),  # autumn
)
TEXTURES = len(_PALETTES)
PAINT = ((232, 232, 226), (224, 186, 84))  # of the sidelines, and of the middle


@dataclass(frozen=True, eq=False)
class Surface:
    """The ground of one track. `levels[k]` has `scales[k]` pixels per metre; (left, top) is the
    world position in metres of the first pixel's outer corner, rows run towards smaller y.
    """

    left: float
    top: float
    levels: tuple[Pixels, ...]
    scales: tuple[float, ...]
    far: tuple[int, int, int]  # the colour of the ground where the picture ends


@lru_cache(maxsize=24)
def surface(name: str, texture: int, shadows: float) -> Surface:
    """The painted ground of a track; `texture` picks the look, `shadows` (0 to 1) their depth."""
    road = catalogue.track(name)
    left, bottom = road.points.min(axis=0) - MARGIN
    right, top = road.points.max(axis=0) + MARGIN
    shape = (int((top - bottom) * RESOLUTION), int((right - left) * RESOLUTION))
    rng = seeds.generator(texture, f"driving/surface/{name}")
    ground = _countryside(shape, texture, rng)
    _paint_road(ground, road, (float(left), float(top)), texture, rng)
    if shadows > 0:
        _cast_shadows(ground, road, (float(left), float(top)), shadows, rng)
    levels = [np.clip(ground, 0, 255).astype(np.uint8)]
    while len(levels) < LEVELS:
        height, width = levels[-1].shape[:2]
        size = (width // COARSER, height // COARSER)
        levels.append(np.asarray(cv2.resize(levels[-1], size, interpolation=cv2.INTER_AREA)))
    far = levels[-1][0].mean(axis=0).astype(int)
    return Surface(
        left=float(left),
        top=float(top),
        levels=tuple(levels),
        scales=tuple(RESOLUTION / COARSER**k for k in range(LEVELS)),
        far=(int(far[0]), int(far[1]), int(far[2])),
    )


def _noise(
    shape: tuple[int, int], metres: float, rng: np.random.Generator, resolution: float = RESOLUTION
) -> Field:
    """Smooth noise of standard deviation about 1 whose grains are about `metres` wide."""
    rows, cols = (max(2, int(n / resolution / metres)) for n in shape)
    coarse = rng.standard_normal((rows, cols)).astype(np.float32)
    return np.asarray(cv2.resize(coarse, shape[::-1], interpolation=cv2.INTER_CUBIC), np.float32)


def _countryside(shape: tuple[int, int], texture: int, rng: np.random.Generator) -> Field:
    first, second = (np.array(c, np.float32) for c in _PALETTES[texture % TEXTURES][:2])
    half = (shape[0] // 2, shape[1] // 2)  # grass needs no more

    def noise(metres: float) -> Field:
        return _noise(half, metres, rng, RESOLUTION / 2)

    mix = _ramp(0.5 * noise(14.0) + 0.25 * noise(3.0), -0.6, 0.6)
    bushes = _ramp(noise(5.0) + 0.4 * noise(1.2), 1.5, 1.8)
    tone = (1 + 0.07 * noise(0.9) + 0.06 * noise(0.25)) * (1 - 0.45 * bushes)
    ground = (first + mix[..., None] * (second - first)) * tone[..., None]
    return np.asarray(cv2.resize(ground, shape[::-1], interpolation=cv2.INTER_LINEAR), np.float32)


def _ramp(x: Field, low: Field | float, high: Field | float) -> Field:
    """0 below `low`, 1 above `high`, straight between."""
    return np.clip((x - low) / (high - low), 0.0, 1.0).astype(np.float32)


@lru_cache(maxsize=4)
def _road_pixels(
    road: Track, corner: tuple[float, float], shape: tuple[int, int]
) -> tuple[NDArray[np.intp], Field, Field]:
    """Flat indices of the pixels near the road, with metres along and left of the middle."""
    left, top = corner
    n = len(road.points)
    middle = np.full(shape, 255, np.uint8)
    cols = ((road.points[:, 0] - left) * RESOLUTION).astype(int)
    rows = ((top - road.points[:, 1]) * RESOLUTION).astype(int)
    middle[rows, cols] = 0
    distance, label = cv2.distanceTransformWithLabels(
        middle, cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL
    )
    vertex_of = np.zeros(int(label.max()) + 1, np.int64)
    vertex_of[label[rows, cols]] = np.arange(n)
    index = np.flatnonzero(distance.ravel() < (road.width / 2 + BAND) * RESOLUTION)
    vertex = vertex_of[label.ravel()[index]]
    x = left + (index % shape[1] + 0.5) / RESOLUTION
    y = top - (index // shape[1] + 0.5) / RESOLUTION
    heading = road.headings[vertex]
    dx, dy = x - road.points[vertex, 0], y - road.points[vertex, 1]
    cos, sin = np.cos(heading), np.sin(heading)
    along = (road.along[vertex] + dx * cos + dy * sin) % road.length
    return index, along.astype(np.float32), (dy * cos - dx * sin).astype(np.float32)


def _paint_road(
    ground: Field,
    road: Track,
    corner: tuple[float, float],
    texture: int,
    rng: np.random.Generator,
) -> None:
    shape = (ground.shape[0], ground.shape[1])
    index, along, offset = _road_pixels(road, corner, shape)
    gravel, asphalt = (np.array(c, np.float32) for c in _PALETTES[texture % TEXTURES][2:])

    def noise(metres: float) -> Field:
        return _noise(shape, metres, rng).ravel()[index]

    side, half = np.abs(offset), road.width / 2
    soft = 1.5 / RESOLUTION  # edges are this many metres wide, about one pixel
    fine = noise(0.12)
    pixels = ground.reshape(-1, 3)[index]

    def lay(colour: Field, where: Field, tone: Field) -> None:
        at = np.flatnonzero(where > 0.004)
        paint = (colour[at] if colour.ndim == 2 else colour) * tone[at, None]
        pixels[at] += where[at, None] * (paint - pixels[at])

    verge = half + 0.9 + 0.35 * noise(1.6)
    lay(gravel, 1 - _ramp(side, verge - 0.15, verge + 0.15), 1 + 0.10 * fine + 0.06 * noise(0.5))
    wheels = np.exp(-np.square((np.abs(side - road.width / 4) - 0.75) / 0.28))
    worn = 1 + 0.045 * fine + 0.05 * noise(2.5) - 0.09 * wheels
    worn = worn - 0.16 * _ramp(noise(7.0), 1.3, 1.4)  # patched asphalt
    lay(asphalt, 1 - _ramp(side, half, half + soft), worn)

    # Paint: sidelines on the inner side of the edge, worn away here and there; a dashed middle.
    wear = _ramp(noise(9.0) + 0.35 * noise(0.3) + 1.3 * road.wear, 0.9, 1.6)
    stripe = _ramp(side, half - LINE_WIDTH - soft, half - LINE_WIDTH)
    stripe *= 1 - _ramp(side, half, half + soft)
    white, yellow = (np.array(colour, np.float32) for colour in PAINT)
    lay(white, 0.92 * stripe * (1 - (0.85 + 0.1 * road.wear) * wear), 1 + 0.05 * fine)
    if road.width > 4.5:
        dash = _ramp(2.0 - np.abs(along % 9.0 - 4.5), 0.0, soft)
        dash *= 1 - _ramp(side, 0.07, 0.07 + soft)
        lay(yellow, 0.85 * dash, 1 + 0.05 * fine)

    # Kerbs, red and white, on the inside of sharp bends.
    bend = _sharpness(road)[(along / road.length * len(road.points)).astype(int) % len(road.points)]
    inside = _ramp(bend * np.sign(offset), 1 / 17, 1 / 15)
    kerb = inside * _ramp(side, half, half + soft) * (1 - _ramp(side, half + 0.5, half + 0.6))
    red = (along % 2.4 < 1.2)[:, None]
    stripes = np.where(red, np.array([186.0, 52, 44]), np.array([226.0, 224, 218]))
    lay(stripes, kerb, worn)

    # Dirt that was carried onto the road.
    carried = noise(3.0) + 0.5 * noise(0.5) + (0.4 + 0.5 * road.wear) * (side / half)
    dirt = _ramp(carried, 1.7, 2.3) * (1 - _ramp(side, half + 0.6, half + 1.2))
    lay(gravel, 0.7 * dirt, 1 + 0.1 * fine)
    ground.reshape(-1, 3)[index] = pixels


def _sharpness(road: Track) -> Field:
    reach = 24
    window = np.ones(2 * reach + 1) / (2 * reach + 1)
    padded = np.concatenate((road.bends[-reach:], road.bends, road.bends[:reach]))
    return np.convolve(padded, window, mode="valid").astype(np.float32)


def _cast_shadows(
    ground: Field,
    road: Track,
    corner: tuple[float, float],
    depth: float,
    rng: np.random.Generator,
) -> None:
    """Shadows of trees that stand beside the road, thrown across it by a low sun."""
    resolution = RESOLUTION / 2  # their edges are soft
    shape = (ground.shape[0] // 2, ground.shape[1] // 2)
    shade = np.zeros(shape, np.float32)
    left, top = corner
    sun = rng.uniform(0, 2 * np.pi)
    for s in np.arange(0.0, road.length, 3.0):
        if rng.random() < 0.6:
            continue
        side = rng.choice([-1.0, 1.0])
        pose = road.pose(float(s), side * (road.width / 2 + rng.uniform(1.5, 6.0)))
        size = rng.uniform(0.8, 2.4)
        reach = rng.uniform(2.0, 5.0)
        centre = (
            int((pose.x + reach * np.cos(sun) - left) * resolution),
            int((top - pose.y - reach * np.sin(sun)) * resolution),
        )
        axes = (int((size + reach) * resolution), int(size * resolution))
        cv2.ellipse(shade, centre, axes, -float(np.degrees(sun)), 0, 360, 1.0, -1)
    shade = np.asarray(cv2.GaussianBlur(shade, (0, 0), 0.25 * resolution), np.float32)
    leaves = _ramp(_noise(shape, 0.6, rng, resolution), -1.2, 0.4)
    dark = 1 - depth * shade * (0.45 + 0.55 * leaves)
    ground *= np.asarray(cv2.resize(dark, ground.shape[1::-1]), np.float32)[..., None]
