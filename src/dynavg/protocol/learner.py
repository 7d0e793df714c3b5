"""The learner's side: train, check, wait. A state machine without I/O and tensors.

    TRAINING --Checked, has something to say--> Speak, then WAITING --Delivered--> Adopt, TRAINING
        |                                                      |
        +--Asked--> Speak(REPLY), then WAITING                 +--GaveUp--> TRAINING

A learner that waits has said its model; a query that crosses its violation is answered already and
is ignored. Whether it stands still while it waits or goes on training is the engine's affair. What
it counts as a violation is the operator's (`unasked`).
"""

from collections.abc import Callable
from dataclasses import dataclass

from dynavg.protocol.messages import MessageType, Unasked

__all__ = ["Adopt", "Asked", "Checked", "Delivered", "GaveUp", "Learner", "Speak"]


@dataclass(frozen=True, slots=True)
class Checked:
    """A check is due; the model is at this squared distance from the reference."""

    distance: float


@dataclass(frozen=True, slots=True)
class Asked:
    """A query has come."""

    resolution: int


@dataclass(frozen=True, slots=True)
class Delivered:
    """A model has come from the coordinator."""

    as_reference: bool
    epoch: int


@dataclass(frozen=True, slots=True)
class GaveUp:
    """No answer came in time; the next check may speak again."""


@dataclass(frozen=True, slots=True)
class Speak:
    """Send the model with this message; `resolution` is 0 where nobody asked."""

    type: MessageType
    epoch: int
    resolution: int = 0


@dataclass(frozen=True, slots=True)
class Adopt:
    """Go on from the model that has come, and keep it as the reference if told."""

    as_reference: bool


Event = Checked | Asked | Delivered | GaveUp
Instruction = Speak | Adopt

_SPEECH = {
    Unasked.VIOLATION: MessageType.VIOLATION,
    Unasked.REPLY: MessageType.REPLY,
}


class Learner:
    """One learner. `unasked` is its operator's word on what a check makes it say.

    >>> from dynavg.operators import Dynamic
    >>> learner = Learner(Dynamic(delta=0.5).unasked)
    >>> learner.handle(Checked(distance=0.4))
    ()
    >>> learner.handle(Checked(distance=0.6))
    (Speak(type=<MessageType.VIOLATION: 1>, epoch=0, resolution=0),)
    >>> learner.handle(Delivered(as_reference=True, epoch=1)), learner.epoch
    ((Adopt(as_reference=True),), 1)
    """

    __slots__ = ("_unasked", "epoch", "waiting")

    def __init__(self, unasked: Callable[[float], Unasked], epoch: int = 0) -> None:
        self._unasked = unasked
        self.epoch = epoch
        self.waiting = False

    def handle(self, event: Event) -> tuple[Instruction, ...]:
        """Take one event in; what comes back is to be done."""
        match event:
            case Checked(distance):
                speech = None if self.waiting else _SPEECH.get(self._unasked(distance))
                return () if speech is None else self._speak(speech)
            case Asked(resolution):
                return () if self.waiting else self._speak(MessageType.REPLY, resolution)
            case Delivered(as_reference, epoch):
                self.waiting = False
                self.epoch = epoch if as_reference else self.epoch
                return (Adopt(as_reference),)
            case GaveUp():  # pragma: no branch
                self.waiting = False
                return ()

    def _speak(self, type: MessageType, resolution: int = 0) -> tuple[Instruction, ...]:
        self.waiting = True
        return (Speak(type, self.epoch, resolution),)
