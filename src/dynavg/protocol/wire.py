"""The one binary format: a fixed header, then a payload that only a codec understands.

Sizes in the ledger, in simulation and on the socket all come from here, so that a simulated byte
is a real byte. Whatever arrives is foreign until `decode` has accepted it: length, magic, version,
checksum and every field are tested before anything is allocated or believed. Never pickle.
"""

import math
import struct
import zlib
from dataclasses import dataclass
from enum import IntEnum

from dynavg.protocol.messages import COORDINATOR, MessageType

__all__ = ["HEADER_BYTES", "VERSION", "Codec", "Message", "WireError", "decode", "encode", "size"]

MAGIC = b"davg"
VERSION = 1
AS_REFERENCE = 0b1

# magic, version, type, flags, codec | run, group, sender | round, resolution, epoch, sequence |
# weight, model signature, payload length; then the checksum of all of it and of the payload.
_FIELDS = struct.Struct("<4sBBBBQIiQQQQdQQ")
_CHECKSUM = struct.Struct("<I")
HEADER_BYTES = _FIELDS.size + _CHECKSUM.size


class WireError(ValueError):
    """Bytes that are not a message of this protocol, or a message that cannot become bytes."""


class Codec(IntEnum):
    """How a payload is to be read; the codecs themselves live in `dynavg.learning.codecs`."""

    NONE = 0
    FLOAT32 = 1
    FLOAT64 = 2


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `epoch`, `sequence` and `resolution` make stale, doubled and late ones visible;
    `signature` says which network the payload is for.
    """

    type: MessageType
    sender: int
    round: int = 0
    resolution: int = 0
    epoch: int = 0
    sequence: int = 0
    weight: float = 1.0
    run: int = 0
    group: int = 0
    signature: int = 0
    codec: Codec = Codec.NONE
    as_reference: bool = False
    payload: bytes = b""


def size(payload_bytes: int) -> int:
    """The bytes of a message whose payload has that many.

    >>> size(0) == HEADER_BYTES == len(encode(Message(MessageType.QUERY, sender=COORDINATOR)))
    True
    """
    return HEADER_BYTES + payload_bytes


def encode(message: Message) -> bytes:
    """The message as bytes.

    >>> sent = Message(MessageType.VIOLATION, sender=3, codec=Codec.FLOAT32, payload=b"abcd")
    >>> decode(encode(sent)) == sent
    True
    """
    _validate(message)
    try:
        fields = _FIELDS.pack(
            MAGIC,
            VERSION,
            message.type,
            AS_REFERENCE if message.as_reference else 0,
            message.codec,
            message.run,
            message.group,
            message.sender,
            message.round,
            message.resolution,
            message.epoch,
            message.sequence,
            message.weight,
            message.signature,
            len(message.payload),
        )
    except struct.error as error:
        raise WireError(
            f"a field of {message.type.name} does not fit the header: {error}"
        ) from None
    checksum = zlib.crc32(message.payload, zlib.crc32(fields))
    return b"".join((fields, _CHECKSUM.pack(checksum), message.payload))


def decode(data: bytes, max_payload: int | None = None) -> Message:
    """The message in these bytes, or a `WireError` that says why there is none.

    `max_payload` refuses larger payloads by their announced length.
    """
    if len(data) < HEADER_BYTES:
        raise WireError(f"{len(data)} bytes, but the header alone has {HEADER_BYTES}")
    (
        magic,
        version,
        kind,
        flags,
        codec,
        run,
        group,
        sender,
        round_,
        resolution,
        epoch,
        sequence,
        weight,
        signature,
        length,
    ) = _FIELDS.unpack_from(data)
    if magic != MAGIC:
        raise WireError(f"magic {magic!r}, not {MAGIC!r}: no message of this protocol")
    if version != VERSION:
        raise WireError(f"format version {version}; this side speaks {VERSION}")
    if max_payload is not None and length > max_payload:
        raise WireError(f"a payload of {length} bytes is announced; at most {max_payload} allowed")
    if length != len(data) - HEADER_BYTES:
        raise WireError(f"{length} payload bytes announced, {len(data) - HEADER_BYTES} came")
    (checksum,) = _CHECKSUM.unpack_from(data, _FIELDS.size)
    payload = bytes(data[HEADER_BYTES:])
    if checksum != zlib.crc32(payload, zlib.crc32(data[: _FIELDS.size])):
        raise WireError("checksum mismatch: damaged on the way")
    if flags & ~AS_REFERENCE:
        raise WireError(f"unknown flags {flags:#04x}")
    try:
        message = Message(
            type=MessageType(kind),
            sender=sender,
            round=round_,
            resolution=resolution,
            epoch=epoch,
            sequence=sequence,
            weight=weight,
            run=run,
            group=group,
            signature=signature,
            codec=Codec(codec),
            as_reference=bool(flags & AS_REFERENCE),
            payload=payload,
        )
    except ValueError as error:
        raise WireError(str(error)) from None
    _validate(message)
    return message


def _validate(message: Message) -> None:
    """What holds for every message, on its way out as on its way in."""
    downward = message.type in (MessageType.QUERY, MessageType.MODEL)
    if downward != (message.sender == COORDINATOR) or message.sender < COORDINATOR:
        raise WireError(f"{message.type.name} from sender {message.sender}: not its to send")
    if not (math.isfinite(message.weight) and message.weight > 0):
        raise WireError(f"weight {message.weight}: a positive finite number is wanted")
    if message.as_reference and message.type is not MessageType.MODEL:
        raise WireError(f"{message.type.name} cannot carry a reference, only MODEL can")
    empty = message.type is MessageType.QUERY
    if empty != (message.codec is Codec.NONE) or empty != (not message.payload):
        raise WireError(
            f"{message.type.name} with codec {message.codec.name} and {len(message.payload)} "
            f"payload bytes: a query carries nothing, every other message a model"
        )
