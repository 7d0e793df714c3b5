"""Learners stepped one after the other: the plain oracle of all other ways.

Any model, any torch optimiser. All rounds of a learner before the next learner, so that its model
stays in the cache.
"""

import threading
from collections.abc import Iterable
from typing import Literal

import torch
from torch import Tensor

from dynavg.data.streams import Streams
from dynavg.learning.program import Program
from dynavg.learning.scoring import counts_of_each
from dynavg.learning.shard import Shard, Trace
from dynavg.learning.template import OptimizerState, add_state, state_tensors

__all__ = ["Looped"]


class Looped(Shard):
    """A shard whose learners take turns in their thread's template."""

    def __init__(
        self,
        program: Program,
        streams: Streams,
        ids: range,
        rows: Tensor,
        on_sync: Literal["keep", "reset"] = "keep",
        templates: threading.local | None = None,
    ) -> None:
        super().__init__(program, streams, ids, rows, on_sync)
        self._templates = threading.local() if templates is None else templates
        self._optimizer: list[OptimizerState] = [{} for _ in ids]
        counters = program.layout.counters(program.prototype)
        self._counters = [[counter.clone() for counter in counters] for _ in ids]

    def run(self, first: int, last: int) -> Trace:
        """Rounds first…last of every learner."""
        template = self.template.of_thread(self._templates, self.program)
        losses = self.rows.new_empty(len(self.ids), last - first + 1)
        samples = torch.empty(losses.shape, dtype=torch.int64)
        metric = self.program.metric
        correct = torch.empty(losses.shape, device=losses.device) if metric else None
        for place, learner in enumerate(self.ids):
            template.look_at(self.rows[place], self._counters[place], self._optimizer[place])
            told = []
            for round in range(first, last + 1):
                batch = self.streams.at(learner, round)
                try:
                    told.append(template.train(batch, learner, round))
                except Exception as error:
                    error.add_note(f"raised by learner {learner} in round {round}")
                    raise
            torch.stack([loss for loss, _, _ in told], out=losses[place])
            samples[place] = torch.tensor([len(y) for _, _, y in told])
            if metric is not None and correct is not None:
                correct[place] = counts_of_each(metric, [judged for _, *judged in told])
            self._optimizer[place] = template.state()
        if self.program.learning.reduction == "mean":
            losses *= samples.to(losses.device)
        return Trace(losses, samples, correct)

    def counters(self, id: int) -> list[Tensor]:
        """A learner's own integer buffers."""
        return self._counters[id - self.ids.start]

    def forget(self, ids: Iterable[int]) -> None:
        """Reset these learners' optimiser state."""
        for id in ids:
            self._optimizer[id - self.ids.start] = {}

    def tensors(self) -> dict[str, Tensor]:
        """Optimiser states and integer buffers, by learner."""
        tensors: dict[str, Tensor] = {}
        for place, learner in enumerate(self.ids):
            for number, counter in enumerate(self._counters[place]):
                tensors[f"counter/{learner}/{number}"] = counter
            tensors |= state_tensors(learner, self._optimizer[place])
        return tensors

    def load(self, tensors: dict[str, Tensor]) -> None:
        """The inverse of `tensors`; what belongs to other learners is passed over."""
        self._optimizer = [{} for _ in self.ids]
        for name, tensor in tensors.items():
            kind, learner, number, *_ = name.split("/")
            if int(learner) not in self.ids:
                continue
            place = int(learner) - self.ids.start
            if kind == "counter":
                self._counters[place][int(number)].copy_(tensor)
            else:
                add_state(self._optimizer[place], name, tensor, self.rows.device)
