"""A fake of the Udacity simulator: a websocket client that speaks its protocol over a real socket.

It drives our own car on our own track, so that the bridge can be tested in closed loop.
"""

from __future__ import annotations

import base64
import io
import json

import numpy as np
from PIL import Image
from websockets.asyncio.client import ClientConnection, connect

from dynavg.driving.camera import Camera
from dynavg.driving.ride import Ride


async def connected(port: int) -> ClientConnection:
    """Connect as the simulator does, and take the greeting: open, connected, a first steer."""
    client = await connect(f"ws://127.0.0.1:{port}/socket.io/?EIO=4&transport=websocket")
    opened = str(await client.recv())
    assert opened.startswith("0{")
    assert {"sid", "pingInterval", "pingTimeout"} <= set(json.loads(opened[1:]))
    assert await client.recv() == "40"
    assert steering(str(await client.recv())) == (0.0, 0.0)
    return client


def telemetry(picture: np.ndarray, speed: str) -> str:
    jpeg = io.BytesIO()
    Image.fromarray(picture).save(jpeg, "JPEG", quality=90)
    image = base64.b64encode(jpeg.getvalue()).decode()
    data = {"steering_angle": "0,0", "throttle": "0,0", "speed": speed, "image": image}
    return "42" + json.dumps(["telemetry", data])


def steering(frame: str) -> tuple[float, float]:
    """Steering and throttle of a steer event, whose values must be strings."""
    name, data = json.loads(frame.removeprefix("42"))
    assert name == "steer"
    assert all(isinstance(value, str) for value in data.values())
    return float(data["steering_angle"]), float(data["throttle"])


async def drive(client: ClientConnection, ride: Ride, camera: Camera) -> None:
    """Drive the ride to its end as the server says, with a ping now and then."""
    miles_per_hour = 0.0
    while not ride.over:
        if ride.ticks % 100 == 50:
            await client.send("2")
            assert await client.recv() == "3"
        await client.send(telemetry(camera.frame(ride.pose, ride.ticks), f"{miles_per_hour:.4f}"))
        turn, throttle = steering(str(await client.recv()))
        assert -1 <= throttle <= 1
        miles_per_hour += 2 * throttle
        ride.step(turn)
    assert abs(miles_per_hour - 9.0) < 1.0  # the speed controller did its work
