"""Mistakes in data and networks: shapes, streams that end, buffers that move."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from dynavg import Periodic
from tests.engines.problems import classification, regression, run

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


def test_an_iterator_that_ends_early_names_learner_and_batch():
    streams = [iter(stream) for stream in regression(learners=3, rounds=6)]
    streams[2] = iter(regression(learners=1, rounds=4)[0])
    with pytest.raises(ValueError, match=r"learner 2, batch 5: .*ended after 4 batches"):
        run(streams=streams)
