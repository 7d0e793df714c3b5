"""Mistakes in data and networks: shapes, streams that end, buffers that move."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from dynavg import Periodic
from tests.engines.problems import classification, regression, run, seeded

X, Y = (torch.cat(part) for part in zip(*regression(1)[0], strict=True))


SHAPES = {
    "a column and a row": ((4, 1), (4,), torch.float32),
    "a row and a column": ((4,), (4, 1), torch.float32),
    "one output for three targets": ((4, 1), (4, 3), torch.float32),
    "a column and integers in a row": ((4, 1), (4,), torch.int64),
    "a sample of one": ((1, 3), (1, 1), torch.float32),
}


@pytest.mark.parametrize(("output", "target", "dtype"), SHAPES.values(), ids=SHAPES.keys())
def test_shapes_that_would_broadcast_are_refused(output, target, dtype):
    class Shaped(nn.Linear):
        def forward(self, x):
            return super().forward(x)[:, : output[1]] if output[1:] else super().forward(x)[:, 0]

    batch = torch.zeros(output[0], 3), torch.zeros(target, dtype=dtype)
    with pytest.raises(ValueError, match="a loss would broadcast them") as caught:
        run(
            model=lambda: Shaped(3, 3),
            streams=[[batch]],
            rounds=1,
            loss=lambda output, target: ((output - target) ** 2).mean(),
        )
    assert f"{output}, the target {target}" in str(caught.value)


def test_a_shape_that_changes_later_names_learner_and_round():
    streams = regression(learners=2)
    x, y = streams[1][3]
    streams[1][3] = x, y[:, 0]
    with pytest.raises(ValueError, match="would broadcast") as caught:
        run(streams=streams)
    assert caught.value.__notes__ == ["raised by learner 1 in round 4"]


def test_class_targets_beside_class_scores_are_no_broadcast():
    run(model=lambda: nn.Linear(3, 3), loss=F.cross_entropy, streams=classification(batch=3))


def test_a_models_own_error_passes_unchanged():
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        run(model=lambda: nn.Linear(4, 1))


def test_held_out_data_that_does_not_fit_is_found_before_the_first_round():
    checks = []
    with pytest.raises(RuntimeError, match="cannot be multiplied") as caught:
        run(evaluate=((X[:, :2], Y), 6), operator=Periodic(1), callbacks=[checks.append])
    assert not checks
    assert "evaluate=(dataset, every)" in caught.value.__notes__[0]


def test_a_buffer_that_forward_replaces_is_refused_by_name():
    class Rebinding(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 1)
            self.register_buffer("running", torch.zeros(1))

        def forward(self, x):
            self.running = 0.9 * self.running + 0.1 * x.mean()
            return self.linear(x)

    with pytest.raises(TypeError, match=r"new tensor into running.*self\.running\.copy_"):
        run(model=Rebinding)


class Remembering(nn.Linear):
    """Keeps a value of each kind among its attributes."""

    def __init__(self, name, value):
        super().__init__(3, 1)
        self.inner = nn.Identity()
        self.name, self.value = name, value
        self.inner.count, self.inner.met, self.inner.size = 0, False, 0

    def forward(self, x):
        setattr(self.inner, self.name, self.value(self.inner, x))
        return super().forward(x)


@pytest.mark.parametrize(
    ("name", "value", "change"),
    [
        ("count", lambda module, x: module.count + 1, "from 0 to 1"),
        ("met", lambda module, x: True, "from False to True"),
    ],
)
def test_a_value_that_all_learners_would_share_is_refused_by_name(name, value, change):
    """Which learner finds what which other has left there depends on the number of workers."""
    with pytest.raises(TypeError, match=rf"inner\.{name} \({change}\).*register_buffer\('{name}'"):
        run(model=lambda: Remembering(name, value))


def test_a_size_that_the_forward_pass_notes_is_nothing_to_remember():
    run(model=lambda: Remembering("size", lambda module, x: len(x)))


class Carrying(nn.Linear):
    """Leaves its output among its attributes, where `use` may find it in the next round."""

    def __init__(self, use, kept=lambda output: output.detach()):
        super().__init__(3, 1)
        self.use, self.kept = use, kept
        self.before = torch.zeros(4, 1)

    def forward(self, x):
        output = super().forward(x)
        if self.use:
            output = output + torch.as_tensor(self.before[0])
        self.before = self.kept(output)
        return output


@pytest.mark.parametrize(
    "kept",
    [lambda output: output.detach(), lambda output: output, lambda output: (output.detach()[0],)],
    ids=["a tensor", "a tensor with its graph", "a tuple"],
)
def test_a_state_that_goes_from_batch_to_batch_is_refused_unless_it_is_a_buffer(kept):
    with pytest.raises(TypeError, match=r"leaves something in before that the next batch depends"):
        run(model=lambda: Carrying(use=True, kept=kept))
    run(model=lambda: Carrying(use=False, kept=kept))  # what nobody reads harms nobody


@pytest.mark.parametrize("register", ["register_hook", "register_post_accumulate_grad_hook"])
def test_a_hook_that_copies_of_the_network_would_lack_is_refused(register):
    def hooked():
        layer = nn.Linear(3, 1)
        getattr(layer.weight, register)(lambda tensor: None)
        return layer

    with pytest.raises(TypeError, match="weight has a hook, which no copy of the network would"):
        run(model=hooked)


def test_a_hook_of_a_module_is_kept():
    """Ten times the gradient with a tenth of the rate is the same step."""

    def hooked():
        layer = nn.Linear(3, 1)
        layer.register_forward_hook(
            lambda module, inputs, output: 10 * output - 9 * output.detach()
        )
        return layer

    plain = run()
    tenfold = run(model=seeded(hooked), optimizer=lambda p: torch.optim.SGD(p, lr=0.01))
    torch.testing.assert_close(tenfold.rows, plain.rows)


def test_an_iterator_that_ends_early_names_learner_and_batch():
    streams = [iter(stream) for stream in regression(learners=3, rounds=6)]
    streams[2] = iter(regression(learners=1, rounds=4)[0])
    with pytest.raises(ValueError, match=r"learner 2, batch 5: .*ended after 4 batches"):
        run(streams=streams)
