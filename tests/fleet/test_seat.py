"""A learner's seat: what it says, what it takes, what it refuses."""

import itertools
import math

import pytest
import torch

from dynavg.engines.fleet.config import FleetConfig
from dynavg.engines.fleet.control import Kind, Note, decode_note, encode_note, is_note
from dynavg.engines.fleet.seat import NotWantedError, Rules, Seat
from dynavg.learning.layout import Layout
from dynavg.operators import Dynamic, FedAvg, Periodic
from dynavg.protocol.messages import COORDINATOR, MessageType
from dynavg.protocol.wire import Codec, Message, WireError, decode, encode

CONFIG = FleetConfig(learners=2)
LAYOUT = Layout.of(torch.nn.Linear(2, 1))
DYNAMIC = Dynamic(delta=0.5)
COUNT = itertools.count(1)


class Vector:
    """A model that a test writes into."""

    def __init__(self, *numbers):
        self.numbers = torch.tensor(numbers)

    def model(self):
        return self.numbers

    def install(self, vector, since):
        self.numbers = vector.clone() if since is None else self.numbers + (vector - since)


def seat(operator=DYNAMIC, joined=True, **settings):
    config = CONFIG.model_copy(update=settings)
    made = Seat(1, Vector(0.0, 0.0, 0.0), Rules(config, operator, LAYOUT, 3))
    if joined:
        made.hello()
        made.hear(model([0.0, 0.0, 0.0], as_reference=True))
    return made


def model(numbers, **fields):
    payload = torch.tensor(numbers, dtype=torch.float32).numpy().tobytes()
    facts = {"run": CONFIG.run_number, "signature": LAYOUT.signature, "sequence": next(COUNT)}
    facts |= {"codec": Codec.FLOAT32, "payload": payload}
    return encode(Message(MessageType.MODEL, COORDINATOR, **(facts | fields)))


def query(resolution=1):
    number = next(COUNT)
    facts = {"run": CONFIG.run_number, "resolution": resolution, "sequence": number}
    return encode(Message(MessageType.QUERY, COORDINATOR, **facts))


def note(kind, **fields):
    return encode_note(
        Note(kind, COORDINATOR, run=CONFIG.run_number, sequence=next(COUNT), **fields)
    )


def drift_to(learner, *numbers):
    learner.body.numbers = torch.tensor(numbers)
    return learner.trained(loss=1.0, samples=10, correct=5.0)


def said(answers):
    return [decode_note(data).kind if is_note(data) else decode(data).type for data in answers]


def test_a_learner_within_the_threshold_says_nothing():
    assert drift_to(seat(), 0.5, 0.0, 0.0) == []


def test_a_violation_carries_the_model_its_weight_and_its_epoch():
    (data,) = drift_to(seat(), 1.0, 0.0, 0.0)
    message = decode(data)
    assert (message.type, message.sender, message.weight) == (MessageType.VIOLATION, 1, 10.0)
    assert (message.epoch, message.resolution, message.round) == (0, 0, 1)


def test_progress_made_since_the_model_was_sent_is_added_to_the_average():
    learner = seat()
    drift_to(learner, 2.0, 0.0, 0.0)
    drift_to(learner, 2.0, 1.0, 0.0)
    learner.hear(model([1.0, 0.0, 0.0], resolution=1))
    assert learner.body.numbers.tolist() == [1.0, 1.0, 0.0]


def test_without_progress_the_average_is_taken_bit_by_bit():
    learner = seat()
    drift_to(learner, 0.1, 1e8, 0.0)
    learner.hear(model([0.3, 0.3, 0.3], resolution=1))
    assert torch.equal(learner.body.numbers, torch.tensor([0.3, 0.3, 0.3]))


def test_a_query_that_crosses_a_violation_is_answered_already():
    learner = seat()
    drift_to(learner, 1.0, 0.0, 0.0)
    assert learner.hear(query()) == []


def test_a_query_is_answered_once():
    learner = seat()
    assert said(learner.hear(query())) == [MessageType.REPLY]
    assert learner.hear(query()) == []


def test_the_weight_of_a_reply_at_a_check_is_that_of_the_check():
    learner = seat(Dynamic(delta=5.0, every=2))
    drift_to(learner, 0.1, 0.0, 0.0)
    drift_to(learner, 0.1, 0.0, 0.0)
    assert decode(learner.hear(query())[0]).weight == 20.0


def test_a_late_average_is_not_taken_twice():
    learner = seat()
    drift_to(learner, 1.0, 0.0, 0.0)
    learner.hear(model([1.0, 1.0, 1.0], resolution=4))
    drift_to(learner, 1.1, 1.0, 1.0)
    learner.hear(model([1.0, 1.0, 1.0], resolution=4))
    assert learner.body.numbers.tolist() == pytest.approx([1.1, 1.0, 1.0])


