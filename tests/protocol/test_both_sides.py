"""Coordinator and learners against each other, over a network that loses, delays and spoils."""

from fractions import Fraction

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from dynavg.operators import FedAvg, NoSync
from dynavg.protocol import learner as local
from dynavg.protocol import messages as m
from tests.protocol.invariants import assert_sound
from tests.protocol.play import EVERY_OPERATOR, Play

PICK = st.integers(0, 5)
"""Which of those who could, counted round."""


class BothSides(RuleBasedStateMachine):
    """Everything that may happen to a fleet, in any order."""

    def __init__(self, operator) -> None:
        super().__init__()
        self.operator = operator
        self.epochs = [0]

    @initialize(members=st.sets(st.integers(0, 5)))
    def start(self, members):
        self.play = Play(self.operator, members)

    @rule(pick=PICK, model=st.integers(-3, 3), samples=st.integers(1, 3))
    @precondition(lambda self: self.play.sides)
    def a_learner_trains(self, pick, model, samples):
        side = self.play.sides[nth(self.play.sides, pick)]
        side.model, side.samples = Fraction(model), samples

    @rule(models=st.lists(st.integers(-3, 3), min_size=6, max_size=6))
    def a_round_goes_by(self, models):
        for side, model in zip(self.play.sides.values(), models, strict=False):
            side.model = Fraction(model)
        self.play.check()

    @rule()
    @precondition(lambda self: not self.play.busy)
    def a_check_is_resolved(self):
        self.play.resolve()

    @rule(pick=PICK)
    @precondition(lambda self: self.play.hearable)
    def the_coordinator_hears(self, pick):
        self.play.hear(nth(self.play.hearable, pick))

    @rule(pick=PICK)
    @precondition(lambda self: self.play.tellable)
    def a_learner_hears(self, pick):
        self.play.tell(nth(self.play.tellable, pick))

    @rule(pick=PICK)
    @precondition(lambda self: self.play.words)
    def a_word_is_lost(self, pick):
        word = self.play.words.pop(pick % len(self.play.words))
        self.play.excused.add(word.id)

    @rule(pick=PICK)
    @precondition(lambda self: self.play.tellable)
    def an_instruction_is_lost(self, pick):
        id = nth(self.play.tellable, pick)
        self.play.sides[id].inbox.pop(0)
        self.play.excused.add(id)

    @rule(pick=PICK)
    @precondition(lambda self: self.play.words)
    def a_model_is_spoilt(self, pick):
        self.play.spoil(nth({word.id for word in self.play.words}, pick))

    @rule()
    @precondition(lambda self: self.play.order)
    def the_average_is_ready(self):
        self.play.aggregate()

    @rule()
    @precondition(lambda self: self.play.coordinator.awaited)
    def the_deadline_passes(self):
        self.play.expire()

    @rule(pick=PICK)
    @precondition(lambda self: self.play.sides)
    def a_learner_gives_up(self, pick):
        self.play.sides[nth(self.play.sides, pick)].machine.handle(local.GaveUp())

    @rule(id=PICK)
    def a_learner_comes_in_or_back(self, id):
        self.play.join(id)

    @rule(pick=PICK)
    @precondition(lambda self: self.play.sides)
    def a_learner_leaves(self, pick):
        self.play.leave(nth(self.play.sides, pick))

    @rule()
    def the_coordinator_dies_and_comes_back(self):
        self.play.restart()

    @rule(age=st.integers(0, 2), pick=PICK)
    def old_news_arrives(self, age, pick):
        """A resolution that is over can neither be advanced nor disturbed."""
        number = self.play.coordinator.resolutions - self.play.busy - age
        if number > 0:
            before = self.play.coordinator.snapshot()
            late = m.Collected(number, got=(m.Arrival(pick, 0),))
            assert self.play.coordinator.handle(late) == ()
            assert self.play.coordinator.handle(m.Expired(number)) == ()
            assert self.play.coordinator.snapshot() == before

    @rule()
    def the_network_recovers_for_a_while(self):
        self.play.quieten()
        assert not self.play.busy or set(self.play.coordinator.awaited) <= self.play.excused

    @invariant()
    def everything_is_sound(self):
        if hasattr(self, "play"):
            assert_sound(self.play)
            self.epochs.append(self.play.coordinator.epoch)
            assert self.epochs[-2] <= self.epochs[-1] <= self.epochs[-2] + 1

    def teardown(self):
        """Nothing more goes wrong: the open resolution ends, and all are on one reference again."""
        if not hasattr(self, "play"):
            return
        self.settle()
        if self.play.sides and not isinstance(self.operator, NoSync):
            self.everybody_speaks()
            self.everybody_speaks()
            assert_sound(self.play)
            last = self.play.outcomes[-1]
            if isinstance(self.operator, FedAvg):
                assert last.cause is m.Cause.SCHEDULED
            else:
                assert last.as_reference
                assert set(last.balancing_set) == self.play.sides.keys()
            if last.as_reference:
                sides = self.play.sides.values()
                assert {side.machine.epoch for side in sides} == {self.play.coordinator.epoch}
                assert len({side.model for side in sides}) == 1

    def settle(self):
        """Every resolution ends: each deadline costs it at least one member."""
        self.play.quieten()
        for _ in range(len(self.play.sides) + 1):
            if not self.play.busy:
                return
            self.play.expire()
            self.play.quieten()
        assert not self.play.busy

    def everybody_speaks(self):
        for side in self.play.sides.values():
            side.machine.handle(local.GaveUp())
            side.model = side.reference + 100
        self.play.excused.clear()
        self.play.check()
        for word in list(self.play.words):
            if word.type is m.MessageType.VIOLATION:
                self.play.hear(word.id)
        self.play.resolve()
        self.play.quieten()
        assert not self.play.busy
        assert not any(side.machine.waiting for side in self.play.sides.values())


def nth(ids, pick):
    ids = sorted(ids)
    return ids[pick % len(ids)]


every_operator = pytest.mark.parametrize("operator", EVERY_OPERATOR.values(), ids=EVERY_OPERATOR)


@every_operator
def test_no_fleet_is_ever_stuck_or_torn(operator):
    play_against_each_other(operator, max_examples=25)


@pytest.mark.slow
@every_operator
def test_no_fleet_is_ever_stuck_or_torn_however_long_one_tries(operator):
    play_against_each_other(operator, max_examples=400)


def play_against_each_other(operator, max_examples):
    """No deadline: on a busy machine a step may take long. Derandomised under profile `ci`."""
    run_state_machine_as_test(
        lambda: BothSides(operator),
        settings=settings(max_examples=max_examples, stateful_step_count=50, deadline=None),
    )
