"""Deep driving: a road, a car with a camera, drivers to learn from, and a judge.

It stands in for the simulator of the Udacity project, and speaks to that one too. Importing this
package registers the Gymnasium environment `dynavg/Driving-v0`.
"""

try:
    import cv2 as _cv2  # noqa: F401
    import gymnasium as _gymnasium  # noqa: F401
    import websockets as _websockets  # noqa: F401
except ImportError as _missing:
    raise ImportError(
        f"dynavg.driving needs {_missing.name}, which is not installed: "
        "pip install dynavg[driving]",
        name=_missing.name,
    ) from _missing

from dynavg.driving import environment as _environment
from dynavg.driving import udacity
from dynavg.driving.album import film, sheet
from dynavg.driving.bridge import Bridge, serve
from dynavg.driving.camera import Camera
from dynavg.driving.cars import cars, udacity_cars
from dynavg.driving.catalogue import NAMES as TRACKS
from dynavg.driving.catalogue import track
from dynavg.driving.conditions import DAYS, Conditions, day
from dynavg.driving.drive import (
    DriveResult,
    drive,
    drive_simulator,
    driver_steers,
    load_model,
)
from dynavg.driving.drivers import DRIVERS, HUMANS, Driver, Habits, habits
from dynavg.driving.environment import ENVIRONMENT_ID, DrivingEnv
from dynavg.driving.judging import Driven, Start, drive_starts, starts
from dynavg.driving.loss import Score, driving_loss, pooled, scores
from dynavg.driving.pictures import track_map, write_gif, write_picture
from dynavg.driving.recorder import record
from dynavg.driving.recording import Recording, Scene, load
from dynavg.driving.ride import Outcome, Ride

_environment.register()

__all__ = [
    "DAYS",
    "DRIVERS",
    "ENVIRONMENT_ID",
    "HUMANS",
    "TRACKS",
    "Bridge",
    "Camera",
    "Conditions",
    "DriveResult",
    "Driven",
    "Driver",
    "DrivingEnv",
    "Habits",
    "Outcome",
    "Recording",
    "Ride",
    "Scene",
    "Score",
    "Start",
    "cars",
    "day",
    "drive",
    "drive_simulator",
    "drive_starts",
    "driver_steers",
    "driving_loss",
    "film",
    "habits",
    "load",
    "load_model",
    "pooled",
    "record",
    "scores",
    "serve",
    "sheet",
    "starts",
    "track",
    "track_map",
    "udacity",
    "udacity_cars",
    "write_gif",
    "write_picture",
]
