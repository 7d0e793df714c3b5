"""A thread that speaks to the broker for code that must not wait: a training loop.

Messages that come lie ready until the loop looks, at its next batch boundary; what it says goes out
in order, without making it wait.
"""

import asyncio
import queue
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from dynavg.engines.fleet.config import FleetConfig
from dynavg.engines.fleet.post import Post, Traffic
from dynavg.engines.fleet.subjects import down, sender, up

__all__ = ["RETURNED", "Line"]

RETURNED = -1
"""In place of a learner's id: the broker was away and is back."""


class Line:
    """The connection of the learners `ids`; open it with `with`."""

    def __init__(self, config: FleetConfig, name: str, ids: Sequence[int], most: int) -> None:
        self._config = config
        self._ids = ids
        self._inbox: queue.SimpleQueue[tuple[int, bytes]] = queue.SimpleQueue()
        self._loop = asyncio.new_event_loop()
        self._outbox: asyncio.Queue[tuple[int, bytes] | None] = asyncio.Queue()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fleet-line")
        self._post = Post(config, name, most, self._hear, self._returned)
        self._speaker: asyncio.Task[None] | None = None

    @property
    def traffic(self) -> Traffic:
        """What was said and heard so far."""
        return self._post.traffic

    def __enter__(self) -> Self:
        """Connect, or raise `NoBrokerError`."""
        self._thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self._open(), self._loop).result()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Send what is still to be sent, within the deadline, and hang up."""
        try:
            asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        finally:
            self._stop()

    def send(self, id: int, data: bytes) -> None:
        """Say something as learner `id`, soon and in order."""
        self._loop.call_soon_threadsafe(self._outbox.put_nowait, (id, data))

    def receive(self, seconds: float = 0.0) -> list[tuple[int, bytes]]:
        """All that has come; if nothing has, wait for something at most so long."""
        came = []
        try:
            came.append(self._inbox.get(timeout=seconds) if seconds else self._inbox.get_nowait())
            while True:
                came.append(self._inbox.get_nowait())
        except queue.Empty:
            return came

    @property
    def has_news(self) -> bool:
        """Whether `receive` would give something."""
        return not self._inbox.empty()

    def wake(self) -> None:
        """End a `receive` that waits; safe in a signal handler."""
        self._inbox.put((RETURNED, b"wake"))

    def _hear(self, subject: str, data: bytes) -> None:
        self._inbox.put((sender(subject), data))

    def _returned(self) -> None:
        self._inbox.put((RETURNED, b""))

    async def _open(self) -> None:
        await self._post.open(down(self._config, id) for id in self._ids)
        self._speaker = asyncio.create_task(self._speak())

    async def _speak(self) -> None:
        while (item := await self._outbox.get()) is not None:
            await self._post.send(up(self._config, item[0]), item[1])

    async def _close(self) -> None:
        self._outbox.put_nowait(None)
        if self._speaker is not None:
            await asyncio.wait({self._speaker}, timeout=self._config.connect_seconds)
            self._speaker.cancel()
        await self._post.close()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
