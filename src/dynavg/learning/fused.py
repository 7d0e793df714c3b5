"""Learners stepped one after the other, in faster forms of the same calls.

For networks whose time is arithmetic: convolutions, pooling, large layers. As `Looped` in all but
the mode in which a learner's step runs; results agree with it to rounding.
"""

import torch
from torch import Tensor

from dynavg.data.streams import Streams
from dynavg.learning.early import EarlyUpdates
from dynavg.learning.fusing import Fusing
from dynavg.learning.looped import Looped
from dynavg.learning.program import Program
from dynavg.learning.randomness import Randomness
from dynavg.learning.template import Template
from dynavg.learning.trial import disagreement

__all__ = ["Fused", "can_fuse"]


class _Template(Template):
    """A worker's module and optimiser, whose steps run inside `Fusing`."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.mode = self._mode = Fusing(program.seed)
        self._updates = EarlyUpdates()

    def prepare(self, round: int) -> None:
        """Set the optimiser up for a round of training."""
        super().prepare(round)
        self._updates.begin(self.optimizer)

    def update(self) -> None:
        """The optimiser's step; refused if the model was not stepped as it would be plainly."""
        self.mode.at_end()
        self._updates.finish()

    def score(self, batch: tuple[Tensor, Tensor], part: int, round: int) -> tuple[float, float]:
        """The current learner's loss summed over a batch, and correct predictions."""
        scored = super().score(batch, part, round)
        self.mode.at_end()
        return scored


class Fused(Looped):
    """A shard whose learners take turns in their thread's template."""

    template = _Template

    def gains(self) -> int:
        """How many calls were answered in a faster form, on this thread."""
        return self.template.of_thread(self._templates, self.program).mode.gains


def can_fuse(program: Program, streams: Streams) -> str | None:
    """None if the learners can be stepped this way and gain by it, else the reason why not.

    A function of what is run, never of the time it takes.
    """
    if program.device.type != "cpu" or program.layout.dtype is not torch.float32:
        return "the faster forms are for float32 on the CPU"
    if program.learning.step is not None:
        return "an own step is done as it is"
    if program.randomness is Randomness.ESCAPES:
        return "the model draws random numbers that cannot be keyed to a learner"
    trials: list[Fused] = []

    def make(trial: Program, ids: range, rows: Tensor) -> Fused:
        trials.append(Fused(trial, streams, ids, rows))
        return trials[-1]

    reason = disagreement(program, streams, make)
    if reason is None and not trials[-1].gains():
        reason = "the model calls nothing that has a faster form"
    return reason
