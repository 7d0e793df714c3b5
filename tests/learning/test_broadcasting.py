"""Traps of stepping learners all at once: what looks like one row per learner and is none."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.engines.problems import classification, losses, regression, run, seeded


class Scaled(nn.Module):
    """A linear layer times something."""

    def __init__(self, factor):
        super().__init__()
        self.linear = nn.Linear(3, 1)
        self.factor = factor

    def forward(self, x):
        return 0.1 * self.linear(x) * self.factor


def classes():
    return nn.Linear(3, 3)


def ignored_later():
    """Class numbers of which some do not count, after the rounds of a trial."""
    streams = classification(rounds=6)
    for _, y in (batch for stream in streams for batch in stream[3:]):
        y[0] = -100
    return {"model": classes, "loss": nn.CrossEntropyLoss(), "streams": streams}


def zero_is_padding():
    """Class 0 does not count, and comes only after the rounds of a trial."""
    streams = classification(rounds=6)
    for round, (_, y) in ((t, batch) for stream in streams for t, batch in enumerate(stream)):
        y[:] = y.clamp(min=1) if round < 3 else torch.tensor([0, 1, 2, 2])
    return {"model": classes, "loss": nn.CrossEntropyLoss(ignore_index=0), "streams": streams}


class Named(nn.Linear):
    def forward(self, x):
        return super().forward(x.view(size=(4, 3)))


PROBLEMS = {
    "a number that is learnt": lambda: {
        "model": seeded(lambda: Scaled(nn.Parameter(torch.tensor(2.0))))
    },
    "a constant as long as a trial has learners": lambda: {
        "model": seeded(lambda: Scaled(torch.full((2, 1), 0.5))),
        "streams": regression(learners=9, batch=2),
    },
    "a constant with one row": lambda: {"model": seeded(lambda: Scaled(torch.full((1, 1), 0.5)))},
    "class weights": lambda: {
        "model": classes,
        "loss": nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 3.0])),
        "streams": classification(),
    },
    "smoothed labels": lambda: {
        "model": classes,
        "loss": nn.CrossEntropyLoss(label_smoothing=0.1),
        "streams": classification(),
    },
    "class numbers that do not count": ignored_later,
    "class 0 as padding": zero_is_padding,
    "an argument by name": lambda: {"model": seeded(lambda: Named(3, 1))},
    "a single round": lambda: {"streams": regression(rounds=1), "rounds": 1},
    "a schedule of a single round": lambda: {
        "streams": regression(rounds=1),
        "rounds": 1,
        "scheduler": lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=1),
    },
    "a loss that is not known": lambda: {"loss": nn.HuberLoss()},
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_whichever_shard_auto_takes_losses_are_the_plain_ones(name):
    plain = run(shard="looped", **PROBLEMS[name]())
    result = run(shard="auto", **PROBLEMS[name]())
    np.testing.assert_allclose(losses(result), losses(plain), rtol=1e-4, atol=1e-6)


def test_randomness_that_cannot_be_keyed_is_never_stacked():
    def loss(output, target):
        return F.mse_loss(output, target) * (1 + 0 * float(np.random.rand()))  # noqa: NPY002

    with pytest.warns(UserWarning, match="one worker"):
        assert run(shard="auto", loss=loss).shard == "looped"
    with pytest.raises(ValueError, match="cannot be keyed"):
        run(shard="stacked", loss=loss)
