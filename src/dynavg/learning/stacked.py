"""Learners stepped all at once: one batched computation for a block of them.

A small network spends its time in calls, not in arithmetic; a block of learners shares the calls.
The user's optimiser works on the stacked parameters, which is bitwise what it does on each alone
for the optimisers in `SAME_BITS` (tried out in the tests). Forward and backward agree with the
plain way to rounding. Blocks have a fixed size, so the number of threads changes nothing.
"""

import copy
import threading
from collections.abc import Iterable

import torch
from torch import Tensor

from dynavg.data.streams import Streams
from dynavg.learning.broadcasting import Broadcasting, NotBroadcastable
from dynavg.learning.program import Program, make_optimizer
from dynavg.learning.randomness import Randomness
from dynavg.learning.scoring import counts_of
from dynavg.learning.shard import Shard, Trace
from dynavg.learning.template import OptimizerState, Template, add_state, state_tensors
from dynavg.learning.trial import disagreement

__all__ = ["SAME_BITS", "Stacked", "can_stack"]

SAME_BITS = (
    torch.optim.SGD,
    torch.optim.Adam,
    torch.optim.AdamW,
    torch.optim.RMSprop,
)
"""Optimisers that treat every entry of a parameter alike, whatever the parameter's shape."""


class Stacked(Shard):
    """A shard whose learners take each step together."""

    def __init__(
        self,
        program: Program,
        streams: Streams,
        ids: range,
        rows: Tensor,
        templates: threading.local | None = None,
    ) -> None:
        super().__init__(program, streams, ids, rows, "keep")
        self._templates = threading.local() if templates is None else templates
        self._optimizer: OptimizerState = {}
        self._mode = Broadcasting(program.seed)

    def run(self, first: int, last: int) -> Trace:
        """Rounds first…last of all learners."""
        template, size = Template.of_thread(self._templates, self.program), len(self.ids)
        template.look_at(self.rows, (), self._optimizer)
        losses = self.rows.new_empty(size, last - first + 1)
        samples = torch.empty(losses.shape, dtype=torch.int64)
        judged: list[tuple[Tensor, Tensor]] = []
        for column, round in enumerate(range(first, last + 1)):
            x, y = self.program.placed(self._batch(round))
            template.prepare(round)
            self._mode.aim(self.ids, round)
            self._mode.early.begin(template.optimizer)
            with self._mode:
                output = template.module(x)
                each = self.program.learning.loss(output, y)
            if each.shape != (size,):
                raise NotBroadcastable(f"a loss of shape {tuple(each.shape)} for {size} learners")
            self._mode.early.begin_backward()
            each.sum().backward()
            self._mode.early.finish()
            losses[:, column] = each.detach()
            samples[:, column] = y.shape[1]
            judged.append((output.detach(), y))
        if self.program.learning.reduction == "mean":
            losses *= samples
        self._optimizer = template.state()
        correct = None
        if self.program.metric is not None:
            outputs, targets = (torch.cat(column) for column in zip(*judged, strict=True))
            correct = counts_of(self.program.metric, outputs, targets).view(-1, size).T
        return Trace(losses, samples, correct)

    def _batch(self, round: int) -> tuple[Tensor, Tensor]:
        """The learners' batches of a round, stacked."""
        batches = [self.streams.at(learner, round) for learner in self.ids]
        shapes = {(x.shape, y.shape) for x, y in batches}
        if len(shapes) > 1:
            raise ValueError(
                f"round {round}: stacked learners need batches of one shape, but learners "
                f"{self.ids.start} to {self.ids.stop - 1} have {len(shapes)} (pass shard='looped')"
            )
        return torch.stack([x for x, _ in batches]), torch.stack([y for _, y in batches])

    def counters(self, id: int) -> list[Tensor]:
        """None: models with such buffers are not stacked."""
        return []

    def forget(self, ids: Iterable[int]) -> None:
        """Not possible for single learners; `can_stack` leaves such runs to looped shards."""
        raise NotBroadcastable("resetting the optimiser state of single learners")

    def tensors(self) -> dict[str, Tensor]:
        """The optimiser state of the block."""
        return state_tensors(self.ids.start, self._optimizer)

    def load(self, tensors: dict[str, Tensor]) -> None:
        """The inverse of `tensors`; what belongs to other blocks is passed over."""
        self._optimizer = {}
        for name, tensor in tensors.items():
            if int(name.split("/")[1]) == self.ids.start:
                add_state(self._optimizer, name, tensor, self.rows.device)


def can_stack(program: Program, streams: Streams, on_sync: str) -> str | None:
    """None if the learners can be stacked, else the reason why not.

    A function of what is run, never of the time it takes.
    """
    learning, layout = program.learning, program.layout
    if learning.step is not None or learning.clip is not None or on_sync == "reset":
        return "an own step, clipping and on_sync='reset' are done learner by learner"
    if program.randomness is Randomness.ESCAPES:
        return "the model draws random numbers that cannot be keyed to a learner"
    if layout.buffer_names or layout.counters(program.prototype):
        return "the model has buffers"
    optimizer = make_optimizer(learning.optimizer, copy.deepcopy(program.prototype))
    if type(optimizer) not in SAME_BITS or optimizer.defaults.get("fused"):
        return f"{type(optimizer).__name__} may treat a stack otherwise than its parts"
    if not getattr(streams, "uniform", False):
        return "the streams do not promise batches of one shape"
    return disagreement(
        program, streams, lambda trial, ids, rows: Stacked(trial, streams, ids, rows)
    )
