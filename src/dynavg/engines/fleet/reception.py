"""Where the coordinator looks at what comes from outside, before anything is believed.

Three things can come of it: something sound; a learner's model that cannot be used, whose learner
needs help; or a `WireError` for bytes that nobody should have sent, which are dropped.
"""

from dataclasses import dataclass

from torch import Tensor

from dynavg.engines.fleet.config import FleetConfig
from dynavg.engines.fleet.control import Note, decode_note, is_note
from dynavg.learning.codecs import codec_for
from dynavg.learning.layout import Layout
from dynavg.learning.vectors import is_finite
from dynavg.protocol.messages import MessageType
from dynavg.protocol.wire import Message, WireError, decode

__all__ = ["Reception", "Sound", "Unfit"]

LARGEST_ROUND = 1 << 48
LARGEST_WEIGHT = float(1 << 53)


@dataclass(frozen=True, slots=True)
class Sound:
    """A model that can be used, and what its message said; `length` is the message's, in bytes."""

    message: Message
    vector: Tensor
    length: int


@dataclass(frozen=True, slots=True)
class Unfit:
    """A model that cannot be used, from a learner that may speak."""

    message: Message
    why: str
    length: int


class Reception:
    """Opens what comes. `heard` is the last number heard from each learner."""

    def __init__(self, config: FleetConfig, layout: Layout, entries: int) -> None:
        self._config = config
        self._layout = layout
        self._entries = entries
        self._codec = codec_for(layout.dtype)
        self.heard: dict[int, int] = {}

    def open(self, id: int, data: bytes) -> Note | Sound | Unfit:
        """What came on learner `id`'s subject."""
        if is_note(data):
            note = decode_note(data)
            self._admit(id, note.sender, (note.run, note.group), note.sequence)
            self._plausible(id, note.round, note.samples)
            return note
        message = decode(data, self._codec.payload_bytes(self._entries))
        self._admit(id, message.sender, (message.run, message.group), message.sequence)
        self._plausible(id, message.round, message.weight)
        if message.type not in (MessageType.VIOLATION, MessageType.REPLY):
            raise WireError(f"{message.type.name}: not for a coordinator")
        if message.signature != self._layout.signature or message.codec is not self._codec.id:
            return Unfit(message, "a model of another network or codec", len(data))
        try:
            vector = self._codec.decode(message.payload, self._entries)
        except WireError as error:
            return Unfit(message, str(error), len(data))
        if not is_finite(vector):
            return Unfit(message, "an entry of the model is not finite", len(data))
        return Sound(message, vector, len(data))

    def fits(self, note: Note) -> bool:
        """Whether whoever says hello has the network that is averaged here."""
        return note.signature == self._layout.signature

    def _plausible(self, id: int, round: int, weight: float) -> None:
        """Numbers that no learner reaches would overflow sums and tables further on."""
        if round > LARGEST_ROUND or weight > LARGEST_WEIGHT:
            raise WireError(
                f"learner {id} claims round {round} and weight {weight:g}; at most "
                f"{LARGEST_ROUND} and {LARGEST_WEIGHT:g} are believed"
            )

    def _admit(self, id: int, sender: int, place: tuple[int, int], sequence: int) -> None:
        here = (self._config.run_number, self._config.group)
        if sender != id:
            raise WireError(f"sender {sender} on the subject of learner {id}: a forgery")
        if place != here:
            raise WireError(f"run and group {place}: this is {self._config.run!r}, {here[1]}")
        if sequence <= self.heard.get(id, 0):
            raise WireError(
                f"number {sequence} after {self.heard[id]}: heard before, or out of order"
            )
        self.heard[id] = sequence
