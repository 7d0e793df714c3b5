"""Pictures for people: the map of a track with where a car drove, and a film of the drive."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from dynavg.driving.camera import WIDTH
from dynavg.driving.surface import PAINT, Pixels, surface
from dynavg.driving.tracks import Pose, Track

OFF_LINE, ON_LINE, CAR = (80, 190, 255), (255, 64, 48), (255, 226, 60)
PICTURE_ENDINGS, FILM_ENDINGS = (".jpg", ".png", ".webp"), (".gif",)
_MAP_HEIGHT = 240
_FINER = 4  # sub-pixels are 1 / 2**_FINER


@lru_cache(maxsize=8)
def _plain_map(name: str, width: int, height: int) -> tuple[Pixels, float, float, float]:
    """The track from above, fitted into the picture; pixels per metre, and the corner (x, y)."""
    look = surface(name, 0, 0.0)
    ground, scale = look.levels[1], look.scales[1]
    shrink = min(width / ground.shape[1], height / ground.shape[0])
    size = (round(ground.shape[1] * shrink), round(ground.shape[0] * shrink))
    how = cv2.INTER_AREA if shrink < 1 else cv2.INTER_CUBIC
    small = np.asarray(cv2.resize(ground, size, interpolation=how))
    dx, dy = (width - size[0]) // 2, (height - size[1]) // 2
    rest = (height - size[1] - dy, width - size[0] - dx)
    picture = cv2.copyMakeBorder(small, dy, rest[0], dx, rest[1], cv2.BORDER_REFLECT)
    dark = np.asarray(picture, np.float32) * 0.72  # so that the path stands out
    return (
        dark.astype(np.uint8),
        scale * shrink,
        look.left - dx / (scale * shrink),
        look.top + dy / (scale * shrink),
    )


def track_map(
    road: Track,
    path: NDArray[np.floating],
    pose: Pose | None = None,
    size: tuple[int, int] = (960, 720),
) -> Pixels:
    """The track with a path, blue on the road and red on its sidelines.

    Rows of `path` are x, y, heading, and 1 where on a line; `pose` draws a car there; `size` is
    (width, height) in pixels.
    """
    plain, scale, left, top = _plain_map(road.name, *size)
    picture = plain.copy()
    thick = max(1, round(size[1] / 240))
    if len(path) > 0:
        pixels = np.stack([(path[:, 0] - left) * scale, (top - path[:, 1]) * scale], axis=1)
        fixed = np.round(pixels * 2**_FINER).astype(np.int32)
        touching = np.asarray(path[:, 3]) > 0
        for k in range(len(fixed) - 1):
            _line(picture, fixed[k], fixed[k + 1], OFF_LINE, thick)
        for k in np.flatnonzero(touching[1:]).tolist():  # on top, wider: what one looks for
            _line(picture, fixed[k], fixed[k + 1], ON_LINE, thick + 2)
    if pose is not None:
        centre = (round((pose.x - left) * scale), round((top - pose.y) * scale))
        cv2.circle(picture, centre, 2 * thick + 2, (0, 0, 0), -1, cv2.LINE_AA)
        cv2.circle(picture, centre, 2 * thick + 1, CAR, -1, cv2.LINE_AA)
    return picture


def _line(
    picture: Pixels,
    start: NDArray[np.int32],
    stop: NDArray[np.int32],
    colour: tuple[int, int, int],
    thick: int,
) -> None:
    first, last = (int(start[0]), int(start[1])), (int(stop[0]), int(stop[1]))
    cv2.line(picture, first, last, colour, thick, cv2.LINE_AA, _FINER)


def dashboard(
    frame: Pixels, road: Track, path: NDArray[np.floating], pose: Pose, legend: str = ""
) -> Pixels:
    """What the car sees (160, 320, 3), above the map of where it drove: (400, 320, 3)."""
    below = track_map(road, path, pose, (WIDTH, _MAP_HEIGHT))
    if legend:
        at = (8, _MAP_HEIGHT - 9)
        for colour, thick in (((0, 0, 0), 3), ((255, 255, 255), 1)):
            cv2.putText(
                below, legend, at, cv2.FONT_HERSHEY_SIMPLEX, 0.42, colour, thick, cv2.LINE_AA
            )
    return np.concatenate((frame, below))


def make_way(path: str | Path, endings: Collection[str]) -> None:
    """Make the folder of a picture to come, and refuse another ending: before the drive, not after.

    >>> make_way("map.gif", {".png"})
    Traceback (most recent call last):
    ...
    ValueError: cannot write a picture to map.gif: its name must end in .png
    """
    if Path(path).suffix.lower() not in endings:
        allowed = ", ".join(sorted(endings))
        raise ValueError(f"cannot write a picture to {path}: its name must end in {allowed}")
    Path(path).parent.mkdir(parents=True, exist_ok=True)


def write_picture(path: str | Path, picture: Pixels) -> None:
    """Write a picture; the file's ending says how."""
    make_way(path, PICTURE_ENDINGS)
    Image.fromarray(picture).save(path)


def write_gif(path: str | Path, frames: Sequence[Pixels], seconds_per_frame: float) -> None:
    """Write an endless film; all frames share one palette, so nothing flickers."""
    if not frames:
        raise ValueError(f"no frames to write to {path}")
    make_way(path, FILM_ENDINGS)
    sample = Image.fromarray(np.concatenate(frames[:: max(1, len(frames) // 6)]))
    marks = [value for colour in (OFF_LINE, ON_LINE, CAR, *PAINT) for value in colour]
    common = 256 - len(marks) // 3
    commonest = sample.quantize(common, method=Image.Quantize.MEDIANCUT).getpalette() or []
    palette = Image.new("P", (1, 1))
    palette.putpalette(commonest[: 3 * common] + marks)  # too rare to be among the commonest
    images = [
        Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE)
        for frame in frames
    ]
    images[0].save(
        path,
        format="GIF",
        save_all=True,
        append_images=images[1:],
        duration=round(1000 * seconds_per_frame),
        loop=0,
    )
