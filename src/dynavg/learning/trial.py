"""Whether another way of stepping learners comes out as the plain way, found out by trying it.

Two learners with different weights take two steps both ways. They take them with plain SGD, whose
steps are the gradients: an optimiser that divides by the gradient's size makes noise of rounding as
large as everything else. A function of what is run, never of the time it takes.
"""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from dynavg.data.streams import Streams
from dynavg.learning.looped import Looped
from dynavg.learning.program import Program
from dynavg.learning.shard import Shard

__all__ = ["Unsuitable", "disagreement"]

CLOSE = 1e-3
"""How far a step may be from the plain one, relative to the step; rounding stays far below."""


class Unsuitable(Exception):
    """What a way of stepping learners raises where it cannot do what the model asks of it."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"the model or its loss uses {what}, which its first steps did not: pass shard='looped'"
        )
        self.what = what


def disagreement(
    program: Program, streams: Streams, make: Callable[[Program, range, Tensor], Shard]
) -> str | None:
    """None if the shards that `make` makes agree with plain ones, else why not."""
    learning = replace(program.learning, optimizer=_sgd, scheduler=None)
    program = replace(program, learning=learning, schedule=None)
    ids = range(min(2, streams.learners))
    start = torch.stack([program.initial_row() * factor for factor in (1.0, 0.75)[: len(ids)]])
    last = 1 if streams.rounds() == 1 else 2
    plain, other = start.clone(), start.clone()
    expected = Looped(program, streams, ids, plain).run(1, last)
    try:
        # A constant whose first dimension is two would pass for one row per learner, but not here.
        make(program, range(1), start[:1].clone()).run(1, 1)
        made = make(program, ids, other).run(1, last)
    except Unsuitable as error:
        return f"the model or its loss uses {error.what}"
    except Exception as error:  # noqa: BLE001 - what runs plainly and fails here is unsuitable
        return f"a trial step failed: {error}"
    same = torch.allclose(made.losses, expected.losses, rtol=CLOSE, atol=1e-6) and all(
        _close(program, *rows) for rows in zip(other, plain, start, strict=True)
    )
    return None if same else "a trial step came out differently"


def _close(program: Program, made: Tensor, expected: Tensor, start: Tensor) -> bool:
    """Whether every piece of a model moved as expected, rounding of the whole step aside."""
    whole = CLOSE * (expected - start).norm()
    return all(
        bool((a - b).norm() <= CLOSE * torch.maximum((b - c).norm(), whole))
        for a, b, c in zip(*map(program.layout.views, (made, expected, start)), strict=True)
    )


def _sgd(parameters: list[Tensor]) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.01)
