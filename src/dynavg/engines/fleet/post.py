"""A connection to the broker: whole messages in, whole messages out, every byte counted.

What the broker loses while it is away stays lost: nothing is buffered for it, because what was said
before a pause may be wrong after it. Whoever is connected is told when the broker is back, and says
again what still holds.
"""

import asyncio
import itertools
import logging
import math
import ssl
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.transport import TcpTransport
from nats.errors import Error as BrokerError

from dynavg.engines.fleet.chunks import Assembly, pieces
from dynavg.engines.fleet.config import BUFFERED_MODELS, FleetConfig
from dynavg.engines.fleet.kernel import wire_bytes
from dynavg.engines.fleet.logs import event
from dynavg.protocol.wire import WireError

__all__ = ["NoBrokerError", "Post", "Traffic", "tls_context"]

log = logging.getLogger(__name__)

UNFLUSHED = 16 * 1024 * 1024
"""Bytes on the way to the broker before we wait for it: more would only fill our memory."""


class NoBrokerError(ConnectionError):
    """The broker cannot be reached, or does not let this process in."""


@dataclass(slots=True)
class Traffic:
    """What this process said and heard, in bytes of whole messages, before the transport's own."""

    sent_bytes: int = 0
    received_bytes: int = 0
    sent: int = 0
    received: int = 0
    lost: int = 0
    refused: int = 0


def tls_context(folder: Path) -> ssl.SSLContext:
    """Mutual TLS with the certificates in a process's folder."""
    context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=folder / "ca.pem")
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    return context


class Post:
    """One connection. `hear(subject, message)` gets whole messages, `returned()` the broker's
    return; both are called in the event loop and must not wait.
    """

    def __init__(
        self,
        config: FleetConfig,
        name: str,
        most: int,
        hear: Callable[[str, bytes], None],
        returned: Callable[[], None],
    ) -> None:
        self.config = config
        self.name = name
        self.traffic = Traffic()
        self._most = most
        self._hear = hear
        self._returned = returned
        self._numbers = itertools.count(time.time_ns())
        self._assemblies: dict[str, Assembly] = {}
        self._client = Client()
        self._trouble = ""
        self._closing = False
        self.wire_bytes: int | None = None
        self._unflushed = 0
        self._subjects: tuple[str, ...] = ()
        self._again: asyncio.Task[None] | None = None

    async def open(self, subjects: Iterable[str]) -> None:
        """Connect and listen; a broker that is not there yet may come within the deadline."""
        logging.getLogger("asyncio").addFilter(_not_about_eof)
        options = self._options()
        try:
            self._client = await asyncio.wait_for(
                nats.connect(self.config.url, **options), self.config.connect_seconds
            )
        except (OSError, BrokerError, TimeoutError) as error:
            raise NoBrokerError(
                f"{self.config.url} as {self.name!r}: {self._trouble or error!r} within "
                f"{self.config.connect_seconds:g} s; a NATS broker is wanted there that knows this "
                "process's certificate"
            ) from error
        self._subjects = tuple(subjects)
        for subject in self._subjects:
            await self._client.subscribe(
                subject, cb=self._on_message, pending_bytes_limit=self._pending_limit
            )
        await self._client.flush()

    async def send(self, subject: str, data: bytes) -> bool:
        """Hand a message to the broker; False if there is none at the moment."""
        if not self._client.is_connected:
            self.traffic.lost += 1
            event(log, logging.WARNING, "message lost", subject=subject, why="no broker")
            return False
        try:
            for piece in pieces(data, next(self._numbers), self.config.chunk_bytes):
                await self._client.publish(subject, piece)
                await self._not_too_much(len(piece))
        except (OSError, BrokerError) as error:
            self.traffic.lost += 1
            event(log, logging.WARNING, "message lost", subject=subject, why=repr(error))
            return False
        self.traffic.sent += 1
        self.traffic.sent_bytes += len(data)
        return True

    async def _not_too_much(self, size: int) -> None:
        """Let the broker catch up before more is queued than it could take at once."""
        self._unflushed += size
        if self._unflushed > UNFLUSHED:
            self._unflushed = 0
            await self._client.flush(timeout=math.ceil(self.config.collect_seconds))

    async def flush(self) -> None:
        """Wait until the broker has all that was sent, or is not there."""
        try:
            await self._client.flush(timeout=max(1, math.ceil(self.config.connect_seconds)))
        except (OSError, BrokerError, TimeoutError) as error:
            event(log, logging.WARNING, "flush failed", why=repr(error))

    def note_wire_bytes(self) -> None:
        """Ask the kernel what has crossed this connection: `wire_bytes`."""
        transport = self._client._transport  # nats-py has no public way to its socket
        writer = transport._bare_io_writer if isinstance(transport, TcpTransport) else None
        if writer is not None and not writer.is_closing():
            self.wire_bytes = wire_bytes(writer.get_extra_info("socket"))

    async def close(self) -> None:
        """Say all that was to be said, and go."""
        if self._client.is_connected:
            await self.flush()
        self._closing = True
        if self._again is not None:
            self._again.cancel()
        await self._client.close()

    def _options(self) -> dict[str, Any]:
        config = self.config
        tls = None if config.credentials is None else tls_context(config.credentials / self.name)
        return {
            "name": f"{config.run}/{self.name}",
            "tls": tls,
            "error_cb": self._on_error,
            "reconnected_cb": self._on_return,
            "disconnected_cb": self._on_loss,
            "closed_cb": self._on_end,
            "max_reconnect_attempts": -1,
            "reconnect_time_wait": min(1.0, config.connect_seconds / 10),
            "connect_timeout": config.connect_seconds,
            "ping_interval": config.ping_seconds,
        }

    @property
    def _pending_limit(self) -> int:
        return BUFFERED_MODELS * (self._most + self.config.chunk_bytes) * self.config.learners

    async def _on_message(self, message: Msg) -> None:
        assembly = self._assemblies.setdefault(message.subject, Assembly(self._most))
        try:
            whole = assembly.take(message.data)
        except WireError as error:
            self.traffic.refused += 1
            event(log, logging.WARNING, "refused", subject=message.subject, why=str(error))
            return
        if whole is not None:
            self.traffic.received += 1
            self.traffic.received_bytes += len(whole)
            self._hear(message.subject, whole)

    async def _on_error(self, error: Exception) -> None:
        if (trouble := repr(error)) != self._trouble:  # nats-py tries again every second
            self._trouble = trouble
            event(log, logging.WARNING, "broker error", why=trouble)

    async def _on_loss(self) -> None:
        if not self._closing:
            event(log, logging.WARNING, "broker lost", url=self.config.url)

    async def _on_end(self) -> None:
        """The broker does not want this connection any more; it may want another one."""
        if not self._closing and (self._again is None or self._again.done()):
            self._again = asyncio.create_task(self._connect_again())

    async def _connect_again(self) -> None:
        while not self._closing:
            try:
                await self.open(self._subjects)
            except NoBrokerError as error:
                event(log, logging.ERROR, "broker refuses", why=str(error))
                await asyncio.sleep(self.config.connect_seconds)
            else:
                self._returned()
                return

    async def _on_return(self) -> None:
        self._trouble = ""
        event(log, logging.WARNING, "broker back", url=self.config.url)
        self._returned()


def _not_about_eof(record: logging.LogRecord) -> bool:
    """Every end of nats-py over TLS makes asyncio say this, and nobody can do anything about it."""
    return "eof_received() has no effect" not in record.getMessage()
