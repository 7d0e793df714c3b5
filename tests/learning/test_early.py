"""What a plain SGD step becomes is what torch makes of it; whoever wants to see it, sees it."""

import pytest
import torch
from torch import nn

from dynavg.learning.early import EarlyUpdates


def pair(**settings):
    weights = [nn.Parameter(torch.arange(6.0).view(2, 3)) for _ in range(2)]
    return [(weight, torch.optim.SGD([weight], lr=0.3, **settings)) for weight in weights]


PLAIN = {"plain": {}, "nothing of note": {"dampening": 0.5}}
OTHERS = {
    "momentum": {"momentum": 0.9},
    "decay": {"weight_decay": 0.1},
    "ascent": {"maximize": True},
}


@pytest.mark.parametrize("settings", [*PLAIN.values(), *OTHERS.values()], ids=[*PLAIN, *OTHERS])
def test_finish_does_bitwise_what_the_optimiser_would(settings):
    (ours, stepped), (theirs, plain) = pair(**settings)
    for factor in (0.1, 0.7):
        early = EarlyUpdates()
        early.begin(stepped)
        ours.grad, theirs.grad = torch.full((2, 3), factor), torch.full((2, 3), factor)
        early.finish()
        plain.step()
    assert torch.equal(ours, theirs)


def rate(optimizer, weight, uses=1, backward=True):
    early = EarlyUpdates()
    early.begin(optimizer)
    for _ in range(uses):
        early.note_uses([1, [weight]])
    if backward:
        early.begin_backward()
    return early.rate(weight)


def test_a_rate_is_given_for_a_weight_used_once_in_the_backward_pass_of_a_plain_step():
    (weight, optimizer), _ = pair()
    assert rate(optimizer, weight) == 0.3
    assert rate(optimizer, weight, uses=0) is None
    assert rate(optimizer, weight, uses=2) is None
    assert rate(optimizer, weight, backward=False) is None
    assert rate(optimizer, nn.Parameter(torch.zeros(1))) is None


@pytest.mark.parametrize("settings", OTHERS.values(), ids=OTHERS)
def test_no_rate_is_given_for_a_step_that_is_not_plain(settings):
    (weight, optimizer), _ = pair(**settings)
    assert rate(optimizer, weight) is None


def test_hooks_and_steps_of_the_users_own_are_called():
    seen = []
    (weight, hooked), (other, patched) = pair()
    hooked.register_step_post_hook(lambda *_: seen.append("hook"))
    step = patched.step
    patched.step = lambda: seen.append("own") or step()
    for optimizer, parameter in ((hooked, weight), (patched, other)):
        parameter.grad = torch.ones(2, 3)
        early = EarlyUpdates()
        early.begin(optimizer)
        early.finish()
    assert seen == ["hook", "own"]
    assert torch.equal(weight, other)
