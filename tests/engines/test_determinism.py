"""The same bits for any number of workers, and nothing of the caller's is moved."""

import random
import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

import dynavg
from dynavg import Dynamic, FedAvg, NoSync, Periodic
from tests.engines.problems import assert_same_bits, losses, regression, run, seeded, states, vector


class Noisy(nn.Module):
    """Two layers with something random between them, always or in training only."""

    def __init__(self, between):
        super().__init__()
        self.first, self.second = nn.Linear(3, 8), nn.Linear(8, 1)
        self.between = between

    def forward(self, x):
        return self.second(self.between(self, self.first(x)))


def channels(dropout):
    return lambda module, h: dropout(h[..., None, None], 0.4, module.training).flatten(1)


KEYED = {
    "nn.Dropout": lambda: nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.3), nn.Linear(8, 1)),
    "dropout in place": lambda: Noisy(lambda m, h: F.dropout(h, 0.3, m.training, inplace=True)),
    "F.dropout2d": lambda: Noisy(channels(F.dropout2d)),
    "rand_like, in evaluation too": lambda: Noisy(lambda m, h: h + torch.rand_like(h)),
    "randn": lambda: Noisy(lambda m, h: h + 0.1 * torch.randn(h.shape)),
    "bernoulli": lambda: Noisy(lambda m, h: h * torch.bernoulli(torch.full_like(h, 0.5))),
    "normal_": lambda: Noisy(lambda m, h: h + torch.empty_like(h).normal_()),
    "a distribution": lambda: Noisy(
        lambda m, h: torch.distributions.Normal(h, torch.ones(())).rsample()
    ),
}
ESCAPING = {
    "gumbel softmax": lambda: Noisy(lambda m, h: F.gumbel_softmax(h)),
    "dropout inside an LSTM": lambda: Noisy(
        lambda m, h: m.cell(h[:, None])[0][:, 0] if hasattr(m, "cell") else h
    ),
    "dropout inside a checkpoint": lambda: Noisy(
        lambda m, h: checkpoint(lambda z: F.dropout(z, 0.5, m.training), h, use_reentrant=False)
    ),
    "noise on gradients": lambda: Noisy(lambda m, h: noisy_gradient(h)),
    "NumPy": lambda: Noisy(lambda m, h: h + float(np.random.rand())),  # noqa: NPY002
    "Python": lambda: Noisy(lambda m, h: h + random.random()),
}


def noisy_gradient(h):
    if h.requires_grad:
        h.register_hook(lambda slope: slope + torch.randn_like(slope))
    return h


def escaping(name):
    def make():
        network = ESCAPING[name]()
        if "LSTM" in name:
            network.cell = nn.LSTM(8, 8, num_layers=2, dropout=0.5, batch_first=True)
        return network

    return seeded(make)


OPERATORS = {
    "dynamic": Dynamic(delta=0.02),
    "Algorithm 2": Dynamic(delta=0.02, every=2, weights="samples"),
    "periodic": Periodic(3),
    "fedavg": FedAvg(every=2, fraction=0.3),
    "nosync": NoSync(),
}
HELD_OUT = tuple(torch.cat(part) for part in zip(*regression(1, 300, seed=9)[0], strict=True))


def with_workers(workers, **changes):
    streams = regression(learners=11, rounds=9, batch=[1, 2, 3, 4, 5, 6, 7, 8, 4, 4, 4])
    arguments = {"streams": streams, "rounds": 9, "divergence": True, "evaluate": (HELD_OUT, 4)}
    return run(workers=workers, **arguments | changes)


@pytest.mark.parametrize("name", OPERATORS)
def test_the_number_of_workers_changes_no_bit(name):
    one, two, four = (with_workers(count, operator=OPERATORS[name]) for count in (1, 2, 4))
    assert_same_bits(one, two)
    assert_same_bits(one, four)
    if name != "nosync":
        assert one.bytes() > 0


