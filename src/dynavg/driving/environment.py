"""The environment for others' agents: Gymnasium's interface to a ride.

It adds nothing to `ride` and `camera` but the interface, an observation and a reward.
"""

from __future__ import annotations

from typing import Any, SupportsFloat

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from dynavg.driving.camera import HEIGHT, WIDTH, Camera
from dynavg.driving.catalogue import track
from dynavg.driving.conditions import Conditions, day, drawn
from dynavg.driving.pictures import dashboard
from dynavg.driving.ride import LAPS, Outcome, Ride
from dynavg.driving.surface import Pixels

ENVIRONMENT_ID = "dynavg/Driving-v0"


class DrivingEnv(gymnasium.Env[Pixels, NDArray[np.float32]]):
    """Steer a car around a track by its front camera.

    Observation: the picture (160, 320, 3). Action: steering in [-1, 1], 1 being 25 degrees to the
    right. Reward: metres made along the road in the tick, less half of them on a sideline, less 10
    for leaving the road or turning round. `conditions` is the name of a day, conditions, or None
    for other ones in every episode. An episode starts in the middle of the road, at a random place
    or at the option `start` of `reset` (a share of the lap).
    """

    metadata: dict[str, Any] = {  # noqa: RUF012  (as Gymnasium declares it)
        "render_modes": ["rgb_array"],
        "render_fps": 10,
    }

    def __init__(
        self,
        track: str = "training",
        conditions: str | Conditions | None = "noon",
        laps: int = LAPS,
        render_mode: str | None = None,
    ) -> None:
        if render_mode not in (None, "rgb_array"):
            raise ValueError(f"render_mode is {render_mode!r}: it is None or 'rgb_array'")
        self.observation_space = spaces.Box(0, 255, (HEIGHT, WIDTH, 3), np.uint8)
        self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.render_mode = render_mode
        self._road = _road(track)
        self._conditions = day(conditions) if isinstance(conditions, str) else conditions
        self._laps = laps
        self._camera: Camera | None = None
        self._ride: Ride | None = None
        self._path: list[tuple[float, float, float, float]] = []

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Pixels, dict[str, Any]]:
        """Begin an episode."""
        super().reset(seed=seed)
        unknown = set(options or {}) - {"start"}
        if unknown:
            raise ValueError(f"unknown options {sorted(unknown)}: the only one is 'start'")
        start = (options or {}).get("start", self.np_random.uniform())
        if self._camera is None or self._conditions is None:
            self._camera = Camera(self._road, self._conditions or drawn(self.np_random))
        self._ride = Ride.from_start(self._road, float(start) * self._road.length)
        self._ride.laps_wanted = self._laps
        self._path = []
        return self._observation(), self._info()

    def step(
        self, action: NDArray[np.float32]
    ) -> tuple[Pixels, SupportsFloat, bool, bool, dict[str, Any]]:
        """Hold the wheels for a tenth of a second."""
        ride = self._started()
        before = ride.metres
        ride.step(float(np.asarray(action).reshape(())))
        made = ride.metres - before
        failed = ride.outcome in {Outcome.OFF_ROAD, Outcome.TURNED_ROUND}
        reward = made * (0.5 if ride.on_line else 1.0) - 10.0 * failed
        late = ride.outcome is Outcome.OUT_OF_TIME
        return self._observation(), reward, ride.over and not late, late, self._info()

    def render(self) -> Pixels | None:
        """What the car sees above the map of where it drove, (400, 320, 3)."""
        if self.render_mode is None:
            return None
        ride = self._started()
        return dashboard(self._observation(), self._road, np.array(self._path), ride.pose)

    def _started(self) -> Ride:
        if self._ride is None:
            raise RuntimeError("reset() comes before step() and render()")
        return self._ride

    def _observation(self) -> Pixels:
        ride = self._started()
        if self._camera is None:
            raise RuntimeError("reset() comes first")
        if len(self._path) == ride.ticks:
            self._path.append((*ride.pose, float(ride.on_line)))
        return self._camera.frame(ride.pose, ride.ticks)

    def _info(self) -> dict[str, Any]:
        ride = self._started()
        return {
            "outcome": ride.outcome.value,
            "seconds": ride.seconds,
            "laps": ride.laps,
            "crossings": ride.crossings,
            "line_seconds": ride.line_seconds,
            "on_line": ride.on_line,
            "offset": ride.place.offset,
            "along": ride.place.s,
        }


_road = track  # the parameter of the environment has the same name


def register() -> None:
    """Make the environment known to `gymnasium.make`; once is enough, more does no harm."""
    if ENVIRONMENT_ID not in gymnasium.registry:
        gymnasium.register(ENVIRONMENT_ID, entry_point=f"{__name__}:DrivingEnv")
