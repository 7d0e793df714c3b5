"""What a learner learns from: pictures with the steering a driver gave at them.

A recording made here keeps poses, not pictures: 48,000 of them take about 1 MB, and the camera
takes the same pictures again, bit for bit, whenever they are wanted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file
from torch.utils.data import TensorDataset

from dynavg.driving.camera import CROP, WIDTH, Camera
from dynavg.driving.catalogue import track
from dynavg.driving.conditions import Conditions
from dynavg.driving.surface import Pixels
from dynavg.driving.tracks import Pose

SHAPE = (3, CROP[1] - CROP[0], WIDTH)  # of what the network sees
_FORMAT = "dynavg.driving.recording/1"
_COLUMNS = {"scene": np.int16, "pose": np.float64, "steering": np.float32, "tick": np.int32}


@dataclass(frozen=True, slots=True)
class Scene:
    """Who drove where on what kind of day."""

    track: str
    driver: str
    conditions: Conditions


@dataclass(frozen=True, eq=False)
class Recording:
    """Row i: at `pose[i]` (n, 3) and `tick[i]` of `scenes[scene[i]]`, the driver's `steering[i]`.

    Rows follow each other in time within a scene.
    """

    scenes: tuple[Scene, ...]
    scene: NDArray[np.int16]
    pose: NDArray[np.float64]
    steering: NDArray[np.float32]
    tick: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.steering)

    def of(self, drivers: tuple[str, ...]) -> Recording:
        """The rows of these drivers only.

        >>> from dynavg.driving.recorder import record
        >>> recording = record(60, tracks=("narrow",), drivers=("ada", "emil"), days=1)
        >>> len(recording.of(("emil",)))
        30
        """
        unknown = set(drivers) - {scene.driver for scene in self.scenes}
        if unknown:
            known = ", ".join(sorted({scene.driver for scene in self.scenes}))
            raise ValueError(f"no rows of {', '.join(sorted(unknown))}: the drivers are {known}")
        wanted = [k for k, scene in enumerate(self.scenes) if scene.driver in drivers]
        keep = np.isin(self.scene, wanted)
        return Recording(
            self.scenes, self.scene[keep], self.pose[keep], self.steering[keep], self.tick[keep]
        )

    def shots(self) -> Iterator[tuple[int, Camera, Pose]]:
        """(row, camera, pose) for all rows, scene by scene: each camera is made once."""
        for k, scene in enumerate(self.scenes):
            rows = np.flatnonzero(self.scene == k)
            if not len(rows):
                continue
            camera = Camera(track(scene.track), scene.conditions)
            for row in rows:
                x, y, heading = self.pose[row].tolist()
                yield int(row), camera, Pose(x, y, heading)

    def pictures(self) -> Pixels:
        """All pictures as the network sees them, (n, 3, 68, 320): 65 KB each.

        The colours of a pixel lie together in memory, from which torch trains a fourth faster.
        """
        pictures = np.empty((len(self), *SHAPE[1:], SHAPE[0]), np.uint8)
        for row, camera, pose in self.shots():
            pictures[row] = camera.crop(pose, int(self.tick[row]))
        return pictures.transpose(0, 3, 1, 2)

    def dataset(self) -> TensorDataset:
        """Pictures (n, 3, 68, 320) uint8, held in memory, and steering (n, 1) float32."""
        steering = torch.from_numpy(self.steering[:, None].copy())
        return TensorDataset(torch.from_numpy(self.pictures()), steering)

    def save(self, path: str | Path) -> None:
        """Write the poses to one safetensors file."""
        columns = {name: np.ascontiguousarray(getattr(self, name)) for name in _COLUMNS}
        scenes = json.dumps([asdict(scene) for scene in self.scenes])
        save_file(columns, str(path), metadata={"format": _FORMAT, "scenes": scenes})


def load(path: str | Path) -> Recording:
    """The recording that `Recording.save` wrote."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"no recording at {path}")
    try:
        with safe_open(str(path), framework="np") as file:
            metadata = file.metadata() or {}
            if metadata.get("format") != _FORMAT:
                came = metadata.get("format", "no format")
                raise ValueError(f"{path} is not a recording: it says {came}, not {_FORMAT}")
            columns = {name: file.get_tensor(name) for name in _COLUMNS}
    except SafetensorError as error:
        raise ValueError(f"{path} is not a recording: {error}") from error
    scenes = tuple(
        Scene(entry["track"], entry["driver"], Conditions(**entry["conditions"]))
        for entry in json.loads(metadata["scenes"])
    )
    return Recording(scenes, **columns)