@pytest.mark.parametrize("name", KEYED)
def test_randomness_inside_a_model_is_the_same_with_any_number_of_workers(name):
    make = seeded(KEYED[name])
    one, two, four = (
        with_workers(count, model=make, operator=Dynamic(delta=0.05)) for count in (1, 2, 4)
    )
    assert_same_bits(one, two)
    assert_same_bits(one, four)


@pytest.mark.parametrize("name", ESCAPING)
def test_randomness_that_cannot_be_keyed_warns_and_stays_reproducible(name):
    def once(workers):
        with pytest.warns(UserWarning, match="it runs on one worker") as caught:
            result = with_workers(workers, model=escaping(name), operator=Dynamic(delta=0.05))
        assert len(caught) == 1
        return result

    one = once(1)
    torch.rand(5)
    np.random.rand(5)  # noqa: NPY002
    random.random()
    assert_same_bits(one, once(4))


@pytest.mark.filterwarnings("ignore:the model draws random numbers")
@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpoints_second_pass_drops_what_its_first_pass_dropped(reentrant):
    """The loss is linear in the weights, so it is their product with its own gradient."""

    class Checkpointed(nn.Module):
        def __init__(self):
            super().__init__()
            self.weights = nn.Parameter(torch.linspace(1, 3, 64))

        def forward(self, x):
            drop = checkpoint(F.dropout, self.weights, use_reentrant=reentrant)
            return drop.sum()[None, None] + 0 * x

    batch = torch.zeros(1, 1), torch.zeros(1, 1)
    result = run(
        model=Checkpointed,
        loss=lambda output, target: (output + 0 * target).mean(),
        optimizer=lambda p: torch.optim.SGD(p, lr=1.0),
        streams=[[batch]] * 2,
        rounds=1,
    )
    before = torch.linspace(1, 3, 64)
    for model, loss in zip(result.models(), losses(result)[:, 0], strict=True):
        assert float(before @ (before - model.weights.detach())) == pytest.approx(loss, rel=1e-5)
    assert len(set(losses(result)[:, 0])) == 2  # each learner draws its own


def test_the_warning_points_at_the_call_of_simulate():
    with pytest.warns(UserWarning, match="one worker") as caught:
        dynavg.simulate(
            model=escaping("gumbel softmax"),
            loss=F.mse_loss,
            optimizer=lambda p: torch.optim.SGD(p, lr=0.1),
            streams=regression(),
            operator=NoSync(),
            rounds=1,
        )
    assert caught[0].filename == __file__


def test_dropout_is_drawn_anew_for_each_learner_round_and_seed():
    batch = regression(learners=1, rounds=1)[0][0]
    arguments = {"streams": [[batch] * 3] * 3, "rounds": 3, "model": seeded(KEYED["nn.Dropout"])}
    arguments["optimizer"] = lambda p: torch.optim.SGD(p, lr=0.0)
    sums = np.stack([losses(run(seed=seed, **arguments)) for seed in (0, 1)])
    assert len(np.unique(sums)) == sums.size


def test_a_network_without_dropout_learns_the_same_whatever_the_seed():
    assert_same_bits(run(seed=0), run(seed=1))


def test_different_seeds_make_different_models_and_the_same_seed_the_same():
    def random_linear():
        return nn.Linear(3, 1)

    first, again, other = (run(model=random_linear, seed=seed) for seed in (0, 0, 1))
    assert_same_bits(first, again)
    assert not torch.equal(vector(first.model()), vector(other.model()))


def test_a_factory_that_draws_with_numpy_or_python_follows_the_seed_too():
    def make():
        layer = nn.Linear(3, 1)
        nn.init.constant_(layer.weight, np.random.rand())  # noqa: NPY002
        nn.init.constant_(layer.bias, random.random())
        return layer

    first, again, other = (run(model=make, seed=seed) for seed in (0, 0, 1))
    assert_same_bits(first, again)
    assert not torch.equal(vector(first.model()), vector(other.model()))


