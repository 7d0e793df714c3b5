"""How a module's tensors lie in one row."""

import copy

import pytest
import torch
from torch import nn

from dynavg.learning.layout import Layout


class Sample(nn.Module):
    """Parameters, a frozen one, a shared one; buffers of all kinds."""

    def __init__(self, width=3):
        super().__init__()
        self.linear = nn.Linear(2, width)
        self.frozen = nn.Parameter(torch.ones(5), requires_grad=False)
        self.norm = nn.BatchNorm1d(2, affine=False)
        self.tied = nn.Linear(2, width, bias=False)
        self.tied.weight = self.linear.weight
        self.scale = nn.Parameter(torch.tensor(7.0))
        self.register_buffer("mask", torch.tensor([0.0, -torch.inf]))


def test_parameters_come_first_then_floating_buffers_each_once():
    layout = Layout.of(Sample())
    assert layout.names == ("scale", "linear.weight", "linear.bias")
    assert layout.shapes == ((), (3, 2), (3,))
    assert layout.buffer_names == ("norm.running_mean", "norm.running_var")
    assert (layout.parameters, layout.width) == (10, 14)


def test_a_module_goes_into_a_row_and_back():
    module = Sample()
    layout = Layout.of(module)
    row = torch.full((14,), torch.nan)
    layout.write(module, row)
    weight, bias = module.linear.weight.flatten().tolist(), module.linear.bias.tolist()
    assert row.tolist() == [7.0, *weight, *bias, 0, 0, 1, 1]
    other = Sample()
    nn.init.zeros_(other.frozen)
    layout.read(torch.arange(14.0), other)
    assert other.scale.item() == 0
    assert other.linear.weight.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert other.tied.weight is other.linear.weight
    assert other.linear.bias.tolist() == [7, 8, 9]
    assert other.norm.running_var.tolist() == [12, 13]
    assert not other.frozen.any()


def test_views_share_the_rows_memory():
    layout, row = Layout.of(Sample()), torch.zeros(14)
    for number, view in enumerate(layout.views(row)):
        view.fill_(number)
    assert row.tolist() == [0, *[1] * 6, *[2] * 3, 3, 3, 4, 4]


def test_counters_and_masks_lie_elsewhere_even_when_their_values_change():
    module = Sample()
    layout = Layout.of(module)
    later = copy.deepcopy(module)
    later.mask.zero_()
    later.norm.running_mean.fill_(torch.inf)
    for each in (module, later):
        assert layout.counters(each) == [each.mask, each.norm.num_batches_tracked]
        assert layout.slots(each)[3] is each.norm.running_mean


def changed(change):
    module = Sample()
    change(module)
    return module


def rename(module):
    module.factor = module.scale
    del module.scale


OTHERS = {
    "a shape": lambda: Sample(width=4),
    "the dtype": lambda: Sample().double(),
    "a name": lambda: changed(rename),
    "what is trained": lambda: changed(lambda module: module.frozen.requires_grad_()),
    "a buffer": lambda: changed(lambda m: m.register_buffer("more", torch.zeros(1))),
}


@pytest.mark.parametrize("name", OTHERS)
def test_the_signature_tells_networks_apart(name):
    assert Layout.of(OTHERS[name]()).signature != Layout.of(Sample()).signature


def test_the_signature_depends_on_no_values_and_fits_its_field():
    one, other = Layout.of(Sample()), Layout.of(changed(lambda m: nn.init.zeros_(m.linear.weight)))
    assert one.signature == other.signature
    assert 0 < one.signature < 2**64


def test_a_module_without_trainable_parameters_has_no_layout():
    with pytest.raises(ValueError, match="ReLU has no trainable parameters to average"):
        Layout.of(nn.ReLU())


@pytest.mark.parametrize("part", ["scale", "norm"])
def test_mixed_dtypes_name_the_odd_one(part):
    module = Sample()
    if part == "scale":
        module.linear.double()
        text = "linear.weight is torch.float64, the first parameter is torch.float32"
    else:
        module.norm.double()
        text = "norm.running_mean is torch.float64"
    with pytest.raises(TypeError, match=text):
        Layout.of(module)
