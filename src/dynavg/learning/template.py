"""One module and one optimiser per worker, which look into the rows of one learner after another.

A module object per learner would cost more memory than a small network's weights. A template's
parameters are pointed at a row, so what the optimiser writes in place is written into the matrix.
Templates belong to one thread.
"""

import copy
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from dynavg import seeds
from dynavg.learning.program import Program, make_optimizer
from dynavg.learning.randomness import KeyedRandom, Randomness
from dynavg.learning.scoring import check_loss

__all__ = ["OptimizerState", "Template"]

OptimizerState = dict[int, dict[str, Any]]
"""An optimiser's state by the place of the parameter, not by the template's parameter object."""


class Template:
    """A worker's module and optimiser."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.module = copy.deepcopy(program.prototype)
        self.optimizer = make_optimizer(program.learning.optimizer, self.module)
        self._parameters = [p for p in self.module.parameters() if p.requires_grad]
        self._slots = program.layout.slots(self.module)
        self._counters = integer_buffers(self.module)
        keyed = program.randomness is Randomness.KEYED
        self._mode = KeyedRandom(program.seed) if keyed else None

    def look_at(
        self,
        row: Tensor,
        counters: Sequence[Tensor] = (),
        state: OptimizerState | None = None,
    ) -> None:
        """Become the learner whose model, integer buffers and optimiser state these are."""
        for slot, view in zip(self._slots, self.program.layout.views(row), strict=True):
            slot.data = view
        for counter, own in zip(self._counters, counters, strict=False):
            counter.data = own
        self.optimizer.state = defaultdict(
            dict, {self._parameters[place]: entry for place, entry in (state or {}).items()}
        )

    def state(self) -> OptimizerState:
        """The state that the optimiser has built up for the current learner."""
        return {
            place: self.optimizer.state[parameter]
            for place, parameter in enumerate(self._parameters)
            if self.optimizer.state.get(parameter)
        }

    def train(self, batch: tuple[Tensor, Tensor], learner: int, round: int) -> tuple[Tensor, Any]:
        """One round of the current learner: its loss summed over samples, and correct predictions
        (None where there is no metric).
        """
        program = self.program
        x, y = program.placed(batch)
        if program.schedule is not None:
            settings = program.schedule.at(round)
            for group, values in zip(self.optimizer.param_groups, settings, strict=True):
                group.update(values)
        if program.randomness is Randomness.ESCAPES:
            torch.manual_seed(seeds.integer(program.seed, "escaped", learner, round))
        self.module.train()
        if self._mode is None:
            loss, output = program.learning.train(self.module, self.optimizer, x, y)
        else:
            self._mode.aim(learner, round)
            with self._mode:
                loss, output = program.learning.train(self.module, self.optimizer, x, y)
        loss = check_loss(loss)
        if program.learning.reduction == "mean":
            loss = loss * len(y)
        with torch.no_grad():
            return loss, None if program.metric is None else program.metric(output, y)

    @torch.no_grad()
    def score(self, batch: tuple[Tensor, Tensor]) -> tuple[float, float]:
        """The current learner's loss summed over a batch, and correct predictions (0 where there is
        no metric), without learning.
        """
        program = self.program
        x, y = program.placed(batch)
        output = self.module.eval()(x)
        scale = len(y) if program.learning.reduction == "mean" else 1
        loss = float(program.learning.loss(output, y)) * scale
        return loss, float(program.metric(output, y)) if program.metric else 0.0


def integer_buffers(module: nn.Module) -> list[Tensor]:
    """The buffers that stay with a learner whatever happens, such as BatchNorm's counters."""
    return [buffer for buffer in module.buffers() if not buffer.is_floating_point()]