def test_two_protocols_with_one_seed_see_the_same_data():
    seen = {}

    def noting(name):
        def loss(output, target):
            seen.setdefault(name, []).append(target.sum().item())
            return F.mse_loss(output, target)

        return loss

    for name, operator in OPERATORS.items():
        data = dynavg.data.split(HELD_OUT, learners=4, batch_size=5, seed=7)
        run(streams=data, operator=operator, loss=noting(name), rounds=10)
    orders = list(seen.values())
    assert all(sorted(order) == sorted(orders[0]) for order in orders)
    assert len(set(orders[0])) > 30


# The caller's world


def world():
    return (
        torch.get_rng_state().tolist(),
        np.random.get_state()[1].tolist(),  # noqa: NPY002
        np.random.get_state()[2],  # noqa: NPY002
        random.getstate(),
        torch.get_num_threads(),
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.get_default_dtype(),
    )


def drawing():
    torch.rand(1)
    np.random.rand()  # noqa: NPY002
    random.random()
    return nn.Sequential(nn.Linear(3, 4), nn.Dropout(), nn.Linear(4, 1))


def ruining(check):
    torch.rand(3)
    raise KeyError("from the user")


@pytest.mark.parametrize("threads", [1, 2])
def test_the_callers_generators_threads_and_modes_are_left_alone(threads):
    before_threads = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        before = world()
        run(model=drawing, operator=Periodic(2), init_noise=0.5, workers=2)
        assert world() == before
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            run(model=escaping("NumPy"))
        assert world() == before
    finally:
        torch.set_num_threads(before_threads)


def test_the_callers_world_is_left_alone_when_the_run_fails():
    before = world()
    with pytest.raises(KeyError, match="from the user"):
        run(model=drawing, operator=Periodic(2), callbacks=[ruining], workers=2)
    assert world() == before
    with pytest.raises(dynavg.DivergedError):
        run(model=drawing, optimizer=lambda p: torch.optim.SGD(p, lr=1e30))
    assert world() == before


@pytest.mark.parametrize("runs", [dynavg.simulate, dynavg.serial])
def test_a_shuffling_loader_does_not_move_the_callers_generator(runs):
    loader = DataLoader(TensorDataset(*HELD_OUT), batch_size=5, shuffle=True)
    before = world()
    runs(
        model=lambda: nn.Linear(3, 1),
        loss=F.mse_loss,
        optimizer=lambda p: torch.optim.SGD(p, lr=0.1),
        streams=[loader, loader],
        operator=NoSync(),
        rounds=5,
    )
    assert world() == before


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_learners_learn_under_any_grad_mode_of_the_caller(mode):
    plain = run(operator=Periodic(2), evaluate=(HELD_OUT, 3))
    with mode():
        before = world()
        moded = run(operator=Periodic(2), evaluate=(HELD_OUT, 3), streams=regression())
        assert world() == before
        assert_same_bits(plain, moded)
    moded.model().weight.sum().backward()  # its parameters are ordinary ones


def test_a_default_dtype_of_the_callers_stays_and_is_the_models():
    torch.set_default_dtype(torch.float64)
    try:
        result = run(operator=Periodic(2), workers=2)
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert result.model().weight.dtype == torch.float64


def test_callbacks_and_evaluation_change_no_bit_of_learning():
    model = seeded(KEYED["rand_like, in evaluation too"])
    quiet = run(model=model, operator=Dynamic(0.05))
    watched = run(
        model=model,
        operator=Dynamic(0.05),
        callbacks=[lambda check: torch.rand(7)],
        evaluate=(HELD_OUT, 1),
        divergence=True,
    )
    assert np.array_equal(losses(quiet), losses(watched))
    for own, its in zip(states(quiet), states(watched), strict=True):
        assert all(torch.equal(own[name], its[name]) for name in own)
