"""The built-in task: drifting binary data and the paper's small network, for trying a fleet out."""

from typing import Any, Literal

import torch
from torch import nn

from dynavg.data import drift
from dynavg.engines.fleet.task import Task
from dynavg.learning.program import Learning
from dynavg.models import drift_mlp
from dynavg.operators import OPERATORS

__all__ = ["drift_task"]


def drift_task(
    learners: int = 4,
    rounds: int | None = 100,
    operator: Literal["dynamic", "periodic", "fedavg", "nosync"] = "dynamic",
    seed: int = 0,
    learning_rate: float = 0.1,
    d: int = 50,
    **settings: Any,
) -> Task:
    """Drift data with `d` observables and `operator(**settings)`; without settings a Δ of 0.2.

    >>> drift_task(learners=2, operator="periodic", every=5).operator
    Periodic(every=5, weights='equal')
    """
    if operator == "dynamic":
        settings = {"delta": 0.2, "every": 1} | settings
    return Task(
        model=lambda: drift_mlp(d),
        learning=Learning(
            nn.functional.binary_cross_entropy_with_logits,
            lambda parameters: torch.optim.SGD(parameters, lr=learning_rate),
        ),
        streams=drift(learners, batch_size=10, seed=seed, d=d),
        operator=OPERATORS[operator](**settings),
        rounds=rounds,
        seed=seed,
    )
