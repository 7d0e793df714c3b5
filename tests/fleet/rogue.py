"""A learner that a test plays by hand, over a real connection."""

import asyncio
import itertools
import time

import numpy as np

from dynavg.engines.fleet.chunks import pieces
from dynavg.engines.fleet.control import Kind, Note, encode_note
from dynavg.engines.fleet.line import Line
from dynavg.protocol.messages import MessageType
from dynavg.protocol.wire import Codec, Message, encode

MOST = 1 << 24


class Rogue:
    """Speaks as learner `id`, through the certificate of `name`."""

    def __init__(self, fleet, id, name=None, listens=None):
        self.config = fleet.config
        self.id = id
        self.layout = fleet.task.program().layout
        self.numbers = itertools.count(time.time_ns())
        ids = [id] if listens is None else listens
        self.line = Line(fleet.config, name or f"host-{id}", ids, MOST)

    def __enter__(self):
        self.line.__enter__()
        return self

    def __exit__(self, *error):
        self.line.__exit__(*error)

    def say(self, data, as_id=None):
        self.line.send(self.id if as_id is None else as_id, data)

    def flush(self):
        """Until the broker has all that was said."""
        while not self.line._outbox.empty():
            time.sleep(0.01)
        asyncio.run_coroutine_threadsafe(self.line._post.flush(), self.line._loop).result()

    def hello(self, **fields):
        self.say(self.note(Kind.HELLO, **fields))

    def join(self, seconds=30.0):
        """Say hello until somebody answers."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.hello()
            if (data := self.hears(0.5)) is not None:
                return data
        raise TimeoutError("nobody answers a hello")

    def note(self, kind, **fields):
        facts = {"run": self.config.run_number, "signature": self.layout.signature}
        facts |= {"sender": self.id, "sequence": next(self.numbers)}
        return encode_note(Note(kind, **(facts | fields)))

    def violation(self, numbers=None, type=MessageType.VIOLATION, **fields):
        if numbers is None:
            numbers = np.zeros(self.layout.parameters)
        facts = {"run": self.config.run_number, "signature": self.layout.signature}
        facts |= {"sender": self.id, "sequence": next(self.numbers), "codec": Codec.FLOAT32}
        facts |= {"payload": np.asarray(numbers, dtype="<f4").tobytes()}
        return encode(Message(type, **(facts | fields)))

    def half(self, data):
        """The first half of a message's pieces."""
        cut = list(pieces(data, next(self.numbers), 1024))
        assert len(cut) > 1
        return cut[: len(cut) // 2]

    def hears(self, seconds=5.0):
        """The next message, or None."""
        came = self.line.receive(seconds)
        return came[0][1] if came else None
