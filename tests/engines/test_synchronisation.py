"""What a synchronisation does to models, optimisers and buffers, against plain loops."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import dynavg
from dynavg import Dynamic, FedAvg, NoSync, Periodic
from dynavg.protocol.wire import HEADER_BYTES
from tests.engines.problems import (
    PlainLearner,
    average_plainly,
    classification,
    losses,
    plain_nosync,
    regression,
    run,
    seeded,
    sgd,
    states,
    vector,
)


def adam(parameters):
    return torch.optim.Adam(parameters, lr=0.05)


def perceptron():
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1))


def normalised():
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))


def plain_periodic(streams, every, make, optimizer, weights=None, buffers=True, reset=False):
    """Losses and learners of periodic averaging, in float64."""
    learners = [PlainLearner(make, optimizer, F.mse_loss, dtype=torch.float64) for _ in streams]
    sums = np.zeros((len(streams), len(streams[0])))
    for t in range(len(streams[0])):
        for i, learner in enumerate(learners):
            x, y = streams[i][t]
            sums[i, t] = learner.train(x.double(), y.double()) * len(y)
        if (t + 1) % every == 0:
            average_plainly(learners, weights, buffers)
            if reset:
                for learner in learners:
                    learner.forget()
    return sums, learners


def assert_close(result, sums, learners):
    assert losses(result).dtype == np.float64
    np.testing.assert_allclose(losses(result), sums, rtol=1e-12)
    for state, learner in zip(states(result), learners, strict=True):
        for name, tensor in learner.module.state_dict().items():
            torch.testing.assert_close(state[name], tensor, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("optimizer", [sgd, adam], ids=["SGD", "Adam"])
def test_periodic_averaging_equals_a_plain_loop_that_averages(every, optimizer):
    streams, make = regression(rounds=10), seeded(perceptron)
    sums, learners = plain_periodic(streams, every, make, optimizer)
    result = run(
        model=make,
        optimizer=optimizer,
        streams=streams,
        rounds=10,
        operator=Periodic(every),
        dtype=torch.float64,
    )
    assert_close(result, sums, learners)


def test_optimiser_state_is_forgotten_at_a_synchronisation_if_told():
    streams, make = regression(rounds=10), seeded(perceptron)
    common = {"model": make, "optimizer": adam, "streams": streams, "rounds": 10}
    common |= {"operator": Periodic(2), "dtype": torch.float64}
    kept, reset = run(on_sync="keep", **common), run(on_sync="reset", **common)
    assert_close(reset, *plain_periodic(streams, 2, make, adam, reset=True))
    assert not np.allclose(losses(kept), losses(reset))


def test_only_receivers_forget_their_optimiser_state():
    # Fraction 0.5 of two learners: one is drawn, and gets its own model back. Keeping, that is as
    # if nobody had synchronised; resetting, the one drawn starts Adam anew, the other goes on.
    common = {"optimizer": adam, "streams": regression(learners=2, rounds=9), "rounds": 9}
    common |= {"operator": FedAvg(every=8, fraction=0.5), "model": seeded(perceptron)}
    alone = run(**common | {"operator": NoSync()})
    reset = run(on_sync="reset", **common)
    drawn = reset.ledger.filter(type="query")["receiver"][0]
    for id in range(2):
        same = torch.equal(vector(alone.models()[id]), vector(reset.models()[id]))
        assert same == (id != drawn)


@pytest.mark.parametrize("buffers", ["average", "local"])
def test_floating_buffers_are_averaged_or_stay_local(buffers):
    streams, make = regression(rounds=7), seeded(normalised)
    sums, learners = plain_periodic(streams, 3, make, sgd, buffers=buffers == "average")
    result = run(
        model=make,
        streams=streams,
        rounds=7,
        operator=Periodic(3),
        dtype=torch.float64,
        buffers=buffers,
    )
    assert_close(result, sums, learners)


@pytest.mark.parametrize(("buffers", "floats"), [("average", 29 + 8), ("local", 29)])
@pytest.mark.parametrize(("dtype", "size"), [(None, 4), (torch.float64, 8)])
def test_a_models_payload_is_what_travels_of_its_row(buffers, floats, dtype, size):
    # 3·4 + 4, 4 + 4 and 4 + 1 parameters; running mean and variance of 4; one integer counter.
    result = run(
        model=seeded(normalised), operator=Periodic(2), rounds=2, buffers=buffers, dtype=dtype
    )
    assert result.ledger["payload_bytes"].to_list() == [floats * size] * 6
    assert result.bytes() == 6 * (floats * size + HEADER_BYTES)


def test_the_averaged_model_averages_buffers_too():
    result = run(model=seeded(normalised), dtype=torch.float64)
    mean = sum(state["1.running_var"] for state in states(result)) / 3
    torch.testing.assert_close(result.model()[1].running_var, mean, rtol=1e-14, atol=0)
    assert result.model()[1].num_batches_tracked == 6


def test_masks_with_infinities_survive_averaging_and_do_not_travel():
    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 3)
            self.register_buffer("mask", torch.tensor([0.0, -torch.inf, 0.0]))

        def forward(self, x):
            return torch.softmax(self.linear(x) + self.mask, 1)

    streams = regression(outputs=3)
    result = run(model=Masked, streams=streams, operator=Periodic(2))
    assert result.ledger["payload_bytes"].max() == 12 * 4
    assert result.model().mask.tolist() == [0.0, -torch.inf, 0.0]


def test_weights_by_samples_count_each_learners_batches():
    streams, make = regression(batch=[1, 2, 5], rounds=6), seeded(perceptron)
    sums, learners = plain_periodic(streams, 2, make, sgd, weights=[2.0, 4.0, 10.0])
    operator = Periodic(2, weights="samples")
    result = run(model=make, streams=streams, operator=operator, dtype=torch.float64)
    assert_close(result, sums, learners)
    assert result.samples == 6 * (1 + 2 + 5)
    assert result.history.rounds["samples"].to_list() == [1, 2, 5] * 6


def test_sums_over_batches_count_as_they_are():
    def total(output, target):
        return F.mse_loss(output, target, reduction="sum")

    streams, make = regression(batch=4), seeded(perceptron)
    summed = run(
        model=make,
        loss=total,
        reduction="sum",
        optimizer=lambda p: torch.optim.SGD(p, lr=0.1 / 4),
        streams=streams,
        dtype=torch.float64,
    )
    mean = run(model=make, streams=streams, dtype=torch.float64)
    np.testing.assert_allclose(losses(summed), losses(mean), rtol=1e-12)


def test_models_in_float64_take_inputs_in_float32():
    streams = regression()
    doubled = [[(x.double(), y.double()) for x, y in stream] for stream in streams]
    make = seeded(perceptron)
    sums, learners = plain_nosync(doubled, make, sgd, F.mse_loss, dtype=torch.float64)
    result = run(model=make, streams=streams, dtype=torch.float64)
    assert np.array_equal(losses(result), sums)
    for module, learner in zip(result.models(), learners, strict=True):
        assert torch.equal(vector(module), vector(learner.module))
    assert result.model()[0].weight.dtype == torch.float64


def test_class_targets_stay_integers_under_a_dtype():
    result = run(
        model=seeded(lambda: nn.Linear(3, 3)),
        loss=F.cross_entropy,
        streams=classification(),
        dtype=torch.float64,
    )
    assert losses(result).dtype == np.float64


class Unbalanced(nn.Module):
    """A weight of two and of four dimensions, and vectors of all sorts."""

    def __init__(self):
        super().__init__()
        self.wide = nn.Linear(40, 10)
        self.convolution = nn.Conv2d(8, 16, 5)
        self.norm = nn.BatchNorm1d(10)
        self.bare = nn.Parameter(torch.zeros(50))

    def forward(self, x):
        image = self.convolution(x.new_ones(1, 8, 5, 5)).sum() + self.bare.sum()
        return self.norm(self.wide(x)) + image


def test_noise_at_the_start_has_glorots_scale_on_weights_and_none_elsewhere():
    begun = run(
        model=seeded(Unbalanced),
        optimizer=lambda p: torch.optim.SGD(p, lr=0.0),
        streams=regression(learners=20, rounds=1, inputs=40, outputs=10),
        rounds=1,
        init_noise=3.0,
        buffers="local",
    )
    with torch.random.fork_rng():
        common = seeded(Unbalanced)()
    # Glorot's a = sqrt(6 / (fan in + fan out)), a convolution's fans times its kernel's places.
    limits = {"wide.weight": 3 * (6 / 50) ** 0.5, "convolution.weight": 3 * (6 / (24 * 25)) ** 0.5}
    start = dict(common.named_parameters())
    for name, begin in start.items():
        noise = torch.stack([module.get_parameter(name) - begin for module in begun.models()])
        if name not in limits:
            assert not noise.any(), name
            continue
        assert limits[name] * 0.99 < noise.abs().max() <= limits[name] * 1.0001
        torch.testing.assert_close(noise.std().item(), limits[name] / 3**0.5, rtol=0.02, atol=0)
        torch.testing.assert_close(noise.mean().item(), 0.0, rtol=0, atol=limits[name] / 50)
        assert not torch.equal(noise[0], noise[1])


def test_the_first_reference_is_the_model_without_noise():
    seen = []
    with torch.random.fork_rng():
        common = vector(seeded(Unbalanced)())
    run(
        model=seeded(Unbalanced),
        optimizer=lambda p: torch.optim.SGD(p, lr=0.0),
        streams=regression(learners=2, rounds=1, inputs=40, outputs=10),
        rounds=1,
        init_noise=1.0,
        buffers="local",
        operator=Dynamic(delta=torch.inf),
        callbacks=[lambda check: seen.append(check.reference.clone())],
    )
    assert torch.equal(seen[0], common)


def test_without_noise_all_learners_start_at_the_model_that_the_factory_makes():
    result = run(optimizer=lambda p: torch.optim.SGD(p, lr=0.0))
    with torch.random.fork_rng():
        common = seeded(lambda: nn.Linear(3, 1))()
    assert all(torch.equal(vector(module), vector(common)) for module in result.models())


def test_the_factory_is_called_once():
    calls = []

    def make():
        calls.append(1)
        return nn.Linear(3, 1)

    run(model=make, streams=regression(learners=12), operator=Periodic(2), workers=3)
    assert len(calls) == 1


def test_a_network_that_the_factory_hands_out_again_is_not_trained_itself():
    network = nn.Linear(3, 1)
    before = vector(network).clone()
    result = dynavg.simulate(
        model=lambda: network,
        loss=F.mse_loss,
        optimizer=sgd,
        streams=regression(),
        operator=Periodic(2),
        rounds=4,
    )
    assert torch.equal(vector(network), before)
    assert not torch.equal(vector(result.model()), before)
