"""The fleet's small talk: joining, leaving, barriers. No models, and not in the ledger.

What the protocol itself says has its format in `protocol.wire`; these notes are what only real
processes need, in a fixed struct of their own, validated as strictly and counted apart.
"""

import math
import struct
import zlib
from dataclasses import dataclass
from enum import IntEnum

from dynavg.protocol.messages import COORDINATOR
from dynavg.protocol.wire import WireError

__all__ = ["NOTE_BYTES", "Kind", "Note", "decode_note", "encode_note", "is_note"]


class Kind(IntEnum):
    """What a note says; up to `REPORT` from learners, the others from the coordinator."""

    HELLO = 1
    """I am (back) in; I need the reference."""
    BYE = 2
    """I leave."""
    DONE = 3
    """I have reached the check of this round, and have said what I had to say."""
    REPORT = 4
    """I am alive, this far."""
    GO = 5
    """The check of this round is over."""
    REJOIN = 6
    """I do not know you: say hello."""
    AGAIN = 7
    """I have forgotten what you said: say it again."""
    REFUSED = 8
    """This process cannot take part: its network is another one."""


_MAGIC = b"dnte"
_FIELDS = struct.Struct("<4sBBQIiQQQdddQ")
_CHECKSUM = struct.Struct("<I")
NOTE_BYTES = _FIELDS.size + _CHECKSUM.size


@dataclass(frozen=True, slots=True)
class Note:
    """One note. `loss`, `correct` and `samples` are sums over all that the learner has seen so far;
    `distance` is the squared distance to the reference at the check (NaN where nobody measures).
    """

    kind: Kind
    sender: int
    round: int = 0
    sequence: int = 0
    run: int = 0
    group: int = 0
    signature: int = 0
    distance: float = math.nan
    loss: float = 0.0
    correct: float = math.nan
    samples: int = 0


def is_note(data: bytes) -> bool:
    """Whether these bytes want to be a note."""
    return data[:4] == _MAGIC


def encode_note(note: Note) -> bytes:
    """The note as bytes.

    >>> decode_note(encode_note(Note(Kind.HELLO, sender=3, distance=0.5, correct=1.0))).sender
    3
    """
    fields = _FIELDS.pack(
        _MAGIC,
        1,
        note.kind,
        note.run,
        note.group,
        note.sender,
        note.round,
        note.sequence,
        note.signature,
        note.distance,
        note.loss,
        note.correct,
        note.samples,
    )
    return fields + _CHECKSUM.pack(zlib.crc32(fields))


def decode_note(data: bytes) -> Note:
    """The note in these bytes, or a `WireError`."""
    if len(data) != NOTE_BYTES:
        raise WireError(f"{len(data)} bytes; a note has {NOTE_BYTES}")
    (checksum,) = _CHECKSUM.unpack_from(data, _FIELDS.size)
    if checksum != zlib.crc32(data[: _FIELDS.size]):
        raise WireError("checksum mismatch in a note: damaged on the way")
    magic, version, kind, *rest = _FIELDS.unpack_from(data)
    if magic != _MAGIC or version != 1:
        raise WireError(f"magic {magic!r}, version {version}: no note of this format")
    run, group, sender, round_, sequence, signature, distance, loss, correct, samples = rest
    try:
        kind = Kind(kind)
    except ValueError as error:
        raise WireError(str(error)) from None
    if sender < COORDINATOR or (kind > Kind.REPORT) != (sender == COORDINATOR):
        raise WireError(f"{kind.name} from sender {sender}: not its to send")
    if not math.isfinite(loss):
        raise WireError(f"a loss of {loss} in a note; a finite sum is wanted")
    return Note(
        kind, sender, round_, sequence, run, group, signature, distance, loss, correct, samples
    )
