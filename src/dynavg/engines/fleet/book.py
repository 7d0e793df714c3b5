"""What the coordinator writes down: messages, checks, losses, its own state; and how it reads it.

The ledger's numbers are the lengths of the messages that were handed to the socket or came from it.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from dynavg.engines.fleet.control import Note
from dynavg.engines.fleet.journal import Journal
from dynavg.engines.history import CheckRecord
from dynavg.protocol.ledger import Ledger
from dynavg.protocol.messages import Cause, MessageType, Outcome
from dynavg.protocol.wire import HEADER_BYTES

__all__ = ["Book", "Progress"]

Facts = dict[str, Any]


@dataclass(slots=True)
class Progress:
    """How far a learner is, as it said last. A learner that starts from nothing starts its sums
    anew; what it had before is `before`.
    """

    round: int = 0
    loss: float = 0.0
    samples: int = 0
    correct: float = math.nan
    before: tuple[float, int] = (0.0, 0)

    @property
    def all_loss(self) -> float:
        """Its loss over all of its lives."""
        return self.before[0] + self.loss

    @property
    def all_samples(self) -> int:
        """What it has seen in all of its lives."""
        return self.before[1] + self.samples

    def update(self, round: int, loss: float, samples: int, correct: float) -> None:
        """The learner has spoken."""
        if samples < self.samples:
            self.before = (self.all_loss, self.all_samples)
        self.round, self.loss, self.samples, self.correct = round, loss, samples, correct


@dataclass
class Book:
    """The records of one run; every entry is in the journal before it is here. Without a journal it
    can only be read.
    """

    journal: Journal | None = None
    ledger: Ledger = field(default_factory=Ledger)
    handed_out: Ledger = field(default_factory=Ledger)
    checks: list[CheckRecord] = field(default_factory=list)
    progress: dict[int, Progress] = field(default_factory=dict)
    refused: list[tuple[int, str]] = field(default_factory=list)
    lives: list[Facts] = field(default_factory=list)
    state: Facts | None = None
    unfinished: Outcome | None = None
    _sizes: dict[MessageType, int] = field(default_factory=dict)

    @classmethod
    def opened(cls, journal: Journal) -> "Book":
        """The book as the journal tells it, ready for more."""
        book = cls(journal)
        book.read(journal.entries)
        journal.entries.clear()
        return book

    def read(self, entries: Iterable[Facts]) -> None:
        """Take in what a journal holds."""
        for entry in entries:
            facts = dict(entry)
            getattr(self, f"_read_{facts.pop('kind')}")(**facts)

    def message(self, round: int, type: MessageType, ids: Sequence[int], length: int) -> None:
        """Messages of `length` bytes each, from or to these learners."""
        facts: Facts = {"round": round, "type": int(type), "ids": list(ids), "length": length}
        self._append("message", **facts)
        self._read_message(**facts)

    def handout(self, round: int, id: int, length: int) -> None:
        """A reference for a learner that had none or a stale one."""
        self._append("handout", round=round, id=id, length=length)
        self._read_handout(round, id, length)

    def heard(self, note: Note) -> None:
        """A learner's word on how far it is."""
        facts: Facts = {"id": note.sender, "round": note.round, "loss": note.loss}
        facts |= {"samples": note.samples, "correct": note.correct}
        self._append("heard", **facts)
        self._read_heard(**facts)

    def refusal(self, id: int, why: str) -> None:
        """Something of a learner's was not fit to be used."""
        self._append("refused", id=id, why=why)
        self._read_refused(id, why)

    def persist(self, state: Facts, outcome: Outcome | None) -> None:
        """The coordinator's state, on the disk when this returns."""
        facts = None if outcome is None else asdict(outcome)
        self._append("state", sync=True, state=state, outcome=facts)
        self.state, self.unfinished = state, outcome or self.unfinished

    def check(
        self, round: int, outcome: Outcome | None, distances: Sequence[float] | None
    ) -> CheckRecord:
        """Close a check."""
        record = CheckRecord.of(round, outcome, self._sizes, distances)
        self._append("check", **asdict(record))
        self._read_check(**asdict(record))
        return self.checks[-1]

    def ended(self, **facts: float | None) -> None:
        """A coordinator has ended in order; what it knows about itself."""
        self._append("ended", sync=True, **facts)
        self._read_ended(**facts)

    def refused_for(self, id: int) -> list[str]:
        """Why something of this learner's was refused, each time."""
        return [why for learner, why in self.refused if learner == id]

    @property
    def loss(self) -> float:
        """The cumulative loss of all learners."""
        return sum(progress.all_loss for progress in self.progress.values())

    def rows(self) -> Iterable[tuple[int, Progress]]:
        """How far each learner is, by id."""
        return sorted(self.progress.items())

    def _append(self, kind: str, *, sync: bool = False, **facts: Any) -> None:
        assert self.journal is not None, "a book that is only read is not written into"
        self.journal.append(kind, sync=sync, **facts)

    def _read_message(self, round: int, type: int, ids: list[int], length: int) -> None:
        kind = MessageType(type)
        self.ledger.add(round, kind, ids, length - HEADER_BYTES)
        self._sizes[kind] = self._sizes.get(kind, 0) + len(ids) * length

    def _read_handout(self, round: int, id: int, length: int) -> None:
        self.handed_out.add(round, MessageType.MODEL, (id,), length - HEADER_BYTES)
        self.handed_out.settle()

    def _read_heard(self, id: int, **facts: Any) -> None:
        self.progress.setdefault(id, Progress()).update(**facts)

    def _read_ended(self, **facts: Any) -> None:
        self.lives.append(facts)

    def _read_refused(self, id: int, why: str) -> None:
        self.refused.append((id, why))

    def _read_state(self, state: Facts, outcome: Facts | None) -> None:
        self.state = state
        if outcome is not None:
            lists = {key: tuple(value) for key, value in outcome.items() if isinstance(value, list)}
            stages = tuple(tuple(stage) for stage in outcome["stages"])
            cause = Cause(outcome["cause"])
            self.unfinished = Outcome(**(outcome | lists | {"stages": stages, "cause": cause}))

    def _read_check(self, **facts: Any) -> None:
        facts["stages"] = tuple(tuple(stage) for stage in facts["stages"])
        self.checks.append(CheckRecord(**facts))
        self.ledger.settle()
        self._sizes = {}
        self.unfinished = None
