"""What users hand over as streams: lists and iterators of batches, and what is refused."""

import re

import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from dynavg.data import Streams, as_streams, drift, split


def batch(value, size=2):
    return torch.full((size, 3), float(value)), torch.full((size,), float(value))


def values(streams, learner, rounds):
    return [streams.at(learner, round)[0][0, 0].item() for round in rounds]


def endless(start=1):
    while True:
        yield batch(start)
        start += 1


def test_streams_are_taken_as_they_are():
    own = split((torch.zeros(4, 1), torch.zeros(4)), learners=2, batch_size=1)
    assert as_streams(own) is own
    assert isinstance(drift(2), Streams)


def test_a_list_per_learner_is_read_in_any_order():
    streams = as_streams([[batch(1), batch(2), batch(3)], [batch(4), batch(5)]])
    assert streams.learners == 2
    assert values(streams, 0, [3, 1, 2]) == [3, 1, 2]
    assert values(streams, 1, [2, 2]) == [5, 5]


def test_the_shortest_list_says_how_many_rounds_there_are():
    assert as_streams([[batch(1)] * 7, [batch(1)] * 5]).rounds() == 5


def test_batches_may_be_lists_as_dataloaders_make_them():
    assert values(as_streams([[list(batch(8))]]), 0, [1]) == [8]


def test_a_generator_is_read_in_order_and_lets_its_latest_batches_be_asked_again():
    streams = as_streams([endless(), endless(10)])
    assert streams.rounds() is None
    assert values(streams, 0, [1, 1, 2, 1, 3, 4, 3]) == [1, 1, 2, 1, 3, 4, 3]
    assert values(streams, 1, [1, 2]) == [10, 11]


def test_an_iterators_batches_are_read_when_their_round_comes():
    read = []

    def noting():
        for number in range(1, 100):
            read.append(number)
            yield batch(number)

    streams = as_streams([noting()])
    assert read == [1]  # the first is checked at once
    streams.at(0, 2)
    assert read == [1, 2]
    with pytest.raises(ValueError, match="out of order"):
        streams.at(0, 7)
    assert read == [1, 2]


@pytest.mark.parametrize("asked", [3, 7, 0, -1])
def test_an_iterators_batch_out_of_order_is_an_error(asked):
    streams = as_streams([endless(), endless()])
    with pytest.raises(ValueError, match=f"learner 1: batch {asked} was asked for out of order"):
        streams.at(1, asked)
    assert values(streams, 1, [1, 2]) == [1, 2]


def test_an_iterators_batch_of_long_ago_is_an_error():
    streams = as_streams([endless()])
    values(streams, 0, range(1, 10))
    with pytest.raises(ValueError, match="stands at batch 9"):
        streams.at(0, 1)


def test_an_iterator_that_ends_early_names_learner_and_round():
    streams = as_streams([endless(), iter([batch(1), batch(2)])])
    values(streams, 1, [1, 2])
    for _ in range(2):
        with pytest.raises(ValueError, match=r"learner 1, batch 3.*ended after 2 batches"):
            streams.at(1, 3)


def test_a_users_own_error_passes_and_says_whose_stream_raised_it():
    def broken():
        yield batch(1)
        raise KeyError("disk")

    streams = as_streams([endless(), broken()])
    with pytest.raises(KeyError, match="disk") as caught:
        streams.at(1, 2)
    assert caught.value.__notes__ == ["raised by the stream of learner 1, batch 2"]


def test_dataloaders_know_their_length_and_may_be_shared():
    loader = DataLoader(TensorDataset(torch.arange(6.0)[:, None], torch.arange(6.0)), batch_size=2)
    streams = as_streams([loader, loader])
    assert streams.rounds() == 3
    assert values(streams, 0, [1, 2]) == [0, 2]
    assert values(streams, 1, [1, 2, 3]) == [0, 2, 4]


def test_a_dataloader_over_an_iterable_dataset_has_no_known_end():
    class Endless(IterableDataset):
        def __iter__(self):
            return ((x[0], y[0]) for x, y in endless())

    streams = as_streams([DataLoader(Endless(), batch_size=2)])
    assert streams.rounds() is None
    assert values(streams, 0, [1, 2]) == [1, 3]


X, Y = batch(1)
REFUSED = {
    "no learners": ([], ValueError, "one entry per learner, but is empty"),
    "nothing": (None, TypeError, "a list with one entry per learner, but is None"),
    "a dictionary": ({0: [batch(1)]}, TypeError, "object of type dict"),
    "one loader for all": (
        DataLoader(TensorDataset(X, Y)),
        TypeError,
        "but is an object of type DataLoader",
    ),
    "the class of streams": (type(drift(1)), TypeError, "must be a Streams object"),
    "a tensor as entry": ([X], TypeError, r"streams[0] must be a list of batches"),
    "a dataset instead of streams": ((X, Y), TypeError, "use dynavg.data.split"),
    "a number as entry": ([[batch(1)], 5], TypeError, "streams[1] must be a list of batches"),
    "a text as entry": (["xy"], TypeError, "but is the str 'xy'"),
    "a batch instead of a list": ([batch(1)], TypeError, "must be a list of batches: [(x, y)]"),
    "no batches": ([[batch(1)], []], ValueError, "streams[1] has no batches"),
    "a batch of three": ([[(X, Y, Y)]], TypeError, "streams[0], batch 1: a batch is a pair"),
    "a batch of numbers": ([[(1, 2)]], TypeError, "x must be a tensor, but is the int 1"),
    "a target that is a list": ([[(X, [1, 2])]], TypeError, "y must be a tensor, but is a list"),
    "lengths that differ": ([[batch(1), (X, Y[:1])]], ValueError, "batch 2: x and y must have as"),
    "an empty batch": ([[(X[:0], Y[:0])]], ValueError, "at least one sample"),
    "a scalar target": ([[(X, torch.tensor(1.0))]], ValueError, "y has no dimension for samples"),
    "an iterator's bad batch": ([iter([batch(1)]), iter([3])], TypeError, "learner 1, batch 1"),
    "an empty iterator": ([endless(), iter([])], ValueError, "learner 1, batch 1"),
}


@pytest.mark.parametrize(("streams", "error", "text"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_streams_is_refused_with_what_came(streams, error, text):
    with pytest.raises(error, match=re.escape(text)):
        as_streams(streams)


def test_one_iterator_for_two_learners_is_an_error():
    shared = endless()
    with pytest.raises(ValueError, match=r"streams\[0\] and streams\[2\] are the same iterator"):
        as_streams([shared, endless(), shared])


def test_streams_without_learners_are_an_error():
    class Nobody:
        learners = 0

        def rounds(self):
            return None

        def at(self, learner, round):
            raise AssertionError

    with pytest.raises(ValueError, match=r"streams\.learners must be at least 1, but is 0"):
        as_streams(Nobody())


@pytest.mark.parametrize("round", [0, 3])
def test_a_list_asked_beyond_its_ends_names_learner_and_round(round):
    streams = as_streams([[batch(1), batch(2)]])
    with pytest.raises(ValueError, match=f"learner 0 has batches 1 to 2, but batch {round}"):
        streams.at(0, round)


@pytest.mark.parametrize("learner", [-1, 1])
def test_a_learner_that_does_not_exist_is_an_error(learner):
    with pytest.raises(ValueError, match=f"learners 0 to 0, but learner {learner}"):
        as_streams([[batch(1)]]).at(learner, 1)
