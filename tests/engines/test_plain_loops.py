"""Learners without synchronisation are what a plain PyTorch loop makes of them, bit for bit."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.engines.problems import (
    classification,
    losses,
    plain_nosync,
    regression,
    run,
    seeded,
    sgd,
    states,
)

OPTIMIZERS = {
    "SGD": sgd,
    "momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=0.01),
    "Nesterov": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "AMSGrad": lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.01),
    "NAdam": lambda p: torch.optim.NAdam(p, lr=0.01),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.5, centered=True),
    "Adagrad": lambda p: torch.optim.Adagrad(p, lr=0.05, initial_accumulator_value=0.3),
    "Adadelta": torch.optim.Adadelta,
    "Rprop": lambda p: torch.optim.Rprop(p, lr=0.01),
}
SHARDS = ["looped"]
ROUNDS = 70  # more than one chunk between two looks at the learners


def perceptron():
    return nn.Sequential(nn.Linear(7, 33), nn.Tanh(), nn.Linear(33, 3))


def assert_as_plain(streams, make, optimizer, loss, shard="looped", step=None, **named):
    sums, learners = plain_nosync(streams, make, optimizer, loss, **named)
    result = run(
        model=make,
        optimizer=optimizer,
        loss=loss,
        streams=streams,
        rounds=len(streams[0]),
        shard=shard,
        step=step,
        workers=2,
        **named,
    )
    dtype = losses(result).dtype
    assert np.array_equal(losses(result), np.asarray(sums, dtype=dtype))
    for state, learner in zip(states(result), learners, strict=True):
        for name, tensor in learner.module.state_dict().items():
            assert torch.equal(state[name], tensor), name
    return result


@pytest.mark.parametrize("shard", SHARDS)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimisers_run_equals_a_plain_loop(name, shard):
    streams = classification(learners=3, rounds=20, batch=5, inputs=7)
    assert_as_plain(streams, seeded(perceptron), OPTIMIZERS[name], F.cross_entropy, shard)


def test_more_learners_than_a_shard_holds_equal_plain_loops():
    streams = regression(learners=19, rounds=5, inputs=7, outputs=3)
    assert_as_plain(streams, seeded(perceptron), OPTIMIZERS["Adam"], F.mse_loss)


SCHEDULERS = {
    "steps": lambda o: torch.optim.lr_scheduler.StepLR(o, 3, 0.5),
    "cosine": lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 10),
    "warm-up": lambda o: torch.optim.lr_scheduler.LinearLR(o, 0.1, total_iters=5),
    "one cycle, with momentum": lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.1, 20),
}


@pytest.mark.parametrize("name", SCHEDULERS)
def test_a_schedule_is_followed_round_by_round(name):
    streams = regression(rounds=20, inputs=7, outputs=3)
    optimizer, scheduler = OPTIMIZERS["momentum"], SCHEDULERS[name]
    assert_as_plain(streams, seeded(perceptron), optimizer, F.mse_loss, scheduler=scheduler)


def test_a_learning_rate_in_a_tensor_is_scheduled_too():
    def adam(parameters):
        return torch.optim.Adam(parameters, lr=torch.tensor(0.02))

    streams = regression(rounds=12, inputs=7, outputs=3)
    scheduler = SCHEDULERS["steps"]
    assert_as_plain(streams, seeded(perceptron), adam, F.mse_loss, scheduler=scheduler)


def test_gradients_are_clipped_by_their_norm():
    streams = regression(rounds=8, inputs=7, outputs=3)
    assert_as_plain(streams, seeded(perceptron), sgd, F.mse_loss, clip=0.05)


def test_several_parameter_groups_keep_their_settings_under_a_schedule():
    def grouped(parameters):
        weights = [p for p in parameters if p.ndim > 1]
        biases = [p for p in parameters if p.ndim == 1]
        groups = [{"params": weights, "weight_decay": 0.1}, {"params": biases, "lr": 0.5}]
        return torch.optim.SGD(groups, lr=0.05, momentum=0.5)

    streams = regression(rounds=9, inputs=7, outputs=3)
    scheduler = SCHEDULERS["steps"]
    assert_as_plain(streams, seeded(perceptron), grouped, F.mse_loss, scheduler=scheduler)


def test_parameters_that_the_optimiser_leaves_out_stay():
    def biases_only(parameters):
        return torch.optim.SGD([p for p in parameters if p.ndim == 1], lr=0.1)

    make = seeded(perceptron)
    result = assert_as_plain(regression(inputs=7, outputs=3), make, biases_only, F.mse_loss)
    with torch.random.fork_rng():
        before = make().state_dict()
    assert all(torch.equal(state["0.weight"], before["0.weight"]) for state in states(result))


class Tied(nn.Module):
    """Encoder and decoder share one weight."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(7, 7, bias=False)
        self.decoder = nn.Linear(7, 7)
        self.decoder.weight = self.encoder.weight

    def forward(self, x):
        return self.decoder(torch.tanh(self.encoder(x)))


