"""Drives the simulator of the Udacity project: a websocket server that the simulator connects to.

Start it, then choose "Autonomous mode" in the simulator. Nothing that a client sends, or its going
away, ends the server; the next client is served.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from websockets.asyncio.server import Server, ServerConnection
from websockets.asyncio.server import serve as listen
from websockets.exceptions import ConnectionClosed

from dynavg.driving import simulator_protocol as protocol
from dynavg.driving.surface import Pixels

PORT = 4567  # the simulator's, not to be chosen

log = logging.getLogger(__name__)


@dataclass(slots=True)
class SpeedControl:
    """The usual proportional-integral control of the throttle, towards `wanted` miles per hour."""

    wanted: float = 9.0
    proportional: float = 0.1
    integral: float = 0.002
    _summed: float = 0.0

    def throttle(self, speed: float) -> float:
        """The throttle in [-1, 1] at this speed.

        >>> round(SpeedControl(wanted=9.0).throttle(4.0), 3)
        0.51
        """
        lacking = self.wanted - speed
        # Bounded, so that a car that stood still does not race afterwards.
        self._summed = min(max(self._summed + lacking, -200.0), 200.0)
        return min(max(self.proportional * lacking + self.integral * self._summed, -1.0), 1.0)


@dataclass(slots=True)
class Served:
    """What happened since the server started."""

    clients: int = 0
    pictures: int = 0
    bad_frames: int = 0
    last_fault: str = ""

    def __str__(self) -> str:
        ignored = f"; {self.bad_frames} frames ignored, the last because {self.last_fault}"
        told = f"{self.clients} simulators connected, {self.pictures} pictures answered"
        return told + (ignored if self.bad_frames else "")


class Bridge:
    """Answers every picture with `steer(picture)`, the steering for a picture (160, 320, 3).

    Use it as an async context manager; `served` counts.
    """

    def __init__(
        self,
        steer: Callable[[Pixels], float],
        speed: float = 9.0,
        host: str = "127.0.0.1",
        port: int = PORT,
    ) -> None:
        self.served = Served()
        self._steer = steer
        self._speed = speed
        self._host, self._wanted_port = host, port
        self._server: Server | None = None

    @property
    def port(self) -> int:
        """The port that is listened on; with port 0, the one that the system chose."""
        if self._server is None:
            raise RuntimeError("the bridge is not open: use it in an 'async with'")
        return int(next(iter(self._server.sockets)).getsockname()[1])

    async def __aenter__(self) -> Self:
        try:
            self._server = await listen(
                self._client, self._host, self._wanted_port, logger=logging.getLogger("websockets")
            )
        except OSError as error:
            where = f"{self._host}:{self._wanted_port}"
            raise OSError(
                f"cannot listen on {where} ({error.strerror}): is another bridge running?"
            ) from error
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def _client(self, connection: ServerConnection) -> None:
        self.served.clients += 1
        log.info("a simulator connected from %s", connection.remote_address)
        control = SpeedControl(self._speed)
        try:
            await connection.send(protocol.opened(uuid.uuid4().hex))
            await connection.send(protocol.CONNECTED)
            await connection.send(protocol.steer(0.0, 0.0))
            async for frame in connection:
                answer = await self._answer(frame, control)
                if answer is not None:
                    await connection.send(answer)
        except ConnectionClosed as gone:
            log.info("the simulator went away without a word: %s", gone)
        log.info("the simulator is gone; waiting for the next")

    async def _answer(self, frame: str | bytes, control: SpeedControl) -> str | None:
        try:
            meaning = protocol.parsed(frame)
        except protocol.BadFrame as fault:
            self.served.bad_frames += 1
            self.served.last_fault = str(fault)
            log.warning("ignored a frame of the simulator: %s", fault)
            return None
        if not isinstance(meaning, protocol.Telemetry):
            return meaning
        self.served.pictures += 1
        # In a thread, so that pings are answered while a slow model thinks.
        steering = await asyncio.to_thread(self._steer, meaning.picture)
        return protocol.steer(steering, control.throttle(meaning.speed))


def serve(steer: Callable[[Pixels], float], speed: float = 9.0, port: int = PORT) -> Served:
    """Serve simulators until interrupted (Ctrl-C); returns what happened."""
    bridge = Bridge(steer, speed, port=port)

    async def forever() -> None:
        async with bridge:
            log.info("waiting for the simulator on port %d; Ctrl-C ends the drive", bridge.port)
            await asyncio.get_running_loop().create_future()

    with suppress(KeyboardInterrupt):
        asyncio.run(forever())
    return bridge.served
