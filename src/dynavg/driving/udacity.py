"""Recordings of the Udacity project's simulator: `driving_log.csv` and a folder `IMG`.

The log names the pictures by their paths on the machine that recorded them, with either kind of
slash; only the file names mean anything here. What cannot be used is counted and told, never
dropped in silence.
"""

from __future__ import annotations

import csv
import math
import re
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError
from torch.utils.data import TensorDataset

from dynavg.driving.camera import CROP, HEIGHT, WIDTH
from dynavg.driving.car import SPEED
from dynavg.driving.recording import SHAPE, Recording
from dynavg.driving.surface import Pixels
from dynavg.driving.tracks import Pose

LOG, PICTURES = "driving_log.csv", "IMG"
COLUMNS = ("center", "left", "right", "steering", "throttle", "brake", "speed")
SIDE_CAMERA = 0.8  # metres that the left and right cameras stand beside the middle one
_MILES_PER_HOUR = 2.23694


class UdacityWarning(UserWarning):
    """Part of a recording could not be used."""


@dataclass(slots=True)
class Report:
    """What was found in a log: how many rows, and what was wrong with which."""

    rows: int = 0
    damaged: list[str] = field(default_factory=list)  # "line 7: ..."
    missing: list[str] = field(default_factory=list)  # file names
    unusable: list[str] = field(default_factory=list)  # "file name: ..."

    @property
    def faults(self) -> int:
        """How many rows and pictures could not be used."""
        return len(self.damaged) + len(self.missing) + len(self.unusable)

    def __str__(self) -> str:
        parts = [f"{self.rows} rows"]
        for what, found in (
            ("damaged rows", self.damaged),
            ("missing pictures", self.missing),
            ("unusable pictures", self.unusable),
        ):
            more = ", ..." if len(found) > 3 else ""
            examples = f" ({'; '.join(found[:3])}{more})" if found else ""
            parts.append(f"{len(found)} {what}{examples}")
        return ", ".join(parts)


@dataclass(frozen=True, eq=False)
class UdacityRecording:
    """Pictures on disk and the steering at each, and the report of what could not be used."""

    files: tuple[Path, ...]
    steering: NDArray[np.float32]
    report: Report

    def __len__(self) -> int:
        return len(self.files)

    def pictures(self) -> Pixels:
        """All pictures as the network sees them, (n, 3, 68, 320), laid out as `Recording`'s."""
        pictures = np.empty((len(self), *SHAPE[1:], SHAPE[0]), np.uint8)
        for row, path in enumerate(self.files):
            pictures[row] = picture_of(path)[CROP[0] : CROP[1]]
        return pictures.transpose(0, 3, 1, 2)

    def dataset(self) -> TensorDataset:
        """Pictures (n, 3, 68, 320) uint8, held in memory, and steering (n, 1) float32."""
        steering = torch.from_numpy(self.steering[:, None].copy())
        return TensorDataset(torch.from_numpy(self.pictures()), steering)


def read(folder: str | Path, side_correction: float | None = None) -> UdacityRecording:
    """The recording in a folder that the simulator, or `write`, made.

    With `side_correction` the side cameras' pictures are used too, as if the middle camera had
    seen them: the steering is that much further right for the left one, left for the right one.
    """
    folder = Path(folder)
    log = folder / LOG
    if not log.is_file():
        raise FileNotFoundError(f"no {LOG} in {folder}: a Udacity recording is a folder with one")
    report = Report()
    files: list[Path] = []
    steerings: list[float] = []
    cameras: list[tuple[int, float]] = [(0, 0.0)]
    if side_correction is not None:
        cameras += [(1, side_correction), (2, -side_correction)]
    with log.open(newline="", encoding="utf-8-sig", errors="replace") as lines:
        reader = csv.reader(lines, skipinitialspace=True)
        for row in reader:
            if not row or (report.rows == 0 and _is_header(row)):
                continue
            report.rows += 1
            try:
                names, steering = _parsed(row)
            except ValueError as error:
                report.damaged.append(f"line {reader.line_num}: {error}")
                continue
            for column, correction in cameras:
                path = folder / PICTURES / names[column]
                if _usable(path, report):
                    files.append(path)
                    steerings.append(min(max(steering + correction, -1.0), 1.0))
    if not files:
        raise ValueError(f"nothing in {log} can be used: {report}")
    if report.faults:
        warnings.warn(f"{log}: {report}; {len(files)} pictures are used", UdacityWarning, 2)
    return UdacityRecording(tuple(files), np.array(steerings, np.float32), report)


def _is_header(row: list[str]) -> bool:
    return [cell.strip().lower() for cell in row[:4]] == list(COLUMNS[:4])


def _parsed(row: list[str]) -> tuple[list[str], float]:
    if len(row) != len(COLUMNS):
        raise ValueError(f"{len(row)} columns, not the {len(COLUMNS)} ({', '.join(COLUMNS)})")
    names = [re.split(r"[\\/]", cell.strip())[-1] for cell in row[:3]]
    if not names[0]:
        raise ValueError("no picture is named")
    try:
        steering = float(row[3])
    except ValueError:
        raise ValueError(f"the steering is {row[3]!r}, not a number") from None
    if not (math.isfinite(steering) and abs(steering) <= 1):
        raise ValueError(f"the steering is {row[3]}, not between -1 and 1")
    return names, steering


def _usable(path: Path, report: Report) -> bool:
    if not path.is_file():
        report.missing.append(path.name or "(no name)")
        return False
    try:
        picture_of(path)
    except ValueError as error:
        report.unusable.append(str(error))
        return False
    return True


def picture_of(source: Path | BinaryIO) -> Pixels:
    """A picture of the simulator's camera, (160, 320, 3), read whole: files do break off.

    >>> import io
    >>> picture_of(io.BytesIO(b"hello"))
    Traceback (most recent call last):
    ...
    ValueError: image: not a picture
    """
    name = source.name if isinstance(source, Path) else "image"
    try:
        with Image.open(source) as image:
            width, height = image.size
            if (width, height) == (WIDTH, HEIGHT):
                return np.asarray(image.convert("RGB"))
    except UnidentifiedImageError:
        raise ValueError(f"{name}: not a picture") from None
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError(f"{name}: cannot be read as a picture ({error})") from error
    raise ValueError(f"{name}: {width} x {height} pixels, not {WIDTH} x {HEIGHT}")


def write(recording: Recording, folder: str | Path) -> None:
    """Write a recording as the simulator would: three cameras, JPEG, a log with a header."""
    folder = Path(folder)
    (folder / PICTURES).mkdir(parents=True, exist_ok=True)
    rows: dict[int, list[str]] = {}
    for row, camera, pose in recording.shots():
        names = []
        for side, shift in (("center", 0.0), ("left", SIDE_CAMERA), ("right", -SIDE_CAMERA)):
            name = f"{side}_{row:06d}.jpg"
            x = pose.x - shift * math.sin(pose.heading)
            y = pose.y + shift * math.cos(pose.heading)
            frame = camera.frame(Pose(x, y, pose.heading), int(recording.tick[row]))
            Image.fromarray(frame).save(folder / PICTURES / name, quality=92)
            names.append(f"{PICTURES}/{name}")
        speed = f"{SPEED * _MILES_PER_HOUR:.5f}"
        rows[row] = [*names, f"{recording.steering[row]:.7f}", "0.3", "0", speed]
    with (folder / LOG).open("w", newline="", encoding="utf-8") as lines:
        writer = csv.writer(lines)
        writer.writerow(COLUMNS)
        writer.writerows(rows[row] for row in sorted(rows))
