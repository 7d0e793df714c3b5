"""The serial baseline: one learner that sees what m learners would see."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import dynavg
from dynavg import Periodic
from tests.engines.problems import (
    PlainLearner,
    classification,
    losses,
    regression,
    seeded,
    sgd,
    vector,
)

MAKE = seeded(lambda: nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1)))


def serial(**changes):
    arguments = {"model": MAKE, "loss": F.mse_loss, "optimizer": sgd, "progress": False}
    arguments |= {"streams": regression(), "rounds": 6, "dtype": torch.float64}
    return dynavg.serial(**arguments | changes)


def test_sequential_learns_from_a_rounds_batches_one_after_the_other():
    streams = regression(batch=[1, 4, 2])
    learner = PlainLearner(MAKE, sgd, F.mse_loss, dtype=torch.float64)
    sums = np.zeros((3, 6))
    for t in range(6):
        for i, stream in enumerate(streams):
            x, y = stream[t]
            sums[i, t] = learner.train(x.double(), y.double()) * len(y)
    result = serial(streams=streams)
    np.testing.assert_allclose(losses(result), sums, rtol=1e-12)
    torch.testing.assert_close(vector(result.model()), vector(learner.module), rtol=1e-12, atol=0)
    assert result.history.rounds["samples"].to_list() == [1, 4, 2] * 6


def test_joint_learns_from_a_round_as_one_batch():
    streams = regression(batch=[1, 4, 2])
    learner = PlainLearner(MAKE, sgd, F.mse_loss, dtype=torch.float64)
    sums = []
    for batches in zip(*streams, strict=True):
        x, y = (torch.cat(part).double() for part in zip(*batches, strict=True))
        sums.append(learner.train(x, y) * 7)
    result = serial(streams=streams, batch="joint")
    np.testing.assert_allclose(losses(result), [sums], rtol=1e-12)
    torch.testing.assert_close(vector(result.model()), vector(learner.module), rtol=1e-12, atol=0)


@pytest.mark.parametrize("batch", ["sequential", "joint"])
def test_losses_are_counted_per_learner_of_the_run_it_stands_beside(batch):
    result = serial(batch=batch)
    assert (result.learners, result.rounds, result.samples) == (3, 6, 72)
    assert result.loss_per_learner == pytest.approx(losses(result).sum() / 3)
    assert result.bytes() == result.transfer_time() == 0
    assert result.ledger.is_empty()
    assert result.history.checks.is_empty()
    assert len(result.models()) == 1
    assert repr(result).startswith("Result(serial, 3 learners, 6 rounds")


@pytest.mark.parametrize("batch", ["sequential", "joint"])
def test_evaluations_come_at_the_rounds_of_the_run_it_stands_beside(batch):
    held_out = regression(1, 1, batch=50, seed=9)[0][0]
    result = serial(batch=batch, evaluate=(held_out, 2))
    assert result.history.evaluations["round"].to_list() == [2, 4, 6]
    x, y = (part.double() for part in held_out)
    expected = F.mse_loss(result.model()(x), y).item()
    assert result.history.evaluations["loss"][2] == pytest.approx(expected, rel=1e-12)


def test_an_operator_is_accepted_and_has_no_effect():
    with_one, without = serial(operator=Periodic(1)), serial()
    assert torch.equal(vector(with_one.model()), vector(without.model()))


def test_streams_that_can_only_be_read_in_order_serve_too():
    for batch in ("sequential", "joint"):
        iterators = [iter(stream) for stream in regression()]
        assert np.array_equal(
            losses(serial(batch=batch)), losses(serial(batch=batch, streams=iterators))
        )


def test_accuracy_on_the_last_samples_of_each_stream():
    result = serial(
        model=seeded(lambda: nn.Linear(3, 3)), loss=F.cross_entropy, streams=classification()
    )
    correct = result.history.rounds["correct"].to_numpy().reshape(6, 3)
    assert result.accuracy() == correct.sum() / 72
    assert result.accuracy(last=8) == correct[-2:].sum() / 24


def test_one_learners_stream_is_the_same_either_way():
    streams = regression(learners=1)
    one, other = serial(streams=streams), serial(streams=streams, batch="joint")
    assert np.array_equal(losses(one), losses(other))
