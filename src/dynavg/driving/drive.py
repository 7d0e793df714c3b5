"""What `dynavg drive` does: one model, or the expert, drives; you watch and get the facts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from dynavg.driving import bridge, pictures
from dynavg.driving.album import film
from dynavg.driving.camera import CROP
from dynavg.driving.car import TICK
from dynavg.driving.catalogue import track as track_named
from dynavg.driving.drivers import DRIVERS, Driver, habits
from dynavg.driving.judging import Start, Steer, drive_starts, one_thread
from dynavg.driving.ride import LAPS, Ride
from dynavg.driving.surface import Pixels
from dynavg.models import driving_net


@dataclass(frozen=True, slots=True)
class DriveResult:
    """The facts of a drive, named as in the paper. `as_dict` is what `--json` prints."""

    model: str
    track: str
    day: str
    outcome: str
    t: float  # seconds
    crossings: int
    t_line: float  # seconds
    laps: float

    def as_dict(self) -> dict[str, str | float | int]:
        """Plain values by name."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def load_model(path: str | Path) -> nn.Module:
    """The driving network with the weights of a safetensors file, ready to drive."""
    if not Path(path).is_file():
        raise FileNotFoundError(
            f"no model at {path}: give a .safetensors file, or one of {', '.join(DRIVERS)}"
        )
    try:
        weights = load_file(str(path))
    except SafetensorError as error:
        raise ValueError(f"{path} is not a safetensors file: {error}") from error
    model = driving_net()
    wanted = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    came = {name: tuple(value.shape) for name, value in weights.items()}
    wrong = [
        f"{name} is {came.get(name, 'missing')}, not {wanted.get(name, 'part of it')}"
        for name in sorted(wanted.keys() | came.keys())
        if came.get(name) != wanted.get(name)
    ]
    if wrong:
        more = f", and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        raise ValueError(f"{path} is no driving network: {'; '.join(wrong[:3])}{more}")
    model.load_state_dict(weights)
    return model.eval()


def driver_steers(name: str, seed: int = 0) -> Steer:
    """The driver of that name at the wheel of every ride; looks at the road, not the pictures."""
    driving: dict[int, tuple[Ride, Driver]] = {}  # holds the rides, so that no id comes twice

    def steer(_: Pixels, rides: Sequence[Ride]) -> Sequence[float]:
        for ride in rides:
            if id(ride) not in driving:
                rng = np.random.default_rng([seed, len(driving)])
                driving[id(ride)] = ride, Driver(habits(name), rng)
        return [driving[id(ride)][1].steer(ride) for ride in rides]

    return steer


def drive(
    model: str | Path | nn.Module,
    start: Start | None = None,
    *,
    laps: int = LAPS,
    gif: str | Path | None = None,
    map_picture: str | Path | None = None,
) -> DriveResult:
    """Let a model file, a network or a driver (such as "expert") drive, and write the pictures.

    >>> result = drive("expert", Start("narrow"), laps=1)
    >>> result.outcome, result.crossings
    ('finished', 0)
    """
    start = start or Start()
    for path, endings in ((gif, pictures.FILM_ENDINGS), (map_picture, pictures.PICTURE_ENDINGS)):
        if path is not None:
            pictures.make_way(path, endings)
    if isinstance(model, nn.Module):
        name = type(model).__name__
        steer: Steer | nn.Module = model
    elif str(model) in DRIVERS:
        name, steer = str(model), driver_steers(str(model))
    else:
        name, steer = str(model), load_model(model)
    driven = drive_starts(steer, [start], laps)[0]
    if gif is not None:
        pictures.write_gif(gif, film(driven), TICK)
    if map_picture is not None:
        road = track_named(start.track)
        drawn = pictures.track_map(road, driven.path, driven.pose(-1))
        pictures.write_picture(map_picture, drawn)
    return DriveResult(
        model=name,
        track=start.track,
        day="own conditions" if start.conditions else start.day,
        outcome=driven.outcome.value,
        t=round(driven.seconds, 3),
        crossings=driven.crossings,
        t_line=round(driven.line_seconds, 3),
        laps=round(driven.laps, 4),
    )


def frame_steers(model: nn.Module) -> Callable[[Pixels], float]:
    """A model as the bridge wants it: from a whole picture (160, 320, 3) to the steering."""

    def steer(frame: Pixels) -> float:
        crop = np.ascontiguousarray(frame[CROP[0] : CROP[1]].transpose(2, 0, 1))
        with torch.inference_mode():
            steering = float(model(torch.from_numpy(crop)[None].float().div_(255)))
        return min(max(steering, -1.0), 1.0) if np.isfinite(steering) else 0.0

    return steer


def drive_simulator(
    model: str | Path | nn.Module, speed: float = 9.0, port: int = bridge.PORT
) -> bridge.Served:
    """Let a model drive the Udacity simulator until interrupted; `speed` in miles per hour."""
    if not isinstance(model, nn.Module):
        if str(model) in DRIVERS:
            raise ValueError(
                f"{model} needs to see the road itself, and the simulator shows pictures only: "
                "give a model file"
            )
        model = load_model(model)
    with one_thread():
        return bridge.serve(frame_steers(model), speed, port)
