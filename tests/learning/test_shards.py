"""A shard: learners as rows of one matrix. Every shard kind runs through these."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from dynavg.data import as_streams
from dynavg.learning.fused import Fused
from dynavg.learning.initial import initial_rows
from dynavg.learning.looped import Looped
from dynavg.learning.program import Learning, prepare
from dynavg.learning.stacked import Stacked
from tests.engines.problems import regression, seeded

SHARDS = ("looped", "fused", "stacked")
CPU = torch.device("cpu")
P = 3 * 4 + 4 + 4 + 1


def perceptron():
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Dropout(0.2), nn.Linear(4, 1))


def normalised():
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4, affine=False), nn.Linear(4, 1))


def adam(parameters):
    return torch.optim.Adam(parameters, lr=0.05)


def made(kind, learners=3, ids=None, optimizer=adam, rounds=8, model=perceptron, on_sync="keep"):
    streams = as_streams(regression(learners=learners, rounds=rounds))
    learning = Learning(F.mse_loss, optimizer)
    batch = streams.at(0, 1)
    program = prepare(seeded(model), learning, batch, seed=0, device=CPU, dtype=None)
    ids = ids or range(learners)
    rows = initial_rows(program, learners, noise=1.0)[ids.start : ids.stop]
    if kind == "stacked":
        return Stacked(program, streams, ids, rows)
    return (Fused if kind == "fused" else Looped)(program, streams, ids, rows, on_sync)


@pytest.fixture(params=SHARDS)
def kind(request):
    """Which kind of shard; what holds for all runs through all."""
    return request.param


def test_rounds_in_one_go_or_in_pieces_are_the_same(kind):
    whole, pieces = made(kind), made(kind)
    trace = whole.run(1, 8)
    parts = [pieces.run(1, 1), pieces.run(2, 5), pieces.run(6, 8)]
    assert torch.equal(trace.losses, torch.cat([part.losses for part in parts], 1))
    assert torch.equal(whole.rows, pieces.rows)
    assert trace.samples.tolist() == [[4] * 8] * 3
    assert trace.correct is None


def test_a_block_of_learners_does_what_it_does_among_all(kind):
    everybody, block = made(kind, 5), made(kind, 5, ids=range(2, 4))
    trace, own = everybody.run(1, 8), block.run(1, 8)
    torch.testing.assert_close(trace.losses[2:4], own.losses)
    torch.testing.assert_close(everybody.rows[2:4], block.rows)


def test_a_shard_writes_into_the_matrix_that_it_was_given(kind):
    shard = made(kind)
    rows, address = shard.rows, shard.rows.data_ptr()
    before = rows.clone()
    shard.run(1, 2)
    assert (shard.rows is rows, rows.data_ptr()) == (True, address)
    assert not torch.equal(rows, before)


def test_distances_are_over_parameters_only():
    shard = made("looped", model=normalised)
    shard.run(1, 3)
    assert shard.rows.shape == (3, P + 8)
    reference = torch.zeros(P + 8)
    expected = (shard.rows[:, :P].double() ** 2).sum(1)
    np.testing.assert_allclose(shard.distances(reference), expected, rtol=1e-5)
    reference[P:] = 1e6
    np.testing.assert_allclose(shard.distances(reference), expected, rtol=1e-5)


def test_export_is_a_view_of_a_learners_row(kind):
    shard = made(kind, 5, ids=range(2, 4))
    shard.export(3, 5).fill_(7.0)
    assert shard.rows[1, :5].tolist() == [7.0] * 5
    assert (shard.rows[0] != 7).all()


def test_install_gives_a_model_to_those_named(kind):
    shard = made(kind, 5, ids=range(2, 5))
    before = shard.rows.clone()
    shard.install([2, 4], torch.arange(20.0))
    assert shard.rows[[0, 2], :20].tolist() == [list(range(20))] * 2
    assert torch.equal(shard.rows[1], before[1])
    assert torch.equal(shard.rows[:, 20:], before[:, 20:])


def test_install_keeps_the_progress_made_since_a_model_was_sent(kind):
    shard = made(kind)
    shard.rows[0, :3] = torch.tensor([5.0, 6.0, 7.0])
    shard.install([0], torch.tensor([10.0, 10.0, 10.0]), since=torch.tensor([4.0, 4.0, 9.0]))
    assert shard.rows[0, :3].tolist() == [11.0, 12.0, 8.0]


@pytest.mark.parametrize("on_sync", ["keep", "reset"])
def test_install_resets_the_optimiser_of_those_named_if_told(on_sync):
    shard = made("looped", on_sync=on_sync)
    shard.run(1, 3)
    shard.install([1], shard.rows[1].clone())  # its own model
    kept = {name.split("/")[1] for name in shard.tensors() if not name.startswith("counter/")}
    assert kept == ({"0", "2"} if on_sync == "reset" else {"0", "1", "2"})


OPTIMIZERS = {
    "Adam": adam,
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "NAdam": lambda p: torch.optim.NAdam(p, lr=0.05),
    "Adagrad": lambda p: torch.optim.Adagrad(p, lr=0.05),
}


PAIRS = [
    *((kind, name) for kind in ("looped", "fused") for name in OPTIMIZERS),
    *(("stacked", name) for name in ("Adam", "SGD", "momentum")),
]


@pytest.mark.parametrize(("kind", "name"), PAIRS)
def test_a_shard_goes_on_from_its_tensors_as_if_nothing_had_happened(kind, name):
    shard, other = (made(kind, optimizer=OPTIMIZERS[name]) for _ in range(2))
    shard.run(1, 3)
    tensors = {name: tensor.clone() for name, tensor in shard.tensors().items()}
    other.run(1, 7)  # whatever it has been through before
    other.rows.copy_(shard.rows)
    other.load(tensors)
    assert torch.equal(shard.run(4, 8).losses, other.run(4, 8).losses)
    assert torch.equal(shard.rows, other.rows)
    assert other.tensors().keys() == shard.tensors().keys()


def test_counters_are_each_learners_own_and_go_with_its_tensors():
    shard, other = made("looped", model=normalised), made("looped", model=normalised)
    shard.run(1, 3)
    other.load(shard.tensors())
    for each in (shard, other):
        assert [counter.item() for id in range(3) for counter in each.counters(id)] == [3] * 3
    assert len({counter.data_ptr() for id in range(3) for counter in shard.counters(id)}) == 3


def test_loading_takes_back_learners_who_had_no_state_yet(kind):
    fresh, used = made(kind), made(kind)
    used.run(1, 4)
    used.load(fresh.tensors())
    used.rows.copy_(fresh.rows)
    assert torch.equal(fresh.run(1, 3).losses, used.run(1, 3).losses)


def test_an_error_names_learner_and_round_and_keeps_its_type():
    streams = regression()
    streams[1][2] = (torch.zeros(4, 2), torch.zeros(4, 1))
    shard = made("looped")
    shard.streams = as_streams(streams)
    with pytest.raises(RuntimeError, match="cannot be multiplied") as caught:
        shard.run(1, 6)
    assert caught.value.__notes__ == ["raised by learner 1 in round 3"]
