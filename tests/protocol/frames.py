"""Messages and their bytes, for the tests of the wire format."""

import struct
import zlib

from hypothesis import strategies as st

from dynavg.protocol.messages import COORDINATOR, MessageType
from dynavg.protocol.wire import Codec, Message

WORDS = st.integers(0, 2**64 - 1)

# The header as PROTOCOL lists it, field by field: offset and struct code. Written down here a
# second time, so that the format cannot change unnoticed.
LAYOUT = {
    "magic": (0, "4s"),
    "version": (4, "B"),
    "type": (5, "B"),
    "flags": (6, "B"),
    "codec": (7, "B"),
    "run": (8, "Q"),
    "group": (16, "I"),
    "sender": (20, "i"),
    "round": (24, "Q"),
    "resolution": (32, "Q"),
    "epoch": (40, "Q"),
    "sequence": (48, "Q"),
    "weight": (56, "d"),
    "signature": (64, "Q"),
    "length": (72, "Q"),
}
CHECKSUM_AT = 80
HEADER = 84


@st.composite
def messages(draw: st.DrawFn) -> Message:
    """Any message that may be sent."""
    type = draw(st.sampled_from(MessageType))
    upward = type in (MessageType.VIOLATION, MessageType.REPLY)
    carries = type is not MessageType.QUERY
    return Message(
        type=type,
        sender=draw(st.integers(0, 2**31 - 1)) if upward else COORDINATOR,
        round=draw(WORDS),
        resolution=draw(WORDS),
        epoch=draw(WORDS),
        sequence=draw(WORDS),
        weight=draw(st.floats(0, exclude_min=True, allow_infinity=False)),
        run=draw(WORDS),
        group=draw(st.integers(0, 2**32 - 1)),
        signature=draw(WORDS),
        codec=draw(st.sampled_from([Codec.FLOAT32, Codec.FLOAT64])) if carries else Codec.NONE,
        as_reference=type is MessageType.MODEL and draw(st.booleans()),
        payload=draw(st.binary(min_size=1, max_size=64)) if carries else b"",
    )


def sealed(frame: bytes) -> bytes:
    """The same bytes with a checksum that fits, so that what stands in them is looked at."""
    checksum = zlib.crc32(frame[:CHECKSUM_AT] + frame[HEADER:])
    return frame[:CHECKSUM_AT] + struct.pack("<I", checksum) + frame[HEADER:]


def with_field(frame: bytes, field: str, value: object) -> bytes:
    """The same frame with one field overwritten, sealed anew."""
    offset, code = LAYOUT[field]
    changed = bytearray(frame)
    struct.pack_into(f"<{code}", changed, offset, value)
    return sealed(bytes(changed))


def field_of(frame: bytes, field: str) -> object:
    offset, code = LAYOUT[field]
    return struct.unpack_from(f"<{code}", frame, offset)[0]
