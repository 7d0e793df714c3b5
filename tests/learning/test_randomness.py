"""Random functions keyed to a place: the right statistics, and nothing else decides."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from dynavg.learning.randomness import KeyedRandom, Randomness, keep_mask, probe


def drawn(work, learner=0, round=1, seed=0):
    mode = KeyedRandom(seed)
    mode.aim(learner, round)
    with mode:
        return work()


@pytest.mark.parametrize("p", [0.1, 0.25, 0.5, 0.9, 0.999])
def test_a_mask_drops_with_probability_p_and_the_factor_keeps_the_mean(p):
    n = 400_000
    keep, factor = keep_mask((n,), p, seed=0, learner=1, round=2, call=3)
    dropped = 1 - keep.double()
    assert abs(dropped.mean().item() - p) < 5 * (p * (1 - p) / n) ** 0.5 + 2**-17
    assert factor * (1 - p) == pytest.approx(1, abs=2**-17 / (1 - p) * 1.01)
    for lag in (1, 2, 3, 4, 7, 8):  # several share a 64-bit word
        both = (dropped[:-lag] * dropped[lag:]).mean().item()
        assert abs(both - p * p) < 5 * (p * p * (1 - p * p) / n) ** 0.5 + 2**-16


@pytest.mark.parametrize("p", [0.5, 0.25, 0.125])
def test_usual_probabilities_are_exact(p):
    assert keep_mask((1,), p, 0, 0, 0, 0)[1] == 1 / (1 - p)


def test_a_mask_hangs_on_each_of_its_coordinates():
    places = {"seed": 0, "learner": 1, "round": 2, "call": 3}
    mask, _ = keep_mask((64,), 0.5, **places)
    assert torch.equal(mask, keep_mask((64,), 0.5, **places)[0])
    for name in places:
        assert not torch.equal(mask, keep_mask((64,), 0.5, **places | {name: 9})[0])


@pytest.mark.parametrize("p", [0.1, 0.5])
@pytest.mark.parametrize("shape", [(), (1,), (3,), (5, 7), (0, 4), (2, 1, 3)])
def test_masks_have_any_shape(shape, p):
    assert keep_mask(shape, p, 0, 0, 0, 0)[0].shape == shape


X = torch.ones(6, 5)


def test_dropout_scales_what_it_keeps_and_its_gradient_alike():
    x = torch.full((40, 50), 3.0, requires_grad=True)
    out = drawn(lambda: F.dropout(x, 0.5))
    assert set(out.flatten().tolist()) == {0.0, 6.0}
    out.sum().backward()
    assert torch.equal(x.grad * 3, out.detach())


def test_each_call_of_a_round_draws_anew_and_each_round_starts_anew():
    def twice():
        return F.dropout(X), F.dropout(X)

    first, second = drawn(twice)
    assert not torch.equal(first, second)
    assert all(map(torch.equal, (first, second), drawn(twice)))
    assert not torch.equal(first, drawn(twice, round=2)[0])
    assert not torch.equal(first, drawn(twice, learner=1)[0])
    assert not torch.equal(first, drawn(twice, seed=1)[0])


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("training", [True, False])
def test_dropout_in_place_writes_into_its_input(p, training):
    x = torch.ones(6, 5)
    out = drawn(lambda: F.dropout(x, p, training, inplace=True))
    assert out.data_ptr() == x.data_ptr()
    assert torch.equal(out, drawn(lambda: F.dropout(X, p, training)))


@pytest.mark.parametrize("dropout", [F.dropout, F.dropout1d, F.dropout2d, F.dropout3d])
def test_dropout_that_drops_all_or_nothing_draws_nothing(dropout):
    shape = {F.dropout1d: (2, 3, 4), F.dropout2d: (2, 3, 4, 4), F.dropout3d: (2, 3, 4, 4, 4)}
    x = torch.ones(shape.get(dropout, (2, 3)))
    mode = KeyedRandom(0)
    with mode:
        assert torch.equal(dropout(x, 0.0), x)
        assert not dropout(x, 1.0).any()
        assert torch.equal(dropout(x, 0.5, training=False), x)
        with pytest.raises(ValueError, match="between 0 and 1"):
            dropout(x, 1.5)
    assert mode.calls == 0


CHANNELS = {  # function, input, shape of what is dropped as a whole
    "dropout1d": (F.dropout1d, (30, 40, 3), (1, 1, 3)),
    "dropout1d of one sample": (F.dropout1d, (400, 3), (1, 3)),
    "dropout2d": (F.dropout2d, (30, 40, 2, 3), (1, 1, 2, 3)),
    "dropout3d": (F.dropout3d, (30, 40, 2, 3, 2), (1, 1, 2, 3, 2)),
    "dropout3d of one sample": (F.dropout3d, (400, 2, 3, 2), (1, 2, 3, 2)),
}


@pytest.mark.parametrize(("dropout", "shape", "whole"), CHANNELS.values(), ids=CHANNELS.keys())
def test_channels_are_dropped_whole_and_one_by_one(dropout, shape, whole):
    out = drawn(lambda: dropout(torch.ones(shape), 0.5))
    firsts = out[tuple(slice(None) if n == 1 else slice(1) for n in whole)]
    assert torch.equal(out, firsts.expand(shape))
    assert set(firsts.flatten().tolist()) == {0.0, 2.0}
    assert 0.4 < (firsts == 0).double().mean() < 0.6
    if firsts.ndim > 2 and shape[1] == 40:  # channels of a sample, samples of a channel
        assert 0 < (firsts[0] == 0).double().mean() < 1
        assert 0 < (firsts[:, 0] == 0).double().mean() < 1


def test_dropout2d_of_a_flat_input_drops_entries_as_torch_does():
    out = drawn(lambda: F.dropout2d(torch.ones(30, 40), 0.5))
    assert 0.4 < (out == 0).double().mean() < 0.6


def test_a_layers_dropout_in_evaluation_mode_passes_everything():
    layer = nn.Dropout(0.5).eval()
    assert torch.equal(drawn(lambda: layer(X)), X)


DRAWING = {
    "rand": lambda: torch.rand(5),
    "rand, shape in a tuple": lambda: torch.rand((5,), dtype=torch.float64),
    "randn_like": lambda: torch.randn_like(X),
    "randint": lambda: torch.randint(0, 1000, (5,)),
    "randint_like": lambda: torch.randint_like(X, 1000),
    "randperm": lambda: torch.randperm(50),
    "normal of tensors": lambda: torch.normal(X, X),
    "normal of a shape": lambda: torch.normal(0.0, 1.0, (5,)),
    "bernoulli": lambda: torch.bernoulli(X * 0.5),
    "multinomial": lambda: torch.multinomial(X, 2),
    "poisson": lambda: torch.poisson(X * 5),
    "a method": lambda: X.clone().uniform_(-1, 1),
    "another method": (X * 0.5).bernoulli,
    "exponential_": lambda: torch.empty(5).exponential_(),
}


@pytest.mark.parametrize("name", DRAWING)
def test_drawing_functions_follow_the_place_and_leave_the_generator(name):
    before = torch.get_rng_state()
    one, again, other = drawn(DRAWING[name]), drawn(DRAWING[name]), drawn(DRAWING[name], learner=1)
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
    assert torch.equal(torch.get_rng_state(), before)
    assert probe(DRAWING[name], seed=0) is Randomness.KEYED


def test_a_generator_of_the_users_is_respected():
    def own():
        return torch.rand(5, generator=torch.Generator().manual_seed(4))

    assert torch.equal(drawn(own), own())


def test_dropout_of_float64_has_the_scale_of_float64():
    out = drawn(lambda: F.dropout(torch.ones(100, dtype=torch.float64), 0.5))
    assert out.dtype == torch.float64
    assert set(out.tolist()) == {0.0, 2.0}


PROBED = {
    "arithmetic": (lambda: X + 1, Randomness.NONE),
    "dropout": (lambda: F.dropout(X), Randomness.KEYED),
    "dropout that is off": (lambda: F.dropout(X, training=False), Randomness.NONE),
    "alpha dropout": (lambda: F.alpha_dropout(X, training=True), Randomness.ESCAPES),
    "gumbel softmax": (lambda: F.gumbel_softmax(X), Randomness.ESCAPES),
    "rrelu": (lambda: F.rrelu(-X, training=True), Randomness.ESCAPES),
    "attention with dropout": (
        lambda: F.scaled_dot_product_attention(X[None], X[None], X[None], dropout_p=0.5),
        Randomness.ESCAPES,
    ),
    "keyed and escaping": (lambda: F.gumbel_softmax(F.dropout(X)), Randomness.ESCAPES),
    "NumPy": (np.random.rand, Randomness.ESCAPES),
}


@pytest.mark.parametrize("name", PROBED)
def test_a_probe_tells_how_a_step_draws_and_leaves_all_generators(name):
    work, expected = PROBED[name]
    before = torch.get_rng_state(), np.random.get_state()[1].tolist()  # noqa: NPY002
    assert probe(work, seed=0) is expected
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.random.get_state()[1].tolist() == before[1]  # noqa: NPY002
