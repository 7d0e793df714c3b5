"""A learner around the user's own training loop: the optimiser's step is the hook, the loop stays.

Between two steps it hears and speaks, measures the distance at a check, and takes what the
coordinator sends. It changes the model's parameters in place and nothing else.
"""

import logging
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn

from dynavg.engines.fleet.config import FleetConfig
from dynavg.engines.fleet.crew import OrphanedError
from dynavg.engines.fleet.folder import folder_of, load
from dynavg.engines.fleet.line import RETURNED, Line
from dynavg.engines.fleet.logs import event
from dynavg.engines.fleet.seat import Rules, Seat
from dynavg.learning.layout import Layout
from dynavg.protocol.operator import Operator
from dynavg.protocol.wire import WireError, size

__all__ = ["Learner", "LearnerConfig", "learner_config"]

log = logging.getLogger(__name__)


class _ModuleBody:
    """The user's module, seen as a vector."""

    def __init__(self, module: nn.Module, layout: Layout, entries: int) -> None:
        self._module = module
        self._layout = layout
        self._entries = entries

    def model(self) -> Tensor:
        """A copy of the module's numbers that travel."""
        return self._row()[: self._entries]

    def install(self, vector: Tensor, since: Tensor | None) -> None:
        """Write the model into the module, plus the progress made since `since`."""
        row = self._row()
        part = row[: self._entries]
        part.copy_(vector if since is None else part + (vector - since))
        self._layout.read(row, self._module)

    def _row(self) -> Tensor:
        row = torch.empty(self._layout.width, dtype=self._layout.dtype)
        self._layout.write(self._module, row)
        return row


@dataclass(frozen=True, slots=True)
class LearnerConfig:
    """Which learner of which fleet, and what it must know of the fleet's task."""

    fleet: FleetConfig
    id: int
    operator: Operator
    buffers: Literal["average", "local"] = "average"


def learner_config(folder: Path | str, id: int) -> LearnerConfig:
    """What learner `id` of the fleet in a folder (what `dynavg fleet init` made) must know."""
    fleet = load(folder_of(Path(folder)))
    task = fleet.task.make_any()
    return LearnerConfig(fleet.config, id, task.operator, task.buffers)


class Learner:
    """Makes a training loop one learner of a fleet.

    Args:
        config: Which learner of which fleet.
        model: The network that the loop trains; it starts from the fleet's reference.
        optimizer: Its optimiser. Every `step()` is a round.
        samples: Samples per step, for operators that weight by samples; where they vary, set
            `learner.samples` before the step.

    With a coordinator running (`dynavg fleet coordinator`), the loop stays what it was:

        config = dynavg.fleet.learner_config("field", id=3)
        with dynavg.fleet.Learner(config, model, optimizer) as learner:
            for x, y in loader:
                optimizer.zero_grad()
                loss(model(x), y).backward()
                optimizer.step()
    """

    def __init__(
        self,
        config: LearnerConfig,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        samples: int = 1,
    ) -> None:
        layout, fleet, id = Layout.of(model), config.fleet, config.id
        entries = layout.width if config.buffers == "average" else layout.parameters
        rules = Rules(fleet, config.operator, layout, entries, common_start=False)
        self.config = fleet
        self.samples = samples
        self.seat = Seat(id, _ModuleBody(model, layout, entries), rules)
        self._optimizer = optimizer
        most = size(rules.codec.payload_bytes(entries))
        self._line = Line(fleet, fleet.host_of(range(id, id + 1)), [id], most)
        self._hook: Any = None
        self._heard_at = self._reported_at = time.monotonic()

    def __enter__(self) -> Self:
        """Join; the model is the fleet's reference afterwards."""
        self._line.__enter__()
        try:
            self._send(self.seat.hello())
            self._wait()
        except BaseException as error:
            self._line.__exit__(type(error), error, error.__traceback__)
            raise
        self._hook = self._optimizer.register_step_post_hook(lambda *_: self._stepped())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave; the loop goes on alone if it likes."""
        self._hook.remove()
        self._send(self.seat.bye())
        self._line.__exit__(kind, error, trace)

    @property
    def traffic_bytes(self) -> int:
        """What this learner has said and heard so far."""
        return self._line.traffic.sent_bytes + self._line.traffic.received_bytes

    @torch.no_grad()
    def _stepped(self) -> None:
        self._send(self.seat.trained(0.0, self.samples, None))
        self._hear(0.0)
        now = time.monotonic()
        if now - self._reported_at > self.config.report_seconds:
            self._reported_at = now
            self._send(self.seat.report())
        overdue = now - self.seat.asked_at > self.config.answer_seconds
        if self.seat.waits_for_coordinator and overdue and not self.seat.blocked:
            self._send(self.seat.again("no answer in time"))
        self._wait()

    def _wait(self) -> None:
        """Stand still for as long as the pace wants it."""
        seat, config = self.seat, self.config
        while seat.blocked:
            now = time.monotonic()
            if now - self._heard_at > config.orphan_seconds:
                raise OrphanedError(
                    f"learner {seat.id}: no word from the coordinator of run {config.run!r} at "
                    f"{config.url} for {config.orphan_seconds:g} s"
                )
            if now - seat.asked_at > config.answer_seconds:
                self._send(seat.again("no answer in time"))
            self._hear(max(0.001, seat.asked_at + config.answer_seconds - now))

    def _hear(self, seconds: float) -> None:
        if not seconds and not self._line.has_news:
            return
        for id, data in self._line.receive(seconds):
            self._heard_at = time.monotonic()
            try:
                if id != RETURNED:
                    self._send(self.seat.hear(data))
                elif self.seat.waits_for_coordinator:
                    self._send(self.seat.again("the broker was away"))
            except WireError as error:
                event(log, logging.WARNING, "refused", learner=id, why=str(error))

    def _send(self, said: list[bytes]) -> None:
        for data in said:
            self._line.send(self.seat.id, data)
