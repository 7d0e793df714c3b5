"""The words of the Udacity simulator: Engine.IO and Socket.IO frames, as text in and out.

The simulator announces EIO=4 but behaves as version 3: the client sends the pings ("2") and waits
for pongs ("3"). Pure functions of text; sockets are in `bridge`.
"""

from __future__ import annotations

import base64
import io
import json
import math
from dataclasses import dataclass

from dynavg.driving.surface import Pixels
from dynavg.driving.udacity import picture_of

CONNECTED = "40"
PING, PONG = "2", "3"
_EVENT = "42"
MANUAL = f'{_EVENT}["manual",{{}}]'


@dataclass(frozen=True, eq=False)
class Telemetry:
    """What the simulator tells: its picture (160, 320, 3), and the speed in miles per hour."""

    picture: Pixels
    speed: float


class BadFrame(ValueError):
    """A frame that does not follow the protocol; its message says how."""


def opened(session: str) -> str:
    """The packet that opens a connection.

    >>> opened("a")[:10]
    '0{"sid":"a'
    """
    settings = {"sid": session, "upgrades": [], "pingInterval": 25000, "pingTimeout": 60000}
    return "0" + json.dumps(settings, separators=(",", ":"))


def steer(steering: float, throttle: float) -> str:
    """The event that steers; the simulator wants both values as strings.

    >>> steer(-0.25, 0.1)
    '42["steer",{"steering_angle":"-0.250000","throttle":"0.100000"}]'
    """
    data = {"steering_angle": f"{steering:.6f}", "throttle": f"{throttle:.6f}"}
    return _EVENT + json.dumps(["steer", data], separators=(",", ":"))


def parsed(frame: str | bytes) -> Telemetry | str | None:
    """What a frame from the simulator means: telemetry, the answer it wants, or nothing to do.

    >>> parsed("2"), parsed('42["telemetry",{}]') == MANUAL, parsed("40")
    ('3', True, None)
    """
    if isinstance(frame, bytes):
        raise BadFrame(f"{len(frame)} binary bytes, but the simulator sends text")
    if frame.startswith(PING):
        return PONG + frame[1:]
    if not frame.startswith(_EVENT):
        if frame[:1] in {"0", "1", "3", "5", "6"} or frame[:2] in {"40", "41"}:
            return None
        raise BadFrame(f"{_short(frame)} is no frame of the protocol")
    try:
        event = json.loads(frame[2:])
    except (ValueError, RecursionError) as error:
        raise BadFrame(f"{_short(frame)} holds no JSON: {error}") from error
    if not isinstance(event, list) or not event or event[0] != "telemetry":
        raise BadFrame(f"{_short(frame)}: the only event known is 'telemetry'")
    data = event[1] if len(event) > 1 else None
    if not data:
        return MANUAL
    if not isinstance(data, dict):
        raise BadFrame(f"{_short(frame)}: telemetry is a JSON object")
    return Telemetry(_picture(data.get("image")), _number("speed", data.get("speed")))


def _number(name: str, text: object) -> float:
    """A number as any country writes it: simulators have been seen to send 9,5."""
    try:
        value = float(str(text).replace(",", "."))
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise BadFrame(f"{name} is {_short(str(text))}, not a number")
    return value


def _picture(text: object) -> Pixels:
    if not isinstance(text, str):
        raise BadFrame("telemetry without an image")
    try:
        return picture_of(io.BytesIO(base64.b64decode(text, validate=True)))
    except ValueError as error:  # also what the decoder of base64 raises
        raise BadFrame(f"the image of the telemetry is of no use: {error}") from error


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
