"""One module and one optimiser per worker, which look into the rows of one learner after another.

A module object per learner would cost more memory than a small network's weights. A template's
parameters are pointed at a row, so what the optimiser writes in place is written into the matrix.
Templates belong to one thread.
"""

import copy
import threading
from collections import defaultdict
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Self

import torch
from torch import Tensor

from dynavg import seeds
from dynavg.learning.program import Program, make_optimizer
from dynavg.learning.randomness import KeyedRandom, Randomness, reseed
from dynavg.learning.scoring import check_shapes

__all__ = ["OptimizerState", "Template", "add_state", "state_tensors"]

OptimizerState = dict[int, dict[str, Any]]
"""An optimiser's state by the place of the parameter, not by the template's parameter object."""


_EVALUATION = 1 << 62
"""In place of a learner's id, where the averaged model draws: far from all learners."""


class Template:
    """A worker's module and optimiser."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.module = copy.deepcopy(program.prototype)
        self.optimizer = make_optimizer(program.learning.optimizer, self.module)
        self._parameters = [p for p in self.module.parameters() if p.requires_grad]
        self._slots = program.layout.slots(self.module)
        self._counters = program.layout.counters(self.module)
        self._fresh = self.state()
        keyed = program.randomness is Randomness.KEYED
        self._mode: KeyedRandom | None = KeyedRandom(program.seed) if keyed else None

    @classmethod
    def of_thread(cls, templates: threading.local, program: Program) -> Self:
        """This thread's template, shared by all shards that it runs."""
        if not hasattr(templates, "template"):
            templates.template = cls(program)
        template: Self = templates.template
        return template

    def look_at(
        self,
        row: Tensor,
        counters: Sequence[Tensor] = (),
        state: OptimizerState | None = None,
    ) -> None:
        """Become the learner whose model, integer buffers and optimiser state these are; or, of
        several rows, all of these learners at once.
        """
        for slot, view in zip(self._slots, self.program.layout.views(row), strict=True):
            slot.data = view
        for counter, own in zip(self._counters, counters, strict=False):
            counter.data = own
        state = state or copy.deepcopy(self._fresh)
        self.optimizer.state = defaultdict(
            dict, {self._parameters[place]: entry for place, entry in state.items()}
        )
        self.module.train()

    def state(self) -> OptimizerState:
        """The state that the optimiser has built up for the current learner."""
        return {
            place: self.optimizer.state[parameter]
            for place, parameter in enumerate(self._parameters)
            if self.optimizer.state.get(parameter)
        }

    def train(
        self, batch: tuple[Tensor, Tensor], learner: int, round: int
    ) -> tuple[Tensor, Any, Tensor]:
        """One round of the current learner: its loss, and the output and target it comes from."""
        x, y = self.program.placed(batch)
        self.prepare(round)
        keyed = self._random_at(learner, round)
        train = self.program.learning.train
        return *train(self.module, self.optimizer, x, y, keyed, self.update), y

    def prepare(self, round: int) -> None:
        """Set the optimiser up for a round of training."""
        if self.program.schedule is not None:
            settings = self.program.schedule.at(round)
            for group, values in zip(self.optimizer.param_groups, settings, strict=True):
                group.update(values)
        for parameter in self._parameters:
            parameter.grad = None

    def update(self) -> None:
        """The optimiser's step."""
        self.optimizer.step()

    def _random_at(self, learner: int, round: int) -> AbstractContextManager[object]:
        if self.program.randomness is Randomness.ESCAPES:
            reseed(seeds.integer(self.program.seed, "escaped", learner, round))
        if self._mode is None:
            return nullcontext()
        self._mode.aim(learner, round)
        return self._mode

    @torch.no_grad()
    def score(self, batch: tuple[Tensor, Tensor], part: int, round: int) -> tuple[float, float]:
        """The current learner's loss summed over a batch, and correct predictions (0 where there is
        no metric), without learning. What is random even now is keyed to the part and the round.
        """
        program = self.program
        x, y = program.placed(batch)
        with self._random_at(_EVALUATION + part, round):
            output = self.module.eval()(x)
            check_shapes(output, y)
            loss = float(program.learning.loss(output, y))
        if program.learning.reduction == "mean":
            loss *= len(y)
        return loss, float(program.metric(output, y)) if program.metric else 0.0


def state_tensors(owner: int, state: OptimizerState) -> dict[str, Tensor]:
    """An optimiser's state by names that `add_state` understands; a number becomes a tensor."""
    tensors: dict[str, Tensor] = {}
    for parameter, entry in state.items():
        for key, value in entry.items():
            kind = _KINDS.get(type(value))
            if kind is None:
                raise TypeError(
                    f"the optimiser keeps a {type(value).__name__} as {key!r} in its state: only "
                    "tensors and numbers can go into a checkpoint"
                )
            tensors[f"{kind}/{owner}/{parameter}/{key}"] = torch.as_tensor(value)
    return tensors


def add_state(state: OptimizerState, name: str, tensor: Tensor, device: torch.device) -> None:
    """Put one of these tensors back into a state."""
    kind, _, parameter, key = name.split("/", 3)
    value = tensor.to(device) if kind == "tensor" else tensor.item()
    state.setdefault(int(parameter), {})[key] = value


_KINDS: dict[type, str] = {Tensor: "tensor", bool: "number", int: "number", float: "number"}
