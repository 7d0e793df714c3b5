"""A learning algorithm tried out on a model: schedules, scores, starting points."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from dynavg.learning.initial import initial_rows
from dynavg.learning.program import Learning, make_model, prepare
from dynavg.learning.randomness import Randomness
from dynavg.learning.scoring import default_metric

CPU = torch.device("cpu")
BATCH = torch.ones(4, 3), torch.full((4, 1), 0.5)


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)


def program(model=lambda: nn.Linear(3, 1), batch=BATCH, dtype=None, **learning):
    learning = Learning(F.mse_loss, **{"optimizer": sgd} | learning)
    return prepare(model, learning, batch, seed=0, device=CPU, dtype=dtype)


SCHEDULES = {
    "halved every 3": (
        lambda o: torch.optim.lr_scheduler.StepLR(o, 3, 0.5),
        lambda round: 0.1 * 0.5 ** ((round - 1) // 3),
    ),
    "exponential": (
        lambda o: torch.optim.lr_scheduler.ExponentialLR(o, 0.9),
        lambda round: 0.1 * 0.9 ** (round - 1),
    ),
    "a function": (
        lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda step: 1 / (step + 1)),
        lambda round: 0.1 / round,
    ),
}


@pytest.mark.parametrize(("scheduler", "expected"), SCHEDULES.values(), ids=SCHEDULES.keys())
def test_a_schedule_is_a_table_by_round(scheduler, expected):
    schedule = program(scheduler=scheduler).schedule
    schedule.extend(5)
    schedule.extend(3)  # already there
    schedule.extend(20)
    for round in (20, 1, 7, 3):
        (group,) = schedule.at(round)
        assert group["lr"] == pytest.approx(expected(round), rel=1e-12)
        assert group["momentum"] == 0.9
        assert "params" not in group


def test_a_schedule_holds_settings_of_every_group():
    def grouped(parameters):
        weight, bias = parameters
        return torch.optim.SGD([{"params": [weight]}, {"params": [bias], "lr": 1.0}], lr=0.1)

    made = program(
        optimizer=grouped, scheduler=lambda o: torch.optim.lr_scheduler.StepLR(o, 1, 0.1)
    )
    made.schedule.extend(2)
    assert [group["lr"] for group in made.schedule.at(2)] == pytest.approx([0.01, 0.1])


def test_trying_out_leaves_the_prototype_as_the_factory_made_it():
    def make():
        return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))

    prototype = program(make).prototype
    untouched = make_model(make, seed=0)
    for name, tensor in untouched.state_dict().items():
        assert torch.equal(tensor, prototype.state_dict()[name]), name


def test_no_schedule_and_no_randomness_where_there_is_none():
    made = program()
    assert (made.schedule, made.randomness, made.metric) == (None, Randomness.NONE, None)


def test_batches_are_placed_in_the_models_dtype_except_integers():
    made = program(dtype=torch.float64)
    x, y = made.placed((torch.ones(2, 3), torch.tensor([1, 0])))
    assert (x.dtype, y.dtype) == (torch.float64, torch.int64)
    assert made.layout.dtype == made.initial_row().dtype == torch.float64


METRICS = {  # output, target, correct of it
    "classes": (torch.eye(3), torch.tensor([0, 2, 2]), 2),
    "one logit in a column": (torch.tensor([[3.0], [-1.0]]), torch.tensor([[1.0], [1.0]]), 1),
    "one logit in a row": (torch.tensor([3.0, -1.0]), torch.tensor([1.0, 0.0]), 2),
    "whole numbers as 0 and 1": (torch.tensor([[3.0], [-1.0]]), torch.tensor([[0], [0]]), 1),
    "a logit of exactly 0 says 0": (torch.tensor([0.0]), torch.tensor([0.0]), 1),
}


@pytest.mark.parametrize(("output", "target", "correct"), METRICS.values(), ids=METRICS.keys())
def test_usual_classifications_need_no_metric(output, target, correct):
    assert default_metric(output, target)(output, target) == correct


NO_METRIC = {
    "a regression": (torch.zeros(2, 1), torch.tensor([[0.3], [1.0]])),
    "several logits": (torch.zeros(2, 3), torch.ones(2, 3)),
    "counts": (torch.zeros(2, 1), torch.tensor([[0], [5]])),
    "classes by place": (torch.zeros(2, 3, 4), torch.zeros(2, 4, dtype=torch.int64)),
    "no tensor": ((torch.zeros(2), torch.zeros(2)), torch.zeros(2)),
}


@pytest.mark.parametrize(("output", "target"), NO_METRIC.values(), ids=NO_METRIC.keys())
def test_other_tasks_have_no_usual_metric(output, target):
    assert default_metric(output, target) is None


def test_a_later_batch_with_other_targets_is_not_counted_as_wrong():
    metric = default_metric(torch.zeros(2), torch.tensor([0.0, 1.0]))
    assert torch.as_tensor(metric(torch.zeros(2), torch.tensor([0.2, 1.0]))).isnan()


def test_noise_belongs_to_a_learner_whatever_their_number():
    made = program()
    few, many = initial_rows(made, 2, noise=1.0), initial_rows(made, 5, noise=1.0)
    assert torch.equal(few, many[:2])
    assert not torch.equal(few[0], few[1])
    assert torch.equal(few[:, 3], made.initial_row()[3].expand(2))  # the bias


def test_noise_scales_linearly_and_none_is_the_common_model():
    made = program(dtype=torch.float64)
    common = made.initial_row()
    assert torch.equal(initial_rows(made, 3, 0.0), common.expand(3, -1))
    one, twenty = (initial_rows(made, 3, noise) - common for noise in (1.0, 20.0))
    torch.testing.assert_close(twenty, 20 * one, rtol=1e-12, atol=1e-12)
