"""The learner's machine: every event while it trains and while it waits."""

import math

import pytest

from dynavg.operators import Dynamic, FedAvg, NoSync, Periodic
from dynavg.protocol.learner import Adopt, Asked, Checked, Delivered, GaveUp, Learner, Speak
from dynavg.protocol.messages import MessageType

DYNAMIC, PERIODIC = Dynamic(delta=0.5), Periodic()


def training(operator=DYNAMIC, epoch=3):
    return Learner(operator.unasked, epoch)


def waiting(operator=DYNAMIC, epoch=3):
    learner = training(operator, epoch)
    learner.handle(Asked(resolution=1))
    return learner


# operator, waiting?, event -> what it does, is it waiting then, its epoch then
TRANSITIONS = {
    "near: silence": (DYNAMIC, False, Checked(0.5), (), False, 3),
    "far: violation": (DYNAMIC, False, Checked(0.6), (Speak(MessageType.VIOLATION, 3),), True, 3),
    "NaN: violation": (
        DYNAMIC,
        False,
        Checked(math.nan),
        (Speak(MessageType.VIOLATION, 3),),
        True,
        3,
    ),
    "periodic: reply": (PERIODIC, False, Checked(0.0), (Speak(MessageType.REPLY, 3),), True, 3),
    "nosync: silence": (NoSync(), False, Checked(9.0), (), False, 3),
    "fedavg: silence": (FedAvg(1, 0.5), False, Checked(9.0), (), False, 3),
    "asked: reply": (DYNAMIC, False, Asked(8), (Speak(MessageType.REPLY, 3, 8),), True, 3),
    "a model": (DYNAMIC, False, Delivered(False, 4), (Adopt(False),), False, 3),
    "a reference": (DYNAMIC, False, Delivered(True, 4), (Adopt(True),), False, 4),
    "gave up nothing": (DYNAMIC, False, GaveUp(), (), False, 3),
    "waiting, far": (DYNAMIC, True, Checked(0.6), (), True, 3),
    "waiting, periodic": (PERIODIC, True, Checked(0.0), (), True, 3),
    "waiting, asked": (DYNAMIC, True, Asked(8), (), True, 3),
    "waiting, a model": (DYNAMIC, True, Delivered(False, 4), (Adopt(False),), False, 3),
    "waiting, a reference": (DYNAMIC, True, Delivered(True, 4), (Adopt(True),), False, 4),
    "waiting, gave up": (DYNAMIC, True, GaveUp(), (), False, 3),
}


@pytest.mark.parametrize(
    ("operator", "waits", "event", "done", "waits_then", "epoch_then"),
    TRANSITIONS.values(),
    ids=TRANSITIONS,
)
def test_a_learner_does(operator, waits, event, done, waits_then, epoch_then):
    learner = waiting(operator) if waits else training(operator)
    assert learner.waiting is waits
    assert learner.handle(event) == done
    assert (learner.waiting, learner.epoch) == (waits_then, epoch_then)


def test_a_new_learner_trains_from_the_initial_reference():
    learner = Learner(DYNAMIC.unasked)
    assert (learner.waiting, learner.epoch) == (False, 0)


def test_who_gave_up_speaks_again_at_the_next_check():
    learner = waiting()
    learner.handle(GaveUp())
    assert learner.handle(Checked(0.6)) == (Speak(MessageType.VIOLATION, 3),)


def test_it_speaks_with_the_epoch_of_the_reference_that_it_has():
    learner = training()
    learner.handle(Delivered(as_reference=True, epoch=9))
    assert learner.handle(Asked(2)) == (Speak(MessageType.REPLY, 9, 2),)
