"""Convex problems in float64, and the shared arguments of `simulate` and `serial`."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

Batches = list[list[tuple[Tensor, Tensor]]]


def linear(inputs: int, outputs: int = 1, bias: bool = False) -> Callable[[], nn.Module]:
    """A linear model that starts at zero."""

    def make() -> nn.Module:
        module = nn.Linear(inputs, outputs, bias=bias, dtype=torch.float64)
        for parameter in module.parameters():
            nn.init.zeros_(parameter)
        return module

    return make


def sgd(lr: float, **others: Any) -> Callable[..., torch.optim.Optimizer]:
    return lambda parameters: torch.optim.SGD(parameters, lr=lr, **others)


def dealt(x: Tensor, y: Tensor, learners: int, sizes: Sequence[int]) -> Batches:
    """Samples dealt out round by round; learner i gets sizes[i] at a time."""
    streams: Batches = [[] for _ in range(learners)]
    start = 0
    while start + sum(sizes) <= len(x):
        for stream, size in zip(streams, sizes, strict=True):
            stream.append((x[start : start + size], y[start : start + size]))
            start += size
    return streams


def vectors(result: Any) -> Tensor:
    """Every learner's parameters (m × P)."""
    rows = [nn.utils.parameters_to_vector(f.parameters()) for f in result.models()]
    return torch.stack(rows).detach()


def average(result: Any) -> Tensor:
    """The averaged model's parameters (P)."""
    return nn.utils.parameters_to_vector(result.model().parameters()).detach()


def losses_by_round(result: Any, learners: int, rounds: int) -> Tensor:
    """Mean loss per sample (rounds × m)."""
    frame = result.history.rounds
    mean = (frame["loss"] / frame["samples"]).to_torch()
    return mean.view(rounds, learners)
