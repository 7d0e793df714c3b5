"""Runs of the public `simulate` in which the models walk a script instead of learning.

A batch carries an increment, and a custom step adds it to the parameters: so any trajectory of
models can be put before an operator, and what every model was in every round is known afterwards.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import dynavg


class Point(torch.nn.Module):
    """A model that is nothing but its P parameters."""

    def __init__(self, start: np.ndarray) -> None:
        super().__init__()
        self.vector = torch.nn.Parameter(torch.from_numpy(start.copy()))


@dataclass(frozen=True)
class Script:
    """Start (P), increments (rounds × m × P), samples in every batch (rounds × m)."""

    start: np.ndarray
    increments: np.ndarray
    sizes: np.ndarray

    @property
    def rounds(self) -> int:
        return len(self.increments)

    @property
    def learners(self) -> int:
        return self.increments.shape[1]

    def streams(self) -> list[list[tuple[torch.Tensor, torch.Tensor]]]:
        return [[self._batch(t, i) for t in range(self.rounds)] for i in range(self.learners)]

    def _batch(self, t: int, i: int) -> tuple[torch.Tensor, torch.Tensor]:
        size = int(self.sizes[t, i])
        x = np.zeros((size, len(self.start)), dtype=self.increments.dtype)
        x[0] = self.increments[t, i]
        return torch.from_numpy(x), torch.tensor([[t, i]] * size)


def script(increments: Any, sizes: Any = 1, start: Any = 0.0, dtype: Any = np.float64) -> Script:
    """A script from anything of the right shape; a scalar stands for the same everywhere."""
    steps = np.asarray(increments, dtype=dtype)
    rounds, learners, parameters = steps.shape
    return Script(
        start=np.broadcast_to(np.asarray(start, dtype=dtype), (parameters,)).copy(),
        increments=steps,
        sizes=np.broadcast_to(np.asarray(sizes), (rounds, learners)).copy(),
    )


@dataclass(frozen=True)
class Seen:
    """One check: its record; the models (m × P) that came to it, those that left it; r after it.

    `weights` are Algorithm 2's B_i at this check.
    """

    record: Any
    before: np.ndarray
    after: np.ndarray
    old_reference: np.ndarray
    reference: np.ndarray
    weights: np.ndarray

    @property
    def members(self) -> list[int]:
        """𝓑, by id."""
        return sorted(i for stage in self.record.stages for i in stage)


@dataclass(frozen=True)
class Played:
    """What came of it. `entering[t]` are the models (m × P) at the beginning of round t + 1."""

    result: dynavg.Result
    entering: np.ndarray
    checks: list[Seen]

    @property
    def final(self) -> np.ndarray:
        return np.stack([model.vector.detach().numpy() for model in self.result.models()])


def play(script: Script, operator: Any, **others: Any) -> Played:
    """Run the script under the operator."""
    entering = np.full_like(script.increments, np.nan)
    checks: list[dynavg.Check] = []

    def step(module: Point, optimizer: Any, x: torch.Tensor, y: torch.Tensor) -> Any:
        t, i = y[0].tolist()
        with torch.no_grad():
            entering[t, i] = module.vector.numpy()
            module.vector.add_(x[0])
        return torch.zeros(()), None

    def keep(check: dynavg.Check) -> None:
        checks.append(dynavg.Check(check.record, check.models.clone(), check.reference.clone()))

    result = dynavg.simulate(
        model=lambda: Point(script.start),
        loss=_unused,
        optimizer=lambda parameters: torch.optim.SGD(parameters, lr=1.0),
        streams=script.streams(),
        operator=operator,
        rounds=script.rounds,
        step=step,
        callbacks=[keep],
        workers=1,
        progress=False,
        **others,
    )
    return Played(result, entering, _seen(script, entering, checks))


def _unused(output: object, target: object) -> torch.Tensor:
    raise AssertionError("the custom step needs no loss")


def _seen(script: Script, entering: np.ndarray, checks: list[dynavg.Check]) -> list[Seen]:
    seen, last, reference = [], 0, script.start
    for check in checks:
        t = check.record.round
        new_reference = check.reference.numpy()
        seen.append(
            Seen(
                record=check.record,
                before=entering[t - 1] + script.increments[t - 1],
                after=check.models.numpy(),
                old_reference=reference,
                reference=new_reference,
                weights=script.sizes[last:t].sum(0).astype(np.float64),
            )
        )
        last, reference = t, new_reference
    return seen


def divergence(models: np.ndarray, weights: np.ndarray | None = None) -> float:
    """δ of models (m × P), with the weights w_i = B_i / Σ B_j if there are any."""
    w = np.ones(len(models)) if weights is None else weights
    w = w / w.sum()
    return float(w @ ((models - w @ models) ** 2).sum(1))


Walk = Callable[[np.random.Generator, int, int, int], np.ndarray]


def gaussian(rng: np.random.Generator, rounds: int, m: int, P: int) -> np.ndarray:
    """Everybody on its own: many small balancing sets."""
    return rng.standard_normal((rounds, m, P)) / np.sqrt(P)


def together(rng: np.random.Generator, rounds: int, m: int, P: int) -> np.ndarray:
    """A common drift: all violate at once."""
    return gaussian(rng, rounds, 1, P) + 0.1 * gaussian(rng, rounds, m, P)


def few_move(rng: np.random.Generator, rounds: int, m: int, P: int) -> np.ndarray:
    """Some stand still for good: balancing succeeds late or never."""
    return 2 * gaussian(rng, rounds, m, P) * (rng.random(m) < 0.4)[None, :, None]


def apart(rng: np.random.Generator, rounds: int, m: int, P: int) -> np.ndarray:
    """Neighbours move in opposite directions: violators balance each other."""
    signs = np.where(np.arange(m) % 2, -1.0, 1.0)
    return 2 * gaussian(rng, rounds, 1, P) * signs[None, :, None] + 0.1 * gaussian(
        rng, rounds, m, P
    )


def bursts(rng: np.random.Generator, rounds: int, m: int, P: int) -> np.ndarray:
    """Now and then one learner jumps."""
    return 3 * gaussian(rng, rounds, m, P) * (rng.random((rounds, m, 1)) < 0.15)


def lattice(rng: np.random.Generator, rounds: int, m: int, P: int) -> np.ndarray:
    """Steps of 1/2: distances are often exactly equal, or zero."""
    return rng.integers(-1, 2, (rounds, m, P)) / 2.0


WALKS: dict[str, Walk] = {
    walk.__name__: walk for walk in (gaussian, together, few_move, apart, bursts, lattice)
}
