"""Faster forms of the same calls against the plain way, and the rule that chooses them."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import dynavg
from dynavg.learning import fusing
from dynavg.learning.fusing import LARGE
from dynavg.learning.trial import Unsuitable
from tests.engines.problems import seeded
from tests.learning.test_stacked import OPERATORS, OPTIMIZERS

SIDE, HIDDEN = 12, 700
CLOSE = {"rtol": 1e-3, "atol": 2e-5}
"""float32 rounding (6e-8 of sums of some hundred terms) grown by a few hundred steps."""


@pytest.fixture(autouse=True)
def _small_pictures_count(monkeypatch):
    monkeypatch.setattr(fusing, "CONVOLVED", 1)
    monkeypatch.setattr(fusing, "POOLED", 1)


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


class Pooled(nn.Module):
    """A convolution of four channels, a pooling, and what is left of it, flat."""

    def __init__(self, pooling, **settings):
        super().__init__()
        self.seen = nn.Conv2d(4, 8, **{"kernel_size": 3} | settings)
        self.pooling = pooling
        self.last = nn.Linear(self.flat(torch.zeros(1, 4, SIDE, SIDE)).shape[1], 3)

    def flat(self, x):
        hidden = self.pooling(F.relu(self.seen(x)))
        if isinstance(hidden, tuple):
            hidden = hidden[0] * (hidden[1] / 100)
        return hidden.flatten(1)

    def forward(self, x):
        return self.last(self.flat(x.expand(-1, 4, -1, -1)))


POOLED = {
    "kernels that are not square": (nn.MaxPool2d((2, 1)), {"kernel_size": (3, 1), "bias": False}),
    "circular padding": (nn.MaxPool2d(2), {"padding": 1, "padding_mode": "circular"}),
    "reflected padding": (nn.MaxPool2d(2), {"padding": 2, "padding_mode": "reflect"}),
    "the same size": (nn.MaxPool2d(2), {"padding": "same"}),
    "dilation": (nn.MaxPool2d(3, stride=1, padding=1, dilation=2), {"dilation": 2}),
    "groups and strides": (nn.AvgPool2d(2), {"groups": 4, "stride": 2}),
    "ceil_mode": (nn.MaxPool2d(3, ceil_mode=True), {}),
    "places of the largest": (nn.MaxPool2d(2, return_indices=True), {}),
    "adaptive pooling": (nn.AdaptiveMaxPool2d(3, return_indices=True), {}),
}


@pytest.mark.parametrize("what", POOLED)
def test_fused_pictures_keep(what):
    pooling, settings = POOLED[what]
    model = seeded(lambda: Pooled(pooling, **settings))
    looped, fused = both(model=model, rounds=8, operator=OPERATORS["periodic"])
    torch.testing.assert_close(fused.rows, looped.rows, **CLOSE)


class Counting(nn.Module):
    """Does something else once it has seen as many batches as the trial of fused steps has not."""

    def __init__(self, after=4):
        super().__init__()
        self.seen, self.large = nn.Conv2d(1, 8, 3), nn.Linear(200, HIDDEN)
        self.last = nn.Linear(HIDDEN, 3)
        self.after = after
        self.register_buffer("batches", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        self.batches.add_(1)
        if self.batches <= self.after:
            return self.plainly(x)
        return self.otherwise(x)

    def plainly(self, x):
        hidden = F.max_pool2d(F.relu(self.seen(x)), 2)
        return self.last(torch.tanh(self.large(hidden.flatten(1))))


class Penalised(Counting):
    def otherwise(self, x):
        x = x.detach().requires_grad_()
        output = self.plainly(x)
        (slope,) = torch.autograd.grad(output.sum(), x, create_graph=True)
        return output + slope.square().flatten(1).sum(1, keepdim=True) * torch.arange(3.0)


class Chosen(Counting):
    """Samples go to one of two experts; one of them may get none."""

    def otherwise(self, x):
        hidden = F.max_pool2d(F.relu(self.seen(x)), 2).flatten(1)
        parts = [self.large(hidden[:0]), self.large(hidden)]
        return self.last(torch.tanh(torch.cat(parts)))


class Twice(Counting):
    def otherwise(self, x):
        return self.plainly(x) + self.plainly(2 * x)


class Dropped(Counting):
    """Dropout in place, whose result nobody takes."""

    def otherwise(self, x):
        hidden = self.seen(x) * 1
        F.dropout(hidden, 0.5, self.training, inplace=True)
        hidden = F.max_pool2d(hidden, 2)
        return self.last(torch.tanh(self.large(hidden.flatten(1))))


@pytest.mark.parametrize("make", [Penalised, Chosen, Twice])
def test_what_a_model_does_later_than_in_the_trial_comes_out_as_the_plain_way(make):
    looped, fused = both(model=seeded(make), rounds=8, operator=OPERATORS["periodic"])
    torch.testing.assert_close(fused.rows, looped.rows, **CLOSE)


def test_dropout_in_place_whose_result_nobody_takes_comes_out_as_the_plain_way():
    model = seeded(lambda: Dropped(after=0))
    looped, fused = both(model=model, rounds=8, operator=OPERATORS["periodic"])
    torch.testing.assert_close(fused.rows, looped.rows, **CLOSE)


class Written(Counting):
    """Writes into a view and reads what it is a view of."""

    def otherwise(self, x):
        hidden = F.max_pool2d(self.seen(x), 2) * 1
        self.view(hidden).mul_(torch.linspace(0, 2, 200))
        return self.last(torch.tanh(self.large(hidden.flatten(1))))

    def view(self, hidden):
        return hidden.view(len(hidden), -1)


class Reshaped(Written):
    def view(self, hidden):
        return torch.reshape(hidden, (len(hidden), -1))


class Source(Written):
    """Writes into what a view was taken of, and reads the view."""

    def otherwise(self, x):
        hidden = F.max_pool2d(self.seen(x), 2) * 1
        flat = hidden.flatten(1)
        hidden.mul_(2)
        return self.last(torch.tanh(self.large(flat)))


class Strided(Counting):
    def otherwise(self, x):
        hidden = F.max_pool2d(self.seen(x), 2)
        flat = torch.as_strided(hidden, (len(hidden), 200), (200, 1))
        return self.last(torch.tanh(self.large(flat)))


@pytest.mark.parametrize("make", [Written, Reshaped, Source, Strided])
def test_who_would_see_the_order_of_numbers_in_memory_is_stepped_plainly(make):
    model = seeded(lambda: make(after=0))
    looped, auto = (
        dynavg.simulate(**problem(model=model, rounds=3), shard=kind) for kind in ("looped", "auto")
    )
    assert auto.shard == "looped"
    assert torch.equal(auto.rows, looped.rows)


@pytest.mark.parametrize("make", [Written, Reshaped, Source, Strided])
def test_who_sees_it_later_than_in_the_trial_is_stopped_and_told_what_to_do(make):
    with pytest.raises(Unsuitable, match=r"in place|as_strided.*pass shard='looped'") as caught:
        dynavg.simulate(**problem(model=seeded(make), rounds=8, workers=1))
    assert caught.value.__notes__ == ["raised by learner 0 in round 5"]


def test_a_network_that_mixes_precisions_itself_is_left_alone():
    class Mixed(Net):
        def forward(self, x):
            with torch.autocast("cpu", torch.bfloat16):
                return super().forward(x).float()

    looped, fused = both(model=seeded(Mixed), rounds=6, operator=OPERATORS["periodic"])
    torch.testing.assert_close(fused.rows, looped.rows, rtol=0, atol=1e-3)  # of bfloat16's 4e-3


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


def test_small_convolutions_and_poolings_are_left_alone(monkeypatch):
    small = seeded(lambda: nn.Sequential(nn.Conv2d(1, 8, 3), nn.MaxPool2d(2), nn.Flatten(),
                                         nn.Linear(200, 3)))  # fmt: skip
    work, pooled = 8 * 9 * 4 * SIDE**2, 4 * 8 * 10**2
    monkeypatch.setattr(fusing, "POOLED", pooled + 1)
    for limit, kind in ((work, "fused"), (work + 1, "looped")):
        monkeypatch.setattr(fusing, "CONVOLVED", limit)
        assert dynavg.simulate(**problem(model=small, rounds=2)).shard == kind


def test_the_averaged_model_is_evaluated_as_in_the_plain_way():
    ((x, y), *_), *_ = pictures(1, 1, batch=40, seed=5)
    looped, fused = both(evaluate=((x, y), 10), model=seeded(lambda: Net(dropout=0.5)))
    ours, theirs = fused.history.evaluations, looped.history.evaluations
    assert ours["accuracy"].to_list() == theirs["accuracy"].to_list()
    assert ours["loss"].to_list() == pytest.approx(theirs["loss"].to_list(), rel=1e-4)
