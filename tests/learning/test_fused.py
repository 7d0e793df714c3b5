"""Faster forms of the same calls against the plain way, and the rule that chooses them."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import dynavg
from dynavg.learning.fusing import LARGE
from tests.engines.problems import seeded
from tests.learning.test_stacked import OPERATORS, OPTIMIZERS

SIDE, HIDDEN = 12, 700
CLOSE = {"rtol": 1e-3, "atol": 2e-5}
"""float32 rounding (6e-8 of sums of some hundred terms) grown by a few hundred steps."""


class Net(nn.Module):
    """Pictures through functional calls: a convolution, pooling, dropout, a large linear layer."""

    def __init__(self, dropout=0.0, penalty=0.0):
        super().__init__()
        self.seen = nn.Conv2d(1, 8, 3)
        self.large = nn.Linear(200, HIDDEN)
        self.last = nn.Linear(HIDDEN, 3)
        self.dropout, self.penalty = dropout, penalty

    def forward(self, x):
        whole = self.penalty * torch.square(input=self.large.weight).sum()
        hidden = F.max_pool2d(F.relu(self.seen(x)), 2)
        hidden = F.dropout(hidden, self.dropout, self.training)
        hidden = torch.tanh(self.large(hidden.flatten(1)))
        return self.last(hidden) + whole * torch.arange(3.0)


def pictures(learners, rounds, batch=4, seed=0):
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(learners, rounds, batch, 1, SIDE, SIDE, generator=draw)
    y = (x[..., :4, :4].mean((3, 4, 5)) > 0) + (x[..., 4:, 4:].mean((3, 4, 5)) > 0).long()
    return [list(zip(*both, strict=True)) for both in zip(x, y, strict=True)]


def problem(learners=4, **changes):
    arguments = {
        "model": seeded(Net),
        "loss": F.cross_entropy,
        "optimizer": OPTIMIZERS["sgd"],
        "operator": OPERATORS["dynamic"],
        "rounds": 20,
        "progress": False,
    } | changes
    return {"streams": pictures(learners, arguments["rounds"])} | arguments


def both(**changes):
    runs = [dynavg.simulate(**problem(**changes), shard=kind) for kind in ("looped", "fused")]
    assert [run.shard for run in runs] == ["looped", "fused"]
    return runs


@pytest.mark.parametrize("name", OPERATORS)
def test_fused_learners_agree_with_looped_ones_over_hundreds_of_rounds(name):
    looped, fused = both(operator=OPERATORS[name], rounds=200, optimizer=small_steps)
    torch.testing.assert_close(fused.rows, looped.rows, **CLOSE)
    assert fused.ledger.equals(looped.ledger)
    assert len(looped.ledger) > 0 or name == "nosync"
    assert fused.loss_per_learner == pytest.approx(looped.loss_per_learner, rel=1e-4)


def small_steps(parameters):
    return torch.optim.SGD(parameters, lr=0.02)


@pytest.mark.parametrize("name", ["sgd", "momentum", "nesterov", "adagrad"])
def test_each_optimiser_agrees(name):
    optimizers = OPTIMIZERS | {"adagrad": lambda p: torch.optim.Adagrad(p, lr=0.01)}
    looped, fused = both(optimizer=optimizers[name], operator=OPERATORS["periodic"])
    torch.testing.assert_close(fused.rows, looped.rows, **CLOSE)


CASES = {
    "the dropout masks of the plain way": {"model": seeded(lambda: Net(dropout=0.5))},
    "a weight that is used twice": {"model": seeded(lambda: Net(penalty=0.01))},
    "gradients that are clipped": {"clip": 0.1},
    "rates that change": {
        "scheduler": lambda optimizer: torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.8)
    },
    "layers as modules": {
        "model": seeded(
            lambda: nn.Sequential(
                nn.Conv2d(1, 4, 3, padding=1),
                nn.BatchNorm2d(4),
                nn.ReLU(),
                nn.MaxPool2d(2),
                nn.Dropout(0.25),
                nn.Flatten(),
                nn.Linear(4 * 36, 1024),
                nn.ReLU(),
                nn.Linear(1024, 3),
            )
        )
    },
}


@pytest.mark.parametrize("what", CASES)
def test_fused_steps_keep(what):
    looped, fused = both(**CASES[what])
    torch.testing.assert_close(fused.rows, looped.rows, **CLOSE)


def test_the_number_of_workers_changes_no_bit_of_a_fused_run():
    arguments = problem(learners=11, model=seeded(lambda: Net(dropout=0.5)), rounds=8)
    first, *others = (
        dynavg.simulate(**arguments, shard="fused", workers=workers) for workers in (1, 2, 4)
    )
    for other in others:
        assert torch.equal(other.rows, first.rows)
        assert torch.equal(other.losses.losses, first.losses.losses)
        assert other.ledger.equals(first.ledger)


def own_step(module, optimizer, x, y):
    optimizer.zero_grad()
    output = module(x)
    loss = F.cross_entropy(output, y)
    loss.backward()
    optimizer.step()
    return loss, output


REFUSED = {
    "float32": {"dtype": torch.float64},
    "own step": {"step": own_step},
    "cannot be keyed": {
        "model": seeded(lambda: nn.Sequential(Net(), nn.RReLU())),
    },
    "nothing that has a faster form": {
        "model": seeded(lambda: nn.Sequential(nn.Flatten(), nn.Linear(SIDE * SIDE, 3)))
    },
}


@pytest.mark.filterwarnings("ignore:the model draws random numbers")
@pytest.mark.parametrize("why", REFUSED)
def test_what_cannot_be_fused_is_refused_when_asked_for(why):
    arguments = problem(rounds=3, **REFUSED[why])
    assert dynavg.simulate(**arguments).shard != "fused"
    with pytest.raises(ValueError, match=rf"simulate\(shard='fused'\): .*{why}"):
        dynavg.simulate(**arguments, shard="fused")


def test_auto_fuses_what_is_too_large_to_stack():
    assert HIDDEN * 200 >= LARGE
    large = seeded(lambda: nn.Sequential(nn.Flatten(), nn.Linear(SIDE * SIDE, 2000), nn.ReLU(),
                                         nn.Linear(2000, 3)))  # fmt: skip
    assert dynavg.simulate(**problem(model=large, rounds=2)).shard == "fused"
    assert dynavg.simulate(**problem(learners=1, rounds=2)).shard == "fused"
    assert dynavg.simulate(**problem(rounds=2), shard="looped").shard == "looped"
