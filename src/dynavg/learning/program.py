"""How one learner learns: model, loss, optimiser and what belongs to them, made ready once.

A program is what all shards share. It calls the user's factories, tries one batch, and says what is
wrong before anything runs. It holds no learner's state.
"""

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, nn

from dynavg import seeds
from dynavg.learning.layout import Layout
from dynavg.learning.randomness import Randomness, probe
from dynavg.learning.scoring import Metric, check_loss, check_shapes, default_metric

__all__ = ["Learning", "Program", "prepare"]

Loss = Callable[[Any, Tensor], Tensor]
OptimizerFactory = Callable[[Any], torch.optim.Optimizer]
SchedulerFactory = Callable[[torch.optim.Optimizer], torch.optim.lr_scheduler.LRScheduler]
Step = Callable[[nn.Module, torch.optim.Optimizer, Tensor, Tensor], tuple[Tensor, Any]]


@dataclass(frozen=True, slots=True)
class Learning:
    """The learning algorithm φ, as the user gives it.

    `loss` returns the mean over the batch, or the sum with `reduction="sum"`. `clip` is the largest
    gradient norm. `step(module, optimizer, x, y) -> (loss, output)` replaces the usual step.
    """

    loss: Loss
    optimizer: OptimizerFactory
    scheduler: SchedulerFactory | None = None
    clip: float | None = None
    step: Step | None = None
    metric: Metric | None = None
    reduction: Literal["mean", "sum"] = "mean"

    def train(
        self, module: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor
    ) -> tuple[Tensor, Any]:
        """One update; returns the loss before it, and the output that it was measured on."""
        if self.step is not None:
            return self.step(module, optimizer, x, y)
        optimizer.zero_grad(set_to_none=True)
        output = module(x)
        check_shapes(output, y)
        loss = self.loss(output, y)
        loss.backward()
        if self.clip is not None:
            nn.utils.clip_grad_norm_(module.parameters(), self.clip)
        optimizer.step()
        return loss.detach(), output


@dataclass(frozen=True, slots=True)
class Program:
    """A learning algorithm tried out on a model; `metric` and `randomness` come from the trial."""

    learning: Learning
    prototype: nn.Module
    layout: Layout
    seed: int
    device: torch.device
    metric: Metric | None
    randomness: Randomness
    schedule: "Schedule | None" = field(default=None)

    def placed(self, batch: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """A batch on the program's device, floating numbers in the models' dtype."""
        x, y = (
            part.to(self.device, self.layout.dtype if part.is_floating_point() else part.dtype)
            for part in batch
        )
        return x, y

    def initial_row(self) -> Tensor:
        """The common initial model."""
        row = torch.empty(self.layout.width, dtype=self.layout.dtype, device=self.device)
        self.layout.write(self.prototype, row)
        return row


class Schedule:
    """What a learning-rate scheduler makes of the optimiser's settings, as a function of the round.

    A scheduler is an object with a state; here it runs once, ahead of the learners, and leaves a
    table that all of them read, so that a resumed run needs the round only.
    """

    def __init__(self, learning: Learning, module: nn.Module) -> None:
        assert learning.scheduler is not None
        self._optimizer = make_optimizer(learning.optimizer, copy.deepcopy(module))
        self._scheduler = learning.scheduler(self._optimizer)
        self._table = [self._settings()]

    def at(self, round: int) -> list[dict[str, Any]]:
        """The settings of each parameter group in that round (1, 2, …)."""
        return self._table[round - 1]

    def extend(self, rounds: int) -> None:
        """Make the table long enough; not thread-safe, so before the workers start."""
        while len(self._table) < rounds:
            self._optimizer.step()
            self._scheduler.step()
            self._table.append(self._settings())

    def _settings(self) -> list[dict[str, Any]]:
        return [
            {key: value for key, value in group.items() if key != "params"}
            for group in self._optimizer.param_groups
        ]


def prepare(
    model: Callable[[], nn.Module],
    learning: Learning,
    batch: tuple[Tensor, Tensor],
    *,
    seed: int,
    device: torch.device,
    dtype: torch.dtype | None,
) -> Program:
    """Make the model once, in a forked random state, and try one batch on a copy of it."""
    prototype = make_model(model, seed).to(device=device, dtype=dtype)
    layout = Layout.of(prototype)
    program = Program(learning, prototype, layout, seed, device, None, Randomness.NONE)
    trial = copy.deepcopy(prototype)
    optimizer = make_optimizer(learning.optimizer, trial)
    outputs: list[Any] = []
    x, y = program.placed(batch)

    def step() -> None:
        loss, output = learning.train(trial.train(), optimizer, x, y)
        check_loss(loss)
        outputs.append(output)

    randomness = probe(step, seed)
    metric = learning.metric or default_metric(outputs[0], y)
    schedule = Schedule(learning, prototype) if learning.scheduler else None
    return Program(learning, prototype, layout, seed, device, metric, randomness, schedule)


def make_model(model: Callable[[], nn.Module], seed: int) -> nn.Module:
    """The user's model, the same for the same seed; the caller's random state stays as it was."""
    if isinstance(model, nn.Module) or not callable(model):
        raise TypeError(
            f"model must be a function without arguments that returns a torch.nn.Module, but is "
            f"{type(model).__name__}; a ready network goes in as lambda: copy.deepcopy(network)"
        )
    with torch.random.fork_rng():
        torch.manual_seed(seeds.integer(seed, "model"))
        module = model()
    if not isinstance(module, nn.Module):
        raise TypeError(f"model() must return a torch.nn.Module, but returned {module!r:.80}")
    return copy.deepcopy(module)


def make_optimizer(factory: OptimizerFactory, module: nn.Module) -> torch.optim.Optimizer:
    """The user's optimiser over the module's trainable parameters."""
    trainable: Iterable[nn.Parameter] = [p for p in module.parameters() if p.requires_grad]
    optimizer = factory(trainable)
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(
            "optimizer must be a function (parameters) -> torch.optim.Optimizer, but it returned "
            f"{optimizer!r:.80}"
        )
    return optimizer
