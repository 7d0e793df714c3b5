"""The front camera: 320 x 160 RGB, as in the simulator of the Udacity project.

The ground is a plane, so the picture of it is one perspective warp of the painted surface; sky and
hills are a panorama around the world. Everything random in a picture is a function of the
conditions' seed and of `tick`, so a stored pose gives the same picture again, bit for bit.
"""

from __future__ import annotations

import itertools
import math

import cv2
import numpy as np
from numpy.typing import NDArray

from dynavg import seeds
from dynavg.driving import panorama
from dynavg.driving.conditions import Conditions
from dynavg.driving.surface import Pixels, Surface, surface
from dynavg.driving.tracks import Pose, Track

WIDTH, HEIGHT = 320, 160
CROP = (67, 135)  # rows that the network sees: from just above the horizon to 2 m ahead
FIELD_OF_VIEW = math.radians(60.0)  # vertical
ABOVE_GROUND = 0.97  # metres
DOWN = math.radians(4.0)
FOCAL = HEIGHT / 2 / math.tan(FIELD_OF_VIEW / 2)  # pixels

_FILTER_ONE = 100  # this value of the lens filter lets light through unchanged
_TICKS = 4096  # the shaking repeats after this many ticks
# Ground nearer than this many metres is read from the finest level, and so on.
_LEVEL_ENDS = (5.5, 17.0)