def frozen():
    network = perceptron()
    network[0].requires_grad_(False)
    return network


class Masked(nn.Module):
    """A constant buffer with infinities, as causal masks are."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(7, 3)
        self.register_buffer("mask", torch.tensor([0.0, 0.0, -torch.inf]))

    def forward(self, x):
        return torch.softmax(self.linear(x) + self.mask, 1)


NETWORKS = {
    "batch normalisation": lambda: nn.Sequential(
        nn.Linear(7, 9), nn.BatchNorm1d(9), nn.ReLU(), nn.Linear(9, 3)
    ),
    "batch normalisation by cumulative average": lambda: nn.Sequential(
        nn.Linear(7, 9), nn.BatchNorm1d(9, momentum=None), nn.Linear(9, 3)
    ),
    "tied weights": lambda: nn.Sequential(Tied(), nn.Linear(7, 3)),
    "frozen parameters": frozen,
    "spectral normalisation": lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(7, 3)),
    "convolution": lambda: nn.Sequential(
        nn.Unflatten(1, (1, 7)), nn.Conv1d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(20, 3)
    ),
    "a mask with infinities": Masked,
}


@pytest.mark.parametrize("name", NETWORKS)
def test_a_networks_run_equals_a_plain_loop_with_all_buffers(name):
    streams = regression(rounds=12, inputs=7, outputs=3)
    assert_as_plain(streams, seeded(NETWORKS[name]), OPTIMIZERS["momentum"], F.mse_loss)


def test_a_recurrent_network_equals_a_plain_loop():
    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.LSTM(1, 5, batch_first=True)
            self.out = nn.Linear(5, 3)

        def forward(self, x):
            return self.out(self.cell(x[..., None])[0][:, -1])

    streams = regression(rounds=4, inputs=7, outputs=3)
    assert_as_plain(streams, seeded(Recurrent), OPTIMIZERS["Adam"], F.mse_loss)


@pytest.mark.parametrize("detached", [True, False])
def test_an_own_step_replaces_the_usual_one(detached):
    def step(module, optimizer, x, y):
        optimizer.zero_grad()
        output = module(x)
        loss = F.mse_loss(output, y)
        loss.backward()
        optimizer.step()
        return (loss.detach() if detached else loss), output

    streams = regression(rounds=ROUNDS, inputs=7, outputs=3)
    result = assert_as_plain(streams, seeded(perceptron), sgd, F.mse_loss, step=step)
    assert not result.losses.losses.requires_grad


def test_an_optimiser_with_a_closure_runs_in_an_own_step():
    def lbfgs(parameters):
        return torch.optim.LBFGS(parameters, lr=0.1, max_iter=3)

    def step(module, optimizer, x, y):
        def closure():
            optimizer.zero_grad()
            loss = F.mse_loss(module(x), y)
            loss.backward()
            return loss

        return optimizer.step(closure), None

    streams = regression(learners=2, rounds=ROUNDS)
    result = run(optimizer=lbfgs, step=step, streams=streams, rounds=ROUNDS)
    _, learners = plain_nosync([[], []], seeded(lambda: nn.Linear(3, 1)), lbfgs, F.mse_loss)
    for learner, stream, state in zip(learners, streams, states(result), strict=True):
        for x, y in stream:
            step(learner.module, learner.optimizer, x, y)
        assert torch.equal(state["weight"], learner.module.weight)


def test_a_step_that_lets_gradients_pile_up_does_not_pass_them_to_the_next_learner():
    def careless(module, optimizer, x, y):
        loss = F.mse_loss(module(x), y)
        loss.backward()
        optimizer.step()
        return loss, None

    batch = regression(learners=1, rounds=1)[0]
    result = run(step=careless, streams=[batch] * 3, rounds=1)
    first, *others = states(result)
    assert all(torch.equal(first["weight"], other["weight"]) for other in others)


def test_an_optimiser_whose_state_exists_before_the_first_step_starts_each_learner_afresh():
    class Counting(torch.optim.SGD):
        """Steps of 0.1, halved at each step: its state is made with the optimiser."""

        def __init__(self, parameters):
            super().__init__(parameters, lr=0.1)
            for group in self.param_groups:
                for parameter in group["params"]:
                    self.state[parameter]["factor"] = torch.ones(())

        @torch.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for parameter in group["params"]:
                    factor = self.state[parameter]["factor"]
                    parameter.sub_(parameter.grad * factor, alpha=0.1)
                    factor.mul_(0.5)

    streams = regression(rounds=ROUNDS, inputs=7, outputs=3)
    assert_as_plain(streams, seeded(perceptron), Counting, F.mse_loss)
