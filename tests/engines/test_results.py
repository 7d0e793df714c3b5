"""What a result says: accuracy, bytes, seconds, frames, models, notes."""

import numpy as np
import polars as pl
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from dynavg import Dynamic, FedAvg, Periodic
from dynavg.protocol.wire import HEADER_BYTES
from tests.engines.problems import classification, losses, regression, run, sgd, vector


def still(parameters):
    return torch.optim.SGD(parameters, lr=0.0)


class Given(nn.Module):
    """The input is the output, beside one weight of zero."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return x + self.weight


def scored(rows, targets):
    return torch.tensor(rows), torch.tensor(targets)


CLASSES = [
    [  # 1 of 2, 2 of 2, 0 of 1
        scored([[1.0, 0.0], [1.0, 0.0]], [0, 1]),
        scored([[0.0, 3.0], [0.0, 1.0]], [1, 1]),
        scored([[0.0, 3.0]], [0]),
    ],
    [  # 0 of 1, 1 of 1, 3 of 3
        scored([[0.0, 1.0]], [0]),
        scored([[0.0, 1.0]], [1]),
        scored([[1.0, 0.0]] * 3, [0, 0, 0]),
    ],
]


def given(streams, loss=F.cross_entropy, **changes):
    return run(model=Given, optimizer=still, loss=loss, streams=streams, rounds=3, **changes)


@pytest.mark.parametrize(
    ("last", "expected"),
    [(None, 7 / 10), (1, 3 / 4), (2, 5 / 6), (3, 5 / 6), (4, 7 / 9), (5, 7 / 10), (1000, 7 / 10)],
)
def test_accuracy_counts_the_last_samples_of_each_learner_in_whole_batches(last, expected):
    # last=2: 1 + 2 samples of the first learner (2 correct), 3 of the second (3 correct).
    assert given(CLASSES).accuracy(last=last) == pytest.approx(expected)


@pytest.mark.parametrize("last", [0, -1, 1.5, True, "5"])
def test_the_last_samples_are_a_whole_number(last):
    with pytest.raises((TypeError, ValueError), match=r"accuracy\(last=.*a whole number >= 1"):
        given(CLASSES).accuracy(last=last)


@pytest.mark.parametrize("column", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool])
def test_one_logit_is_correct_on_its_targets_side(column, dtype):
    logits = torch.tensor([2.0, -1.0, 0.5, -3.0])
    targets = torch.tensor([1, 0, 0, 1]).to(dtype)
    batch = (logits[:, None], targets[:, None]) if column else (logits, targets)

    def loss(output, target):
        return F.binary_cross_entropy_with_logits(output, target.to(output))

    assert given([[batch] * 3], loss).accuracy() == 0.5


def test_a_regression_asks_for_a_metric():
    with pytest.raises(ValueError, match=r"counted no correct predictions.*pass metric="):
        run().accuracy()


def test_a_regression_whose_first_targets_are_zeros_and_ones_asks_for_a_metric_too():
    streams = regression(rounds=3)
    streams[0][0] = streams[0][0][0], torch.zeros(4, 1)
    with pytest.raises(ValueError, match="pass metric="):
        run(streams=streams, rounds=3).accuracy()


@pytest.mark.parametrize("kind", [float, torch.tensor])
def test_an_own_metric_counts(kind):
    result = run(metric=lambda output, target: kind(float(len(target) - 1)))
    assert result.accuracy() == 0.75
    assert result.history.rounds["correct"].to_list() == [3.0] * 18


def test_a_metric_replaces_the_usual_one():
    assert given(CLASSES, metric=lambda output, target: 0.0).accuracy() == 0


def test_losses_are_of_the_model_before_its_update_and_add_up():
    streams = regression(learners=2, rounds=2, batch=[1, 3])
    result = run(streams=streams, rounds=2)
    with torch.random.fork_rng():
        torch.manual_seed(3)
        start = nn.Linear(3, 1)
    expected = [F.mse_loss(start(x), y, reduction="sum").item() for ((x, y), _) in streams]
    assert losses(result)[:, 0] == pytest.approx(expected)
    assert result.cumulative_loss == pytest.approx(losses(result).sum(dtype=float))
    assert result.loss_per_learner == result.cumulative_loss / 2
    assert (result.samples, result.rounds, result.learners) == (8, 2, 2)


def test_frames_have_a_row_per_learner_and_round_per_check_and_per_message():
    result = run(operator=Periodic(2), evaluate=(regression(1)[0][0], 3))
    rounds, checks, ledger = result.history.rounds, result.history.checks, result.ledger
    assert rounds.columns == ["round", "learner", "loss", "samples"]
    assert rounds["round"].to_list() == [t for t in range(1, 7) for _ in range(3)]
    assert rounds["learner"].to_list() == [0, 1, 2] * 6
    assert checks["round"].to_list() == [2, 4, 6]
    assert checks["cause"].to_list() == ["scheduled"] * 3
    assert checks["full"].to_list() == [True] * 3
    assert checks["balancing_set"].to_list() == [3] * 3
    assert checks["stages"].to_list() == [[[0, 1, 2]]] * 3
    assert checks["distance_max"].to_list() == [None] * 3
    assert checks["divergence_before"].to_list() == [None] * 3
    assert ledger.columns[:4] == ["round", "type", "sender", "receiver"]
    assert ledger["type"].to_list() == (["reply"] * 3 + ["model"] * 3) * 3
    assert ledger["sender"].to_list() == [0, 1, 2, -1, -1, -1] * 3
    assert ledger["bytes"].to_list() == [16 + HEADER_BYTES] * 18
    assert ledger["bytes"].sum() == checks["bytes"].sum() == result.bytes()
    assert result.history.evaluations.columns == ["round", "loss", "accuracy"]


def test_classifications_have_a_column_of_correct_predictions():
    frame = given(CLASSES).history.rounds
    assert frame.columns == ["round", "learner", "loss", "samples", "correct"]
    assert frame["correct"].to_list() == [1, 0, 2, 1, 0, 3]


def test_frames_without_rows_keep_their_columns_and_types():
    quiet, busy = run(), run(operator=Dynamic(0.01), divergence=True)
    assert quiet.history.checks.is_empty()
    assert quiet.history.checks.schema == busy.history.checks.schema
    assert quiet.history.evaluations.schema["loss"] == pl.Float64
    assert quiet.ledger.is_empty()
    assert quiet.ledger.schema == busy.ledger.schema


def test_views_of_the_bytes():
    result = run(operator=FedAvg(every=3, fraction=0.5))  # 2 of 3 learners, 2 checks
    model, header = 16, HEADER_BYTES
    assert result.bytes() == result.bytes(view="total") == 2 * (2 * header + 4 * (header + model))
    assert result.bytes(view="models_only") == 2 * 4 * model
    assert result.bytes(view="uplink") == 2 * 2 * (header + model)
    assert result.bytes(view="messages") == 2 * 6
    assert type(result.bytes()) is int
    with pytest.raises(ValueError, match=r"uplinks.*allowed: total, models_only, uplink, messages"):
        result.bytes(view="uplinks")


def test_the_model_is_the_average_of_the_models():
    result = run(dtype=torch.float64)
    mean = torch.stack([vector(module) for module in result.models()]).mean(0)
    torch.testing.assert_close(vector(result.model()), mean, rtol=1e-15, atol=1e-15)


def test_models_are_a_sequence_of_modules_of_their_own():
    models = run(streams=regression(learners=4)).models()
    assert len(models) == len(list(models)) == 4
    assert torch.equal(vector(models[-1]), vector(models[3]))
    assert [vector(m).tolist() for m in models[1:3]] == [vector(models[i]).tolist() for i in (1, 2)]
    nn.init.zeros_(models[0].weight)
    assert models[0].weight.any()
    with pytest.raises(IndexError):
        models[4]


def test_a_result_says_what_it_is():
    text = repr(run(operator=Periodic(2)))
    assert "Periodic(every=2" in text
    assert "3 learners, 6 rounds" in text


def test_accuracy_and_losses_of_a_real_classification_rise_and_fall():
    result = run(
        model=lambda: nn.Linear(3, 3),
        loss=F.cross_entropy,
        optimizer=sgd,
        streams=classification(rounds=80, batch=10),
        rounds=80,
        operator=Periodic(5),
    )
    assert result.accuracy(last=100) > result.accuracy() > 1 / 3
    assert np.mean(losses(result)[:, -10:]) < np.mean(losses(result)[:, :10])
