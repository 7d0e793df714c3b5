"""A learner's place in the fleet: its state machine, what it sent, the reference it measures by.

A seat takes the bytes that came for its learner and gives the bytes that it has to say. It neither
waits nor trains nor sends: whoever owns the training loop calls it between two batches, be it a
process of this package (`crew`) or a user's own loop (`hook`).
"""

import itertools
import logging
import math
import time
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass, field
from typing import Protocol
from weakref import WeakValueDictionary

import torch
from torch import Tensor

from dynavg.engines.fleet.config import FleetConfig
from dynavg.engines.fleet.control import Kind, Note, decode_note, encode_note, is_note
from dynavg.engines.fleet.logs import event
from dynavg.learning.codecs import Dense, codec_for
from dynavg.learning.layout import Layout
from dynavg.learning.vectors import is_finite, squared_distance
from dynavg.protocol import learner as local
from dynavg.protocol.messages import MessageType
from dynavg.protocol.operator import Operator
from dynavg.protocol.wire import Message, WireError, decode, encode

__all__ = ["Body", "NotWantedError", "Rules", "Seat"]

log = logging.getLogger(__name__)


class NotWantedError(ValueError):
    """The coordinator refuses this process: its model is another one."""


class Body(Protocol):
    """The model that sits there."""

    def model(self) -> Tensor:
        """The numbers that travel, as a view or a fresh vector."""
        ...

    def install(self, vector: Tensor, since: Tensor | None) -> None:
        """Become this model, plus the progress made since `since`."""
        ...


@dataclass(frozen=True)
class Rules:
    """What all seats of a process share. With `common_start` they hold the initial model already;
    `references` lets them share the reference itself.
    """

    config: FleetConfig
    operator: Operator
    layout: Layout
    entries: int
    common_start: bool = True
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(time.time_ns()))
    references: MutableMapping[int, Tensor] = field(default_factory=WeakValueDictionary)

    @property
    def codec(self) -> Dense:
        """How models travel."""
        return codec_for(self.layout.dtype)

    @property
    def scheduled(self) -> bool:
        """Whether the coordinator must be told that a check is reached: in lockstep, and where
        nobody measures, so that nobody's violation would tell it.
        """
        operator = self.operator
        return operator.every is not None and (
            self.config.pace == "lockstep" or not operator.measures
        )