def test_what_was_heard_before_is_refused():
    learner = seat()
    data = model([1.0, 0.0, 0.0], resolution=1)
    learner.hear(data)
    with pytest.raises(WireError, match="heard before"):
        learner.hear(data)


def test_a_model_of_another_network_is_refused():
    with pytest.raises(WireError, match="another network"):
        seat().hear(model([0.0, 0.0, 0.0], signature=7))


@pytest.mark.parametrize("numbers", [[0.0], [0.0] * 2])
def test_a_model_of_the_wrong_size_is_refused(numbers):
    with pytest.raises(WireError):
        seat().hear(model(numbers))


def test_a_model_larger_than_ours_is_refused_by_its_announced_length():
    with pytest.raises(WireError, match="at most 12 allowed"):
        seat().hear(model([0.0] * 4))


def test_a_message_of_another_run_is_refused():
    with pytest.raises(WireError, match="run and group"):
        seat().hear(model([0.0] * 3, run=9))


def test_a_learner_that_has_lost_its_numbers_takes_the_reference_whole():
    learner = seat()
    assert said(drift_to(learner, math.nan, 0.0, 0.0)) == [MessageType.VIOLATION]
    drift_to(learner, math.nan, math.nan, 0.0)
    learner.hear(model([0.0, 0.0, 0.0], as_reference=True))
    assert learner.body.numbers.tolist() == [0.0, 0.0, 0.0]


def test_in_lockstep_a_learner_stands_still_from_the_check_until_go():
    learner = seat(pace="lockstep")
    assert said(drift_to(learner, 0.0, 0.0, 0.0)) == [Kind.DONE]
    assert learner.blocked
    learner.hear(note(Kind.GO, round=1))
    assert not learner.blocked


@pytest.mark.parametrize(("policy", "stands"), [("train", False), ("wait", True)])
def test_in_free_pace_waiting_learners_train_on_or_wait_as_configured(policy, stands):
    learner = seat(while_waiting=policy)
    drift_to(learner, 1.0, 0.0, 0.0)
    assert learner.blocked is stands


def test_operators_that_measure_nothing_are_told_when_a_check_is_reached():
    assert said(drift_to(seat(FedAvg(every=1, fraction=0.5)), 0.0, 0.0, 0.0)) == [Kind.DONE]
    kinds = said(drift_to(seat(Periodic(every=1)), 0.0, 0.0, 0.0))
    assert kinds == [MessageType.REPLY, Kind.DONE]


def test_asked_again_in_lockstep_a_learner_repeats_its_word():
    learner = seat(pace="lockstep")
    first = drift_to(learner, 1.0, 0.0, 0.0)
    assert said(learner.hear(note(Kind.AGAIN))) == said(first) == [MessageType.VIOLATION, Kind.DONE]


def test_a_learner_that_nobody_knows_says_hello_and_starts_from_the_reference():
    learner = seat()
    drift_to(learner, 0.1, 0.0, 0.0)
    assert said(learner.hear(note(Kind.REJOIN))) == [Kind.HELLO]
    assert learner.hear(note(Kind.REJOIN)) == []
    assert learner.blocked
    learner.hear(model([5.0, 5.0, 5.0], as_reference=True, epoch=3, round=40))
    assert (learner.round, learner.machine.epoch) == (40, 3)
    assert learner.body.numbers.tolist() == [5.0, 5.0, 5.0]


def test_who_has_not_got_the_reference_yet_neither_answers_nor_takes_an_average():
    """The reference was lost on the way, and the coordinator does not know."""
    learner = seat(joined=False)
    learner.hello()
    assert learner.hear(query()) == []
    learner.hear(model([5.0, 5.0, 5.0], resolution=1))
    assert learner.blocked
    assert said(learner.again("no answer in time")) == [Kind.HELLO]
    learner.hear(model([3.0, 3.0, 3.0], as_reference=True, round=7))
    assert not learner.blocked
    assert learner.body.numbers.tolist() == [3.0, 3.0, 3.0]
    assert said(drift_to(learner, 3.0, 3.0, 4.0)) == [MessageType.VIOLATION]


def test_a_refused_learner_stops():
    with pytest.raises(NotWantedError, match="another network"):
        seat().hear(note(Kind.REFUSED))


def test_a_word_says_which_average_was_taken_over_last():
    learner = seat()
    learner.hear(model([9.0, 9.0, 9.0], resolution=4))
    assert decode(drift_to(learner, 1.0, 0.0, 0.0)[0]).resolution == 4
