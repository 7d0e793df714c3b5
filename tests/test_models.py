"""The paper's networks: their sizes, their shapes, their initial weights."""

import math

import pytest
import torch
from torch import nn

from dynavg import models

NETWORKS = {
    # Counts are summed by hand from the layers: inputs × outputs × kernel + biases.
    "mnist_cnn": (models.mnist_cnn, (1, 28, 28), 10, 320 + 18_496 + 9216 * 128 + 128 + 1290),
    "drift_mlp": (models.drift_mlp, (50,), 1, 50 * 256 + 256 + 256 * 64 + 64 + 64 + 1),
    "driving_net": (models.driving_net, (3, 68, 320), 1, 348_219),
    "logistic": (lambda: models.logistic(7), (7,), 1, 8),
}
every_network = pytest.mark.parametrize(
    ("make", "shape", "outputs", "count"), NETWORKS.values(), ids=NETWORKS.keys()
)


@every_network
def test_a_network_has_the_papers_number_of_weights(make, shape, outputs, count):
    assert sum(parameter.numel() for parameter in make().parameters()) == count


@every_network
def test_a_network_maps_a_batch_to_one_row_per_sample(make, shape, outputs, count):
    assert make()(torch.rand(3, *shape)).shape == (3, outputs)


@every_network
def test_weights_fill_glorots_interval_and_biases_are_zero(make, shape, outputs, count):
    torch.manual_seed(0)
    for layer in make().modules():
        if not isinstance(layer, nn.Linear | nn.Conv2d):
            continue
        kernel = math.prod(layer.kernel_size) if isinstance(layer, nn.Conv2d) else 1
        limit = math.sqrt(6 / (kernel * (layer.weight.shape[0] + layer.weight.shape[1])))
        largest = layer.weight.abs().max().item()
        assert largest <= limit
        if layer.weight.numel() >= 1000:
            # The standard deviation of U(−a, a) is a/√3.
            assert largest >= 0.98 * limit
            assert layer.weight.std().item() == pytest.approx(limit / math.sqrt(3), rel=0.1)
        assert not layer.bias.any()


def test_the_same_seed_gives_the_same_weights_and_another_seed_others():
    def first_weight(seed):
        torch.manual_seed(seed)
        return next(models.drift_mlp().parameters())

    assert torch.equal(first_weight(1), first_weight(1))
    assert not torch.equal(first_weight(1), first_weight(2))


def test_glorots_limit_counts_the_kernels_places_in_both_fans():
    # fan_in = 2·9, fan_out = 4·9; √(6 / 54) = 1/3.
    assert models.glorot_limit(torch.empty(4, 2, 3, 3)) == pytest.approx(1 / 3)


def test_glorots_limit_of_a_bias_is_an_error():
    with pytest.raises(ValueError, match="two or more dimensions, but has 1"):
        models.glorot_limit(torch.empty(4))


def test_glorot_leaves_a_layer_without_bias_without_one():
    layer = models.glorot_(nn.Linear(3, 2, bias=False))
    assert [name for name, _ in layer.named_parameters()] == ["weight"]


def test_the_driving_network_centres_its_pictures():
    network = models.driving_net().eval()
    grey = torch.full((1, 3, 68, 320), 0.5)
    # Grey becomes zero; with zero biases nothing comes out.
    assert network(grey).item() == 0
    assert network(torch.ones_like(grey)).item() != 0
