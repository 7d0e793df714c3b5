"""Both sides of the protocol over an unreliable network, without torch, threads or a clock.

An engine at its plainest: models are fractions, messages lie in lists until somebody hears them,
and whatever an instruction orders is done to the letter. Tests decide what arrives, when, whether.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction

from dynavg.operators import Dynamic, FedAvg, NoSync, Periodic
from dynavg.operators.augmentation import STRATEGIES
from dynavg.protocol import learner as local
from dynavg.protocol import messages as m
from dynavg.protocol.coordinator import Coordinator, Phase
from dynavg.protocol.operator import Operator

EVERY_OPERATOR: dict[str, Operator] = {
    "nosync": NoSync(),
    "periodic": Periodic(),
    "periodic-samples": Periodic(weights="samples"),
    "fedavg-participants": FedAvg(every=1, fraction=0.5),
    "fedavg-all": FedAvg(every=1, fraction=0.3, receivers="all"),
    "dynamic-samples": Dynamic(delta=1, weights="samples", counter="off"),
    "dynamic-exactly": Dynamic(delta=1, distance="norm", counter="exactly", reset_on_full=True),
    **{f"dynamic-{name}": Dynamic(delta=1, augmentation=name) for name in STRATEGIES},
}


@dataclass(frozen=True)
class Word:
    """What is on its way from a learner."""

    id: int
    type: m.MessageType
    resolution: int
    arrival: m.Arrival
    model: Fraction
    round: int
    sound: bool = True


@dataclass(frozen=True)
class Model:
    """What is on its way to a learner, unless that is a query."""

    value: Fraction
    delivery: local.Delivered


@dataclass
class Side:
    """One learner: its machine, its model, its reference, what is on its way to it."""

    machine: local.Learner
    model: Fraction = Fraction(0)
    reference: Fraction = Fraction(0)
    samples: int = 1
    inbox: list[local.Asked | Model] = field(default_factory=list)


class Play:
    """A coordinator, its learners, and everything between them."""

    def __init__(self, operator: Operator, members: Iterable[int]) -> None:
        self.operator = operator
        self.coordinator = Coordinator(operator, members, seed=5)
        self.sides = {id: Side(local.Learner(operator.unasked)) for id in self.coordinator.members}
        self.references = {0: Fraction(0)}
        self.words: list[Word] = []
        self.models: dict[int, Fraction] = {}
        self.order: m.Aggregate | None = None
        self.mean = Fraction(0)
        self.deadline = 0
        self.round = self.resolved = 0
        self.outcomes: list[m.Outcome] = []
        self.excused: set[int] = set()
        """Learners to whom or from whom something was lost, or came too late to count."""
        self.save()

    def save(self) -> None:
        self.saved = json.dumps(self.coordinator.snapshot())

    def check(self) -> None:
        """Every learner looks at its model; the engine waits for violations, not for replies."""
        self.round += 1
        for id, side in self.sides.items():
            distance = float((side.model - side.reference) ** 2)
            self._learner_does(id, side.machine.handle(local.Checked(distance)))

    def resolve(self) -> None:
        """One resolution a round, or, in free pace, as soon as somebody has violated."""
        if self.round == self.resolved and not self.coordinator.pending:
            self.check()
        self.resolved = self.round
        self.do(self.coordinator.handle(m.CheckDue(self.round)))

    @property
    def hearable(self) -> list[int]:
        """Whose word can be heard; what was said unasked waits for the check that it is for."""
        first: dict[int, Word] = {}
        for word in self.words:
            first.setdefault(word.id, word)
        early = (m.MessageType.REPLY, 0)
        return sorted(
            id
            for id, word in first.items()
            if (word.type, word.resolution) != early or word.round <= self.resolved
        )

    @property
    def tellable(self) -> list[int]:
        return sorted(id for id, side in self.sides.items() if side.inbox)

    def hear(self, id: int) -> None:
        """The oldest word of that learner reaches the coordinator."""
        word = next(word for word in self.words if word.id == id)
        self.words.remove(word)
        if id not in self.coordinator.members:
            return
        awaited = id in self.coordinator.awaited
        if word.type is m.MessageType.VIOLATION:
            self._hear_violation(word, awaited)
            return
        unasked = self.coordinator.resolutions if word.round == self.resolved else 0
        number = word.resolution or unasked
        if awaited and number == self.coordinator.resolutions:
            self.models[id] = word.model
        else:
            self.excused.add(id)
        news = {"got": (word.arrival,)} if word.sound else {"refused": (id,)}
        self.do(self.coordinator.handle(m.Collected(number, **news)))

    def _hear_violation(self, word: Word, awaited: bool) -> None:
        if word.sound:
            self.models.setdefault(word.id, word.model)
            self.do(self.coordinator.handle(m.Violated(**vars_of(word.arrival))))
        elif awaited:
            number = self.coordinator.resolutions
            self.do(self.coordinator.handle(m.Collected(number, refused=(word.id,))))
        else:  # it starts anew
            self.models.pop(word.id, None)
            self.do(self.coordinator.handle(m.Joined(word.id)))

    def tell(self, id: int) -> None:
        """The oldest message to that learner reaches it."""
        side = self.sides[id]
        match side.inbox.pop(0):
            case local.Asked() as query:
                self._learner_does(id, side.machine.handle(query))
            case Model(value, delivery):
                (adopt,) = side.machine.handle(delivery)
                side.model = value
                side.reference = value if adopt.as_reference else side.reference
                if id not in self.coordinator.awaited:
                    self.excused.discard(id)

    def _learner_does(self, id: int, instructions: tuple[local.Instruction, ...]) -> None:
        for speech in instructions:
            side = self.sides[id]
            arrival = m.Arrival(id, speech.epoch, side.samples)
            self.words.append(
                Word(id, speech.type, speech.resolution, arrival, side.model, self.round)
            )

    def aggregate(self) -> None:
        """The mean that was ordered is ready."""
        order, self.order = self.order, None
        weights = [Fraction(weight) for weight in order.weights]
        self.mean = sum(w * f for w, f in zip(weights, self.averaged, strict=True)) / sum(weights)
        distance = float((self.mean - self.references[self.coordinator.epoch]) ** 2)
        scalars = {"distance": distance} if order.measure else {}
        self.do(self.coordinator.handle(m.Aggregated(order.resolution, scalars)))

    def expire(self) -> None:
        self.excused.update(self.coordinator.awaited)
        self.do(self.coordinator.handle(m.Expired(self.deadline)))

    def join(self, id: int) -> None:
        """A learner comes in, or back: with nothing but the initial model."""
        self.sides[id] = Side(local.Learner(self.operator.unasked))
        self.models.pop(id, None)
        self.words = [
            word for word in self.words if word.id != id or word.type is m.MessageType.REPLY
        ]
        self.excused.discard(id)
        self.do(self.coordinator.handle(m.Joined(id)))

    def leave(self, id: int) -> None:
        del self.sides[id]
        self.models.pop(id, None)
        self.do(self.coordinator.handle(m.Left(id)))

    def restart(self) -> None:
        """The coordinator dies, and with it every connection and what was said over it."""
        self.coordinator = Coordinator.restore(self.operator, json.loads(self.saved), seed=5)
        self.words.clear()
        self.models.clear()
        self.order = None
        self.excused.update(self.sides)
        for id, side in self.sides.items():
            side.inbox = [item for item in side.inbox if isinstance(item, Model)]
            if id not in self.coordinator.members:
                self.do(self.coordinator.handle(m.Joined(id)))
        for id in set(self.coordinator.members) - self.sides.keys():
            self.do(self.coordinator.handle(m.Left(id)))

    def spoil(self, id: int) -> None:
        """What that learner has said last becomes unreadable on its way."""
        index = max(i for i, word in enumerate(self.words) if word.id == id)
        self.words[index] = replace(self.words[index], sound=False)

    def do(self, instructions: tuple[m.Instruction, ...]) -> None:
        """To the letter, and in that order."""
        for instruction in instructions:
            match instruction:
                case m.Query(resolution, ids):
                    for id in ids:
                        self.sides[id].inbox.append(local.Asked(resolution))
                case m.Persist(outcome):
                    self._persist(outcome)
                case m.Send(_, ids, as_reference, epoch):
                    self._post(ids, self.mean, as_reference, epoch)
                case m.Refresh(id, epoch):
                    self._post((id,), self.references[epoch], True, epoch)
                case m.Expect(_, ids):  # who came too late for this check says nothing
                    speaking = {word.id for word in self.words if word.round == self.round}
                    self.excused.update(set(ids) - speaking)
                case m.Deadline(resolution):
                    self.deadline = resolution
                case m.Aggregate():
                    assert self.order is None, "one average at a time"
                    self.order = instruction
                    self.averaged = [self.models[id] for id in instruction.ids]

    def _persist(self, outcome: m.Outcome | None) -> None:
        if outcome is not None:
            self.outcomes.append(outcome)
            if outcome.as_reference:
                self.references[self.coordinator.epoch] = self.mean
        self.save()

    def _post(self, ids: tuple[int, ...], value: Fraction, as_reference: bool, epoch: int) -> None:
        assert json.loads(self.saved)["epoch"] == epoch, "Persist stands before Send"
        for id in ids:
            self.models.pop(id, None)
            self.sides[id].inbox.append(Model(value, local.Delivered(as_reference, epoch)))

    @property
    def busy(self) -> bool:
        return self.coordinator.phase is not Phase.IDLE

    def quieten(self) -> None:
        """Nothing more is lost: deliver until there is nothing to deliver."""
        for _ in range(1000):
            if self.tellable:
                self.tell(self.tellable[0])
            elif self.hearable:
                self.hear(self.hearable[0])
            elif self.order is not None:
                self.aggregate()
            else:
                return
        raise AssertionError("the two sides never stop talking")


def vars_of(arrival: m.Arrival) -> dict[str, float]:
    return {"id": arrival.id, "epoch": arrival.epoch, "weight": arrival.weight}
