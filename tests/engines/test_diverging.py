"""A learner that is not finite any more stops the run with its id and the exact round."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import dynavg
from dynavg import DivergedError, Dynamic, FedAvg, NoSync, Periodic
from tests.engines.problems import regression, run, seeded

OPERATORS = {
    "nosync": NoSync(),
    "periodic": Periodic(1),
    "periodic, rarely": Periodic(50),
    "fedavg": FedAvg(every=1, fraction=0.5),
    "dynamic": Dynamic(delta=0.1),
    "dynamic, never": Dynamic(delta=torch.inf),
    "Algorithm 2": Dynamic(delta=0.1, every=3, weights="samples"),
}


def poisoned(places, learners=10, rounds=8, value=torch.nan):
    """Streams in which these (learner, round) have a bad input."""
    streams = regression(learners=learners, rounds=rounds)
    for learner, round in places:
        x, y = streams[learner][round - 1]
        x = x.clone()
        x[1, 2] = value
        streams[learner][round - 1] = x, y
    return streams


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
@pytest.mark.parametrize("name", OPERATORS)
def test_an_input_that_is_not_finite_is_reported_in_its_round(name, value):
    with pytest.raises(DivergedError, match="learner 4 diverged in round 5: its loss") as caught:
        run(
            streams=poisoned([(4, 5)], value=value),
            rounds=8,
            operator=OPERATORS[name],
            workers=2,
        )
    assert (caught.value.learner, caught.value.round) == (4, 5)


@pytest.mark.parametrize("name", ["nosync", "periodic, rarely", "dynamic, never"])
def test_of_several_learners_the_earliest_is_named_whatever_its_shard(name):
    # Learner 9 lives in another shard than learner 1, and all rounds run in one go.
    places = [(1, 6), (9, 3), (8, 7)]
    with pytest.raises(DivergedError) as caught:
        run(streams=poisoned(places), rounds=8, operator=OPERATORS[name], workers=2)
    assert (caught.value.learner, caught.value.round) == (9, 3)


def test_in_one_round_the_first_learner_is_named():
    with pytest.raises(DivergedError, match="learner 3 diverged in round 2"):
        run(streams=poisoned([(9, 2), (3, 2), (5, 2)]), rounds=8)


class Exploding(nn.Module):
    """Linear, and a weight whose gradient is not finite where an input is larger than 90."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 1)
        self.root = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        bad = (x.detach() > 90).any()
        output = self.linear(x.clamp(max=1.0))
        return output + self.root.abs().sqrt() if bad else output


def exploding_at(learner, round, rounds=6):
    streams = regression(learners=10, rounds=rounds)
    x, y = streams[learner][round - 1]
    streams[learner][round - 1] = torch.full_like(x, 99.0), y
    return {"model": seeded(Exploding), "streams": streams, "rounds": rounds}


@pytest.mark.parametrize("name", OPERATORS)
def test_a_model_that_breaks_in_the_last_round_is_reported_in_that_round(name):
    expected = "learner 6 diverged in round 6: its model is not finite"
    with pytest.raises(DivergedError, match=expected):
        run(operator=OPERATORS[name], **exploding_at(6, 6))


@pytest.mark.parametrize("name", ["periodic", "dynamic", "dynamic, never"])
def test_a_model_that_breaks_before_a_check_is_not_averaged(name):
    checks = []
    with pytest.raises(DivergedError, match="learner 2 diverged in round 3: its model"):
        run(operator=OPERATORS[name], callbacks=[checks.append], **exploding_at(2, 3))
    assert [check.record.round for check in checks] == [1, 2]


def test_a_broken_model_without_a_check_shows_in_the_next_rounds_loss():
    problem = exploding_at(2, 3)
    x, y = problem["streams"][2][3]
    problem["streams"][2][3] = torch.full_like(x, 99.0), y  # the broken weight is looked at again
    with pytest.raises(DivergedError, match="learner 2 diverged in round 4: its loss"):
        run(operator=NoSync(), **problem)


def test_a_learner_that_is_not_drawn_is_found_at_the_end():
    for seed in range(20):
        drawn = dynavg.simulate(
            model=seeded(Exploding),
            loss=F.mse_loss,
            optimizer=lambda p: torch.optim.SGD(p, lr=0.1),
            streams=regression(learners=10, rounds=6),
            operator=FedAvg(every=6, fraction=0.2),
            rounds=6,
            seed=seed,
        ).ledger.filter(type="query")["receiver"]
        if 6 not in drawn:
            break
    with pytest.raises(DivergedError, match="learner 6 diverged in round 6: its model"):
        run(operator=FedAvg(every=6, fraction=0.2), seed=seed, **exploding_at(6, 6))


def test_a_learning_rate_that_is_too_large_names_likely_causes():
    with pytest.raises(DivergedError, match=r"learning rate.*normalised.*clip=1\.0"):
        run(optimizer=lambda p: torch.optim.SGD(p, lr=1e20), operator=Periodic(2))


def test_numbers_whose_sum_or_square_overflows_are_no_divergence():
    def huge():
        layer = nn.Linear(3, 1, bias=False)
        nn.init.constant_(layer.weight, 3e38)
        return layer

    result = run(
        model=huge,
        loss=lambda output, target: (output * 0).sum() + target.sum() * 0,
        operator=Dynamic(delta=1.0),
        streams=[[(torch.zeros(1, 3), torch.zeros(1, 1))] * 2] * 2,
        rounds=2,
    )
    assert result.model().weight.tolist() == [[np.float32(3e38)] * 3]


def test_a_serial_runs_divergence_names_the_stream_and_its_round():
    arguments = {"model": seeded(lambda: nn.Linear(3, 1)), "loss": F.mse_loss, "rounds": 8}
    arguments["optimizer"] = lambda p: torch.optim.SGD(p, lr=0.1)
    streams = poisoned([(4, 5)])
    with pytest.raises(DivergedError, match="learner 4 diverged in round 5"):
        dynavg.serial(streams=streams, **arguments)
    with pytest.raises(DivergedError, match="round 5"):
        dynavg.serial(streams=streams, batch="joint", **arguments)
