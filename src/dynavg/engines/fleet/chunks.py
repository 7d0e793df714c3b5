"""Messages larger than the broker takes: cut into pieces, put together again.

Pieces of one message come in order, because the broker keeps the order of one sender. A piece that
is missing, doubled out of order or larger than announced makes the whole message void: the protocol
lives with lost messages. Memory grows with what has come, never with what was announced.
"""

import struct
from collections.abc import Iterator

from dynavg.protocol.wire import WireError

__all__ = ["CHUNK_HEADER_BYTES", "Assembly", "pieces"]

_MAGIC = b"dchk"
_FIELDS = struct.Struct("<4sQQII")  # magic, message number, total bytes, piece, pieces
CHUNK_HEADER_BYTES = _FIELDS.size


def pieces(data: bytes, number: int, most: int) -> Iterator[bytes]:
    """A message in pieces of at most `most` bytes; one that fits travels as it is.

    >>> [len(piece) for piece in pieces(bytes(100), number=1, most=78)]
    [78, 78]
    """
    if len(data) <= most:
        yield data
        return
    room = most - CHUNK_HEADER_BYTES
    count = -(-len(data) // room)
    view = memoryview(data)
    for place in range(count):
        header = _FIELDS.pack(_MAGIC, number, len(data), place, count)
        yield b"".join((header, view[place * room : (place + 1) * room]))


class Assembly:
    """The pieces of one sender."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._number = 0
        self._next = 0
        self._void = 0
        self._data = bytearray()

    def take(self, data: bytes) -> bytes | None:
        """A whole message, None while pieces are missing, or a `WireError`.

        >>> assembly = Assembly(most=100)
        >>> [assembly.take(piece) for piece in pieces(b"x" * 60, number=1, most=58)][
        ...     -1
        ... ] == b"x" * 60
        True
        """
        if data[:4] != _MAGIC:
            if len(data) > self._most:
                raise WireError(f"a message of {len(data)} bytes; at most {self._most} allowed")
            return data
        if len(data) <= CHUNK_HEADER_BYTES:
            raise WireError(f"a piece of {len(data)} bytes: nothing in it")
        return self._piece(data)

    def _piece(self, data: bytes) -> bytes | None:
        _, number, total, place, count = _FIELDS.unpack_from(data)
        if total > self._most:
            raise WireError(f"a message of {total} bytes announced; at most {self._most} allowed")
        doubled = number == self._number and place < self._next
        if doubled or number == self._void:
            return None
        if place == 0:
            self._number, self._next, self._data = number, 0, bytearray()
        if (number, place) != (self._number, self._next) or place >= count:
            awaited = f"piece {self._next} of message {self._number}"
            self._forget(number)
            raise WireError(f"piece {place} of message {number}, not {awaited}: something was lost")
        self._data += memoryview(data)[CHUNK_HEADER_BYTES:]
        self._next += 1
        last = self._next == count
        if len(self._data) > total or (last and len(self._data) < total):
            came = len(self._data)
            self._forget(number)
            raise WireError(f"{came} bytes came; {total} were announced")
        if not last:
            return None
        whole, self._data = bytes(self._data), bytearray()
        return whole

    def _forget(self, number: int) -> None:
        self._number, self._next, self._void, self._data = 0, 0, number, bytearray()
