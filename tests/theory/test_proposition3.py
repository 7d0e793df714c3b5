"""T3, Proposition 3: continuous averaging σ_1 is serial training on the joint batch.

On the mean loss, m learners with (B, η) are one with (mB, η); on summed losses, (mB, η/m).
"""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import dynavg
from tests.theory.learning import average, dealt, linear, sgd, vectors

M, ROUNDS = 4, 120


def classification(samples: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(samples, 6, generator=generator, dtype=torch.float64)
    noise = torch.randn(samples, 3, generator=generator, dtype=torch.float64)
    return x, (2 * x[:, :3] + x[:, 3:] + 0.3 * noise).argmax(1)


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 3)).double()


def summed(output: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(output, target, reduction="sum")


def apart(a: dynavg.Result, b: dynavg.Result) -> float:
    """The largest difference between two runs' averaged models."""
    return float((average(a) - average(b)).abs().max())


def arguments(sizes: list[int], **others: object) -> dict[str, object]:
    data = classification(ROUNDS * sum(sizes))
    streams = dealt(*data, learners=len(sizes), sizes=sizes)
    return {"model": network, "streams": streams, "rounds": ROUNDS, "seed": 3, **others}


REDUCTIONS = {
    "mean": (F.cross_entropy, 0.2, 0.2),
    "sum": (summed, 0.05, 0.05 / M),
}


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_t3_continuous_averaging_is_serial_training_on_the_joint_batch(reduction, size):
    """Measured after 120 rounds of a two-layer network: at most 2e-15 apart."""
    loss, rate, serial_rate = REDUCTIONS[reduction]
    shared = arguments([size] * M, loss=loss, reduction=reduction)
    together = dynavg.simulate(optimizer=sgd(rate), operator=dynavg.Periodic(every=1), **shared)
    serial = dynavg.serial(optimizer=sgd(serial_rate), batch="joint", **shared)
    assert apart(together, serial) <= 1e-12
    assert float((vectors(together) - average(serial)).abs().max()) <= 1e-12
    assert together.cumulative_loss == pytest.approx(serial.cumulative_loss, rel=1e-13)
    assert together.samples == serial.samples
    assert apart(together, dynavg.serial(optimizer=sgd(rate / 2), batch="joint", **shared)) > 1e-3


def test_t3_the_other_scaling_of_the_learning_rate_is_wrong_for_the_mean_loss():
    shared = arguments([4] * M, loss=F.cross_entropy)
    together = dynavg.simulate(optimizer=sgd(0.2), operator=dynavg.Periodic(), **shared)
    assert apart(together, dynavg.serial(optimizer=sgd(0.2 / M), batch="joint", **shared)) > 1e-2
    assert apart(together, dynavg.serial(optimizer=sgd(0.2), **shared)) > 1e-2


def test_t3_the_serial_baseline_is_plain_gradient_descent_on_the_joint_batches():
    """Written out with autograd alone."""
    sizes = [4] * M
    shared = arguments(sizes, model=linear(6, 3, bias=True), loss=F.cross_entropy)
    x, y = classification(ROUNDS * sum(sizes))
    weight = torch.zeros(3, 6, dtype=torch.float64, requires_grad=True)
    bias = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    total = 0.0
    for start in range(0, len(x), sum(sizes)):
        part = slice(start, start + sum(sizes))
        loss = F.cross_entropy(x[part] @ weight.T + bias, y[part])
        total += float(loss.detach()) * sum(sizes)
        slopes = torch.autograd.grad(loss, (weight, bias))
        with torch.no_grad():
            weight -= 0.2 * slopes[0]
            bias -= 0.2 * slopes[1]
    expected = torch.cat([weight.detach().flatten(), bias.detach()])
    serial = dynavg.serial(optimizer=sgd(0.2), batch="joint", **shared)
    together = dynavg.simulate(optimizer=sgd(0.2), operator=dynavg.Periodic(), **shared)
    for result in (serial, together):
        assert float((average(result) - expected).abs().max()) <= 1e-12
        assert result.cumulative_loss == pytest.approx(total, rel=1e-13)


@pytest.mark.parametrize(
    "operator",
    [
        dynavg.Periodic(weights="samples"),
        dynavg.Dynamic(delta=0.0, weights="samples"),
        dynavg.FedAvg(every=1, fraction=1.0, weights="samples"),
    ],
)
def test_t3_with_unequal_batches_the_sample_weights_make_it_hold(operator):
    shared = arguments([1, 2, 9, 4], loss=F.cross_entropy)
    serial = dynavg.serial(optimizer=sgd(0.2), batch="joint", **shared)
    weighted = dynavg.simulate(optimizer=sgd(0.2), operator=operator, **shared)
    assert apart(weighted, serial) <= 1e-12
    equal = dynavg.simulate(optimizer=sgd(0.2), operator=dynavg.Periodic(), **shared)
    assert apart(equal, serial) > 1e-3


def test_t3_holds_with_momentum_kept_across_averages():
    """Local momenta are linear in the gradients, so their mean is the serial momentum."""
    shared = arguments([4] * M, loss=F.cross_entropy)
    momentum = sgd(0.05, momentum=0.9, weight_decay=1e-3)
    together = dynavg.simulate(optimizer=momentum, operator=dynavg.Periodic(), **shared)
    assert apart(together, dynavg.serial(optimizer=momentum, batch="joint", **shared)) <= 1e-12
    forgetful = dynavg.simulate(
        optimizer=momentum, operator=dynavg.Periodic(), on_sync="reset", **shared
    )
    assert apart(together, forgetful) > 1e-2
