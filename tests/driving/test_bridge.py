import asyncio
import base64
import io
import json
import socket
from collections.abc import Awaitable, Callable

import numpy as np
import pytest
import torch
from PIL import Image

from dynavg.driving import simulator_protocol as protocol
from dynavg.driving.bridge import Bridge, SpeedControl, serve
from dynavg.driving.camera import Camera
from dynavg.driving.catalogue import track
from dynavg.driving.conditions import Conditions
from dynavg.driving.drive import drive_simulator, frame_steers
from dynavg.driving.drivers import Driver, habits
from dynavg.driving.ride import Outcome, Ride
from dynavg.models import driving_net
from tests.driving import simulator

ROAD = track("narrow")
PICTURE = np.full((160, 320, 3), 90, np.uint8)


def with_bridge(
    steer: Callable[[np.ndarray], float], act: Callable[[Bridge], Awaitable[None]]
) -> Bridge:
    bridge = Bridge(steer, port=0)

    async def run() -> None:
        async with bridge:
            await asyncio.wait_for(act(bridge), 60)

    asyncio.run(run())
    return bridge


def test_it_drives_two_whole_laps_over_a_real_socket() -> None:
    ride = Ride.from_start(ROAD, 0.0)
    driver = Driver(habits("expert"), np.random.default_rng(0))
    pictures = []

    def steer(picture: np.ndarray) -> float:
        pictures.append(picture.mean())
        return driver.steer(ride)

    async def act(bridge: Bridge) -> None:
        client = await simulator.connected(bridge.port)
        await simulator.drive(client, ride, Camera(ROAD, Conditions()))
        await client.close()

    bridge = with_bridge(steer, act)
    assert ride.outcome is Outcome.FINISHED
    assert bridge.served.pictures == len(pictures) == ride.ticks
    assert bridge.served.bad_frames == 0


def test_a_network_answers_the_same_as_it_does_in_our_own_environment() -> None:
    torch.manual_seed(0)
    model = driving_net().eval()
    frame = Camera(ROAD, Conditions()).frame(ROAD.pose(20.0))
    sent = simulator.telemetry(frame, "9.0")
    answers = []

    async def act(bridge: Bridge) -> None:
        client = await simulator.connected(bridge.port)
        await client.send(sent)
        answers.append(simulator.steering(str(await client.recv()))[0])
        await client.close()

    with_bridge(frame_steers(model), act)
    jpeg = base64.b64decode(json.loads(sent[2:])[1]["image"])
    crop = np.asarray(Image.open(io.BytesIO(jpeg)))[67:135].transpose(2, 0, 1)
    with torch.inference_mode():
        steering = model(torch.from_numpy(crop.copy())[None] / 255).item()
    assert answers[0] == pytest.approx(steering, abs=1e-5)


GARBAGE = [
    "",
    "hello",
    "42",
    "42{",
    "42[]",
    '42["fly",{}]',
    '42["telemetry",[1]]',
    '42["telemetry",{"speed":"9"}]',
    '42["telemetry",{"speed":"9","image":"@@"}]',
    '42["telemetry",{"speed":"9","image":"aGVsbG8="}]',
    simulator.telemetry(PICTURE, "fast"),
    simulator.telemetry(PICTURE, "inf"),
    simulator.telemetry(PICTURE[:80], "9"),
    "42" + "[" * 5000,
    b"\x00\x01",
]


def test_garbage_is_counted_and_the_drive_goes_on() -> None:
    async def act(bridge: Bridge) -> None:
        client = await simulator.connected(bridge.port)
        for frame in GARBAGE:
            await client.send(frame)
        await client.send(simulator.telemetry(PICTURE, "9.0"))
        assert simulator.steering(str(await client.recv()))[0] == 0.5
        await client.close()

    bridge = with_bridge(lambda _: 0.5, act)
    assert bridge.served.bad_frames == len(GARBAGE)
    assert bridge.served.pictures == 1


@pytest.mark.parametrize("politely", [True, False])
def test_a_client_that_goes_away_makes_room_for_the_next(politely: bool) -> None:
    async def act(bridge: Bridge) -> None:
        first = await simulator.connected(bridge.port)
        await first.send(simulator.telemetry(PICTURE, "9.0"))
        if politely:
            await first.close()
        else:
            first.transport.abort()
        second = await simulator.connected(bridge.port)
        await second.send(simulator.telemetry(PICTURE, "9.0"))
        assert simulator.steering(str(await second.recv()))[0] == 0.25
        await second.close()

    assert with_bridge(lambda _: 0.25, act).served.clients == 2


@pytest.mark.parametrize("frame", ['42["telemetry",{}]', '42["telemetry",null]', '42["telemetry"]'])
def test_empty_telemetry_means_manual_mode(frame: str) -> None:
    assert protocol.parsed(frame) == '42["manual",{}]'


def test_a_speed_with_a_decimal_comma_is_read() -> None:
    meaning = protocol.parsed(simulator.telemetry(PICTURE, "8,5000"))
    assert isinstance(meaning, protocol.Telemetry)
    assert meaning.speed == 8.5
    assert np.abs(meaning.picture.astype(int) - PICTURE).max() < 3


def test_a_picture_of_the_wrong_size_is_told_with_both_sizes() -> None:
    with pytest.raises(protocol.BadFrame, match="320 x 80 pixels, not 320 x 160"):
        protocol.parsed(simulator.telemetry(PICTURE[:80], "9"))


def test_the_speed_controller_pushes_when_slow_and_brakes_when_fast() -> None:
    control = SpeedControl(wanted=10.0)
    assert control.throttle(0.0) == 1.0
    assert SpeedControl(wanted=10.0).throttle(20.0) == -1.0
    assert SpeedControl(wanted=10.0).throttle(10.0) == 0.0


def test_a_port_in_use_is_one_clear_error() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=rf"cannot listen on 127.0.0.1:{port} .*another bridge"):
            serve(lambda _: 0.0, port=port)


def test_a_driver_cannot_drive_by_pictures() -> None:
    with pytest.raises(ValueError, match="expert needs to see the road itself"):
        drive_simulator("expert")