class Camera:
    """Takes pictures of one track on one kind of day. Construction paints the ground, so keep it.

    >>> from dynavg.driving.catalogue import track
    >>> camera = Camera(track("narrow"), Conditions())
    >>> camera.frame(track("narrow").pose(10.0)).shape
    (160, 320, 3)
    """

    def __init__(self, road: Track, conditions: Conditions) -> None:
        self.conditions = conditions
        self._surface = surface(road.name, conditions.texture, conditions.shadows)
        rng = seeds.generator(conditions.seed, "driving/camera")
        self._shake = _shaking(conditions.jitter, rng)
        self._cloud_phase = float(rng.uniform(0, 2 * math.pi))
        self._filter, self._mud = _lens(conditions, rng)
        self._sky = panorama.panorama(conditions.texture, conditions.haze)
        self._clear, self._air = _haze(conditions.haze)

    def frame(self, pose: Pose, tick: int = 0) -> Pixels:
        """The whole picture (160, 320, 3)."""
        return self.rows(pose, tick, (0, HEIGHT))

    def crop(self, pose: Pose, tick: int = 0) -> Pixels:
        """The rows the network sees (68, 320, 3): the same pixels as in `frame`, for less work."""
        return self.rows(pose, tick, CROP)

    def rows(self, pose: Pose, tick: int, rows: tuple[int, int]) -> Pixels:
        """The picture's rows from `rows[0]` up to `rows[1]`."""
        first, last = rows
        pitch, yaw, height = self._shake[tick % _TICKS]
        down = DOWN + pitch
        picture = np.empty((last - first, WIDTH, 3), np.uint8)
        horizon = HEIGHT / 2 - FOCAL * math.tan(down)
        ground = min(max(math.ceil(horizon + 0.5), first), last)
        if ground > first:
            self._put_sky(picture[: ground - first], pose.heading + yaw, first - horizon)
        if ground < last:
            to_surface = _homography(self._surface, pose, down, yaw, ABOVE_GROUND + height)
            self._put_ground(picture[ground - first :], to_surface, ground, horizon)
        light = self._clouds(tick) / _FILTER_ONE
        picture = np.asarray(cv2.multiply(picture, self._filter[first:last], scale=light), np.uint8)
        if self._mud is not None:
            picture = np.asarray(cv2.add(picture, self._mud[first:last]), np.uint8)
        return picture

    def _clouds(self, tick: int) -> float:
        wave = math.sin(tick / 31 + self._cloud_phase) + math.sin(tick / 83)
        return 1 + self.conditions.clouds * wave / 2

    def _put_sky(self, into: Pixels, heading: float, above: float) -> None:
        # A plain cut, true to scale straight ahead and a little squeezed at the sides.
        width = panorama.WIDTH
        left = (round(-heading * (width / (2 * math.pi))) - WIDTH // 2) % width
        top = min(max(round(above) + panorama.HORIZON, 0), len(self._sky) - len(into))
        into[:] = self._sky[top : top + len(into), left : left + WIDTH]

    def _put_ground(
        self, into: Pixels, to_surface: NDArray[np.float64], first: int, horizon: float
    ) -> None:
        last = first + len(into)
        ends = [horizon + FOCAL * ABOVE_GROUND / metres for metres in _LEVEL_ENDS]
        edges = [last, *(min(max(round(end), first), last) for end in ends), first]
        look = self._surface
        for level, (stop, start) in enumerate(itertools.pairwise(edges)):
            if stop == start:
                continue
            scale = look.scales[level] / look.scales[0]
            # From corner-based finest pixels to the level's, whose centres are whole numbers.
            to_level = np.array([[scale, 0, -0.5], [0, scale, -0.5], [0, 0, 1]]) @ to_surface
            to_level[:, 2] += start * to_level[:, 1]
            cv2.warpPerspective(
                look.levels[level],
                to_level,
                (WIDTH, stop - start),
                dst=into[start - first : stop - first],
                flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP,
                borderMode=cv2.BORDER_CONSTANT,
                borderValue=look.far,
            )
        begin = round(first - horizon)
        far = into[: max(0, len(self._clear) - begin)]
        if len(far):
            cv2.multiply(far, self._clear[begin : begin + len(far)], dst=far, scale=1 / 255)
            cv2.add(far, self._air[begin : begin + len(far)], dst=far)


def _homography(
    look: Surface, pose: Pose, down: float, yaw: float, height: float
) -> NDArray[np.float64]:
    """From (column, row, 1) of the picture to finest-level (x, y, w) of the surface, corner-based.

    A pixel's ray has 1 forward, a right and b down in the camera's frame; it meets the ground
    `height` below after height / (b cos + sin) of its length.
    """
    cos, sin = math.cos(down), math.sin(down)
    column = np.array([1 / FOCAL, 0.0, (0.5 - WIDTH / 2) / FOCAL])
    row = np.array([0.0, 1 / FOCAL, (0.5 - HEIGHT / 2) / FOCAL])
    one = np.array([0.0, 0.0, 1.0])
    forward = height * (cos * one - sin * row)
    right = height * column
    depth = cos * row + sin * one
    heading = pose.heading + yaw
    c, s = math.cos(heading), math.sin(heading)
    scale = look.scales[0]
    x = (pose.x - look.left) * depth + c * forward + s * right
    y = (look.top - pose.y) * depth - s * forward + c * right
    return np.stack([scale * x, scale * y, depth])


def _shaking(strength: float, rng: np.random.Generator) -> list[tuple[float, float, float]]:
    """For each tick: pitch and yaw in radians, height in metres."""
    scale = strength * np.array([math.radians(0.5), math.radians(0.8), 0.03])
    rows = rng.standard_normal((_TICKS, 3)) * scale
    return [(float(p), float(y), float(h)) for p, y, h in rows]


def _haze(strength: float) -> tuple[Pixels, Pixels]:
    """For each row below the horizon: what the air lets through, and what it adds."""
    below = np.arange(0.5, 48.5)
    metres = FOCAL * ABOVE_GROUND / below
    hidden = 1 - np.exp(-metres * (0.004 + 0.05 * strength**2))
    hidden *= np.clip((48 - below) / 24, 0, 1)  # nothing to see nearby; no edge where it ends
    clear = np.broadcast_to((1 - hidden)[:, None, None], (len(below), WIDTH, 3))
    air = np.array(panorama.AIR, np.float64) * (1 - clear)
    return (255 * clear).astype(np.uint8), air.astype(np.uint8)


def _lens(conditions: Conditions, rng: np.random.Generator) -> tuple[Pixels, Pixels | None]:
    """What every picture is multiplied by (in steps of 1 / _FILTER_ONE): the day's light and the
    specks of dirt; and the colour that the dirt adds.
    """
    warmth = conditions.warmth
    tint = conditions.light * np.array([1 + 0.10 * warmth, 1.0, 1 - 0.15 * warmth])
    opaque = np.zeros((HEIGHT, WIDTH), np.float32)
    for _ in range(round(26 * conditions.dirt)):
        centre = (int(rng.integers(WIDTH)), int(rng.integers(HEIGHT)))
        cv2.circle(opaque, centre, int(rng.integers(1, 6)), float(rng.uniform(0.3, 0.8)), -1)
    opaque = np.asarray(cv2.GaussianBlur(opaque, (0, 0), 1.6), np.float32)
    let_through = np.clip(_FILTER_ONE * tint * (1 - opaque[..., None]), 0, 255).astype(np.uint8)
    if not opaque.any():
        return let_through, None
    return let_through, (opaque[..., None] * np.array([88, 74, 58])).astype(np.uint8)