class Seat:
    """One learner's seat. `round` counts the batches that it has learned from."""

    def __init__(self, id: int, body: Body, rules: Rules) -> None:
        self.id = id
        self.body = body
        self.rules = rules
        self.machine = local.Learner(rules.operator.unasked)
        self.joined = False
        self.round = 0
        self.barrier = 0
        self.released = 0
        self.samples = 0
        self.loss = 0.0
        self.correct: float | None = 0.0
        self.distance = math.nan
        self.reference: Tensor | None = None
        self.asked_at = time.monotonic()
        self._weight = 0
        self._window = 0
        self._sent: Tensor | None = None
        self._sent_round = 0
        self._heard = 0
        self._adopted = 0

    @property
    def blocked(self) -> bool:
        """Whether the learner must stand still."""
        config = self.rules.config
        if config.pace == "lockstep":
            return not self.joined or self.barrier > self.released
        return not self.joined or (self.machine.waiting and config.while_waiting == "wait")

    @property
    def waits_for_coordinator(self) -> bool:
        """Whether an answer is due, so that its absence has to be noticed."""
        return self.blocked or self.machine.waiting

    def trained(self, loss: float, samples: int, correct: float | None) -> list[bytes]:
        """Note one round (its loss summed over samples); at a check, what the learner says."""
        self.round += 1
        self.samples += samples
        self._window += samples
        self.loss += loss if math.isfinite(loss) else 0.0
        if correct is None:
            self.correct = None
        elif self.correct is not None:
            self.correct += correct
        every = self.rules.operator.every
        if every is None or self.round % every:
            return []
        self.barrier = self.round
        self._weight, self._window = self._window, 0
        return self._check()

    def hear(self, data: bytes) -> list[bytes]:
        """Take a message in; what comes back is to be sent."""
        if is_note(data):
            return self._note(decode_note(data))
        codec, config = self.rules.codec, self.rules.config
        message = decode(data, codec.payload_bytes(self.rules.entries))
        theirs = (message.run, message.group)
        if theirs != (config.run_number, config.group):
            raise WireError(f"run and group {theirs}: this is {config.run!r}, {config.group}")
        self._in_sequence(message.sequence)
        if message.type is MessageType.QUERY:
            if not self.joined:
                return []  # it holds no model of this fleet's yet
            return self._say(self.machine.handle(local.Asked(message.resolution)))
        if message.type is not MessageType.MODEL:
            raise WireError(f"{message.type.name}: not for a learner")
        if message.signature != self.rules.layout.signature or message.codec is not codec.id:
            raise WireError("a model of another network or codec")
        self._delivered(message, codec.decode(message.payload, self.rules.entries))
        return []

    def hello(self) -> list[bytes]:
        """Ask to be let in."""
        self.joined = False
        self.asked_at = time.monotonic()
        return [self._words(Kind.HELLO)]

    def bye(self) -> list[bytes]:
        """Leave."""
        return [self._words(Kind.BYE)]

    def report(self) -> list[bytes]:
        """Say how far the learner is."""
        return [self._words(Kind.REPORT)]

    def again(self, why: str) -> list[bytes]:
        """What was said is lost, or the answer to it: say what still holds."""
        event(log, logging.WARNING, "speaking again", learner=self.id, round=self.round, why=why)
        self.asked_at = time.monotonic()
        if not self.joined:
            return self.hello()
        self.machine.handle(local.GaveUp())
        return self._check() if self.rules.scheduled and self.barrier > self.released else []

    def _check(self) -> list[bytes]:
        if self.rules.operator.measures:
            assert self.reference is not None, "who trains has joined, and so has a reference"
            here = slice(0, self.rules.layout.parameters)
            self.distance = squared_distance(self.body.model()[here], self.reference[here])
        said = self._say(self.machine.handle(local.Checked(self.distance)))
        if self.rules.scheduled:
            self.asked_at = time.monotonic()
            said.append(self._words(Kind.DONE, round=self.barrier))
        return said

    def _say(self, instructions: tuple[local.Instruction, ...]) -> list[bytes]:
        """Line 1's sending, and replies."""
        said = []
        for instruction in instructions:
            assert isinstance(instruction, local.Speak), "only deliveries make a learner adopt"
            rules = self.rules
            payload = rules.codec.encode(self.body.model())
            self._sent = rules.codec.decode(payload, rules.entries)
            self._sent_round = self.round
            self.asked_at = time.monotonic()
            message = Message(
                instruction.type,
                sender=self.id,
                round=self.round,
                resolution=instruction.resolution or self._adopted,
                epoch=instruction.epoch,
                sequence=next(rules.numbers),
                weight=float(self._window or self._weight or 1),
                run=rules.config.run_number,
                group=rules.config.group,
                signature=rules.layout.signature,
                codec=rules.codec.id,
                payload=payload,
            )
            said.append(encode(message))
        return said

    def _delivered(self, message: Message, vector: Tensor) -> None:
        """f ← f̄ + f_now − f_sent; and f̄ as it is where nothing was learned in between."""
        first = not self.joined
        if first and not message.as_reference:
            return  # its reference was lost on the way: who says hello again gets it again
        again = message.as_reference and message.epoch <= self.machine.epoch
        doubled = 0 < message.resolution <= self._adopted
        if not first and (doubled or (again and not self.machine.waiting)):
            return  # it is here already
        self._adopted = message.resolution or (0 if first else self._adopted)
        self.machine.handle(local.Delivered(message.as_reference, message.epoch))
        if self.rules.config.pace == "free" and message.resolution:
            self.released = max(self.released, message.round)  # nothing to say again of that check
        if message.as_reference:
            self.reference = self._shared(message.epoch, vector)
        if first:
            self.joined = True
            self.round = self.barrier = self.released = max(self.round, message.round)
        at_start = first and self.round == 0 and message.epoch == 0
        if not (at_start and self.rules.common_start):
            self.body.install(vector, self._since())
        self._sent = None

    def _shared(self, epoch: int, vector: Tensor) -> Tensor:
        """The reference, in one copy per process."""
        references = self.rules.references
        known = references.get(epoch)
        if known is None or not torch.equal(known, vector):
            references[epoch] = known = vector
        return known

    def _since(self) -> Tensor | None:
        if self._sent is None or self._sent_round == self.round:
            return None
        sound = is_finite(self._sent) and is_finite(self.body.model())
        return self._sent if sound else None

    def _note(self, note: Note) -> list[bytes]:
        config = self.rules.config
        if (note.run, note.group) != (config.run_number, config.group):
            raise WireError("a note of another run")
        self._in_sequence(note.sequence)
        match note.kind:
            case Kind.GO:
                self.released = max(self.released, note.round)
            case Kind.REJOIN:
                return self.hello() if self.joined else []  # it has said so already
            case Kind.AGAIN:
                return self.again("the coordinator has started anew")
            case Kind.REFUSED:
                raise NotWantedError(
                    f"the coordinator of {config.run!r} averages another network than learner "
                    f"{self.id} has: names, shapes and dtype of all parameters must be equal"
                )
            case _:
                raise WireError(f"{note.kind.name}: not for a learner")
        return []

    def _in_sequence(self, number: int) -> None:
        if number <= self._heard:
            raise WireError(f"number {number} after {self._heard}: heard before, or out of order")
        self._heard = number

    def _words(self, kind: Kind, round: int | None = None) -> bytes:
        note = Note(
            kind,
            self.id,
            round=self.round if round is None else round,
            sequence=next(self.rules.numbers),
            run=self.rules.config.run_number,
            group=self.rules.config.group,
            signature=self.rules.layout.signature,
            distance=self.distance,
            loss=self.loss,
            correct=math.nan if self.correct is None else self.correct,
            samples=self.samples,
        )
        return encode_note(note)
