"""The stacked way against the plain one, and the rule that chooses between them."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import dynavg
from dynavg.learning.stacked import SAME_BITS
from dynavg.models import drift_mlp, logistic

OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.02, momentum=0.9, weight_decay=1e-3),
    "nesterov": lambda p: torch.optim.SGD(p, lr=0.02, momentum=0.9, nesterov=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.003),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.003),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.003),
}
OPERATORS = {
    "nosync": dynavg.NoSync(),
    "periodic": dynavg.Periodic(every=4),
    "fedavg": dynavg.FedAvg(every=4, fraction=0.4),
    "dynamic": dynavg.Dynamic(delta=0.02, every=2),
}


def drift(learners=6, **changes):
    """A problem that stacks: smooth, so that rounding stays rounding over hundreds of rounds."""
    return {
        "model": lambda: nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)),
        "loss": F.binary_cross_entropy_with_logits,
        "optimizer": OPTIMIZERS["sgd"],
        "streams": dynavg.data.drift(learners, batch_size=5, seed=2, d=8),
        "operator": OPERATORS["dynamic"],
        "rounds": 40,
        "progress": False,
    } | changes


def both(**changes):
    problem = drift(**changes)
    runs = [dynavg.simulate(**problem, shard=kind) for kind in ("looped", "stacked")]
    assert [run.shard for run in runs] == ["looped", "stacked"]
    return runs


@pytest.mark.parametrize("name", OPERATORS)
def test_stacked_learners_agree_with_looped_ones_over_hundreds_of_rounds(name):
    """Tolerance: float64 rounding (1e-16) grown by 300 steps of a Lipschitz map."""
    looped, stacked = both(
        operator=OPERATORS[name], rounds=300, dtype=torch.float64, optimizer=OPTIMIZERS["momentum"]
    )
    torch.testing.assert_close(stacked.rows, looped.rows, rtol=0, atol=1e-10)
    assert stacked.ledger.equals(looped.ledger)
    assert stacked.loss_per_learner == pytest.approx(looped.loss_per_learner, rel=1e-12)
    assert torch.equal(stacked.losses.correct, looped.losses.correct)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_each_optimiser_agrees(name):
    looped, stacked = both(optimizer=OPTIMIZERS[name], operator=OPERATORS["periodic"])
    torch.testing.assert_close(stacked.rows, looped.rows, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimiser_does_to_a_stack_bitwise_what_it_does_to_its_parts(name):
    draw = torch.Generator().manual_seed(0)
    rows = torch.randn(7, 30, generator=draw)
    stack = nn.Parameter(rows.clone()[:, 5:25].view(7, 4, 5))  # strided, as a block's views are
    parts = [nn.Parameter(row[5:25].clone().view(4, 5)) for row in rows]
    whole = OPTIMIZERS[name]([stack])
    assert type(whole) in SAME_BITS
    single = [OPTIMIZERS[name]([part]) for part in parts]
    for _ in range(60):
        gradients = torch.randn(7, 4, 5, generator=draw)
        stack.grad = gradients.clone()
        whole.step()
        for part, gradient, optimizer in zip(parts, gradients, single, strict=True):
            part.grad = gradient.clone()
            optimizer.step()
    assert torch.equal(stack.detach(), torch.stack([part.detach() for part in parts]))


def test_dropout_masks_of_a_stack_are_those_that_each_learner_draws_alone():
    looped, stacked = both(
        model=lambda: nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Dropout(0.3), nn.Linear(16, 1)),
        dtype=torch.float64,
    )
    torch.testing.assert_close(stacked.rows, looped.rows, rtol=0, atol=1e-12)


def test_the_number_of_workers_changes_no_bit_of_a_stacked_run():
    problem = drift(learners=30, model=lambda: drift_mlp(8))
    first, *others = (dynavg.simulate(**problem, shard="stacked", workers=n) for n in (1, 2, 4))
    for other in others:
        assert torch.equal(other.rows, first.rows)
        assert torch.equal(other.losses.losses, first.losses.losses)
        assert other.ledger.equals(first.ledger)


def test_functional_code_and_losses_of_the_users_own_are_stacked():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(8, 6), nn.Linear(6, 1)
            self.scale = nn.Parameter(torch.ones(6))

        def forward(self, x):
            hidden = torch.tanh(self.first(x.view(x.size(0), -1))) * self.scale
            return self.second(F.silu(hidden) + 0.5)

    looped, stacked = both(
        model=Net, loss=lambda output, y: ((output - y) ** 2).mean(), dtype=torch.float64
    )
    torch.testing.assert_close(stacked.rows, looped.rows, rtol=0, atol=1e-12)


def test_class_targets_are_stacked():
    x = torch.randn(120, 8, generator=torch.Generator().manual_seed(0))
    looped, stacked = both(
        model=lambda: nn.Linear(8, 3),
        loss=F.cross_entropy,
        streams=dynavg.data.split((x, x[:, :3].argmax(1)), learners=4, batch_size=5),
        dtype=torch.float64,
    )
    torch.testing.assert_close(stacked.rows, looped.rows, rtol=0, atol=1e-12)
    assert stacked.accuracy() == looped.accuracy()


REFUSED = {
    "clipping": {"clip": 1.0},
    "on_sync='reset'": {"on_sync": "reset"},
    "buffers": {
        "model": lambda: nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    },
    "Adagrad": {"optimizer": lambda p: torch.optim.Adagrad(p, lr=0.1)},
    "softplus_not_known": {
        "model": lambda: nn.Sequential(nn.Linear(8, 4), nn.PReLU(), nn.Linear(4, 1))
    },
    "one shape": {
        "streams": dynavg.data.split((torch.randn(60, 8), torch.rand(60, 1)), 3, [4, 5, 6])
    },
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_cannot_be_stacked_is_looped_and_refused_when_asked_for(why):
    problem = drift(**REFUSED[why], rounds=3)
    assert dynavg.simulate(**problem).shard == "looped"
    with pytest.raises(ValueError, match=r"simulate\(shard='stacked'\): "):
        dynavg.simulate(**problem, shard="stacked")


def test_auto_stacks_small_models_of_several_learners():
    assert dynavg.simulate(**drift(model=lambda: logistic(8))).shard == "stacked"
    assert dynavg.simulate(**drift(learners=1)).shard == "looped"
    assert dynavg.simulate(**drift(model=lambda: logistic(8), shard="looped")).shard == "looped"
