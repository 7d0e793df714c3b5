"""How one learner learns: model, loss, optimiser and what belongs to them, made ready once.

A program is what all shards share. It calls the user's factories, tries one batch, and says what is
wrong before anything runs. It holds no learner's state.
"""

import copy
import inspect
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from dynavg import seeds
from dynavg.arguments import check_number, described
from dynavg.learning.layout import Layout, refuse_lazy
from dynavg.learning.memory import Memory, refuse_hooks
from dynavg.learning.randomness import Randomness, forked, probe, reseed
from dynavg.learning.scoring import (
    Metric,
    check_count_of,
    check_loss,
    check_shapes,
    default_metric,
)

__all__ = ["Learning", "Program", "prepare"]

Loss = Callable[[Any, Tensor], Tensor]
OptimizerFactory = Callable[[Any], torch.optim.Optimizer]
SchedulerFactory = Callable[[torch.optim.Optimizer], torch.optim.lr_scheduler.LRScheduler]
Step = Callable[[nn.Module, torch.optim.Optimizer, Tensor, Tensor], tuple[Tensor, Any]]


_SIGNATURES = {
    "loss": "a function (output, target) -> scalar tensor",
    "optimizer": "a function (parameters) -> torch.optim.Optimizer",
    "scheduler": "a function (optimizer) -> torch.optim.lr_scheduler.LRScheduler",
    "step": "a function (module, optimizer, x, y) -> (loss, output)",
    "metric": "a function (output, target) -> number of correct predictions",
}
_CLIP = "a number > 0"


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

    def __post_init__(self) -> None:
        for name in ("loss", "optimizer", "scheduler", "step", "metric"):
            value = getattr(self, name)
            wanted = name in ("loss", "optimizer") or value is not None
            if wanted and not callable(value):
                raise TypeError(
                    f"simulate({name}=…): {_SIGNATURES[name]} is wanted, not {described(value)}"
                )
            if isinstance(value, type) and issubclass(value, nn.Module):
                raise TypeError(
                    f"simulate({name}={value.__name__}): {_SIGNATURES[name]} is wanted, such as "
                    f"an instance, {value.__name__}()"
                )
        if self.clip is not None:
            if not check_number("simulate", "clip", self.clip, _CLIP) > 0:
                raise ValueError(f"simulate(clip={self.clip!r}): {_CLIP} is wanted")
            if self.step is not None:
                raise ValueError(
                    "simulate(clip=…, step=…): an own step clips for itself, with "
                    "torch.nn.utils.clip_grad_norm_(module.parameters(), …)"
                )

    def train(
        self,
        module: nn.Module,
        optimizer: torch.optim.Optimizer,
        x: Tensor,
        y: Tensor,
        keyed: AbstractContextManager[object],
        update: Callable[[], object],
    ) -> tuple[Tensor, Any]:
        """One update of a module without gradients; returns the loss before it, and the output that
        it was measured on. Whatever may draw random numbers happens inside `keyed`; `update` is the
        optimiser's step.
        """
        if self.step is not None:
            with keyed:
                made: object = self.step(module, optimizer, x, y)
            if not isinstance(made, tuple) or len(made) != 2:
                raise TypeError(f"step must return (loss, output), but returned {made!r:.80}")
            return check_loss(made[0]).detach(), made[1]
        with keyed:
            output = module(x)
            check_shapes(output, y)
            loss = check_loss(self.loss(output, y))
            if not loss.requires_grad:
                raise ValueError(
                    "the loss does not depend on the model's trainable parameters: is it made from "
                    "the output, without detach(), item() or torch.no_grad()?"
                )
            loss.backward()
        if self.clip is not None:
            nn.utils.clip_grad_norm_(module.parameters(), self.clip)
        # torch's own optimisers draw nothing, and look at each gradient: inside, that would cost.
        with nullcontext() if type(optimizer).__module__.startswith("torch.optim.") else keyed:
            update()
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
            for part in map(_trainable_on, batch)
        )
        return x, y

    def optimizer_settings(self) -> str:
        """The optimiser and its settings, as text that tells one from another."""
        optimizer = make_optimizer(self.learning.optimizer, copy.deepcopy(self.prototype))
        groups = [
            {key: value for key, value in sorted(group.items()) if key != "params"}
            for group in optimizer.param_groups
        ]
        return f"{type(optimizer).__name__} {groups}"

    def initial_row(self) -> Tensor:
        """The common initial model."""
        row = torch.empty(self.layout.width, dtype=self.layout.dtype, device=self.device)
        self.layout.write(self.prototype, row)
        return row


def _trainable_on(part: Tensor) -> Tensor:
    """A tensor made under `torch.inference_mode` as one that autograd takes."""
    return part.clone() if part.is_inference() else part


class Schedule:
    """What a learning-rate scheduler makes of the optimiser's settings, as a function of the round.

    A scheduler is an object with a state; here it runs once, ahead of the learners, and leaves a
    table that all of them read, so that a resumed run needs the round only.
    """

    def __init__(self, learning: Learning, module: nn.Module) -> None:
        assert learning.scheduler is not None
        self._optimizer = make_optimizer(learning.optimizer, copy.deepcopy(module))
        made: object = learning.scheduler(self._optimizer)
        if not isinstance(made, LRScheduler) or isinstance(made, ReduceLROnPlateau):
            raise TypeError(
                f"simulate(scheduler=…): {_SIGNATURES['scheduler']} is wanted that depends on the "
                f"round alone, but it returned {type(made).__name__}"
            )
        self._scheduler = made
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
            {key: copy.deepcopy(value) for key, value in group.items() if key != "params"}
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
    if dtype not in (None, torch.float32, torch.float64):
        raise TypeError(
            f"simulate(dtype={dtype!r}): torch.float32, torch.float64 or None is wanted"
        )
    prototype = make_model(model, seed).to(device=device, dtype=dtype)
    layout = Layout.of(prototype)
    program = Program(learning, prototype, layout, seed, device, None, Randomness.NONE)
    trial = copy.deepcopy(prototype)
    memory = Memory.of(trial)
    x, y = program.placed(batch)
    made: list[tuple[Tensor, Any]] = []

    def step(module: nn.Module) -> Randomness:
        optimizer = make_optimizer(learning.optimizer, module)
        if learning.step is None:
            _refuse_closures(optimizer)
        module.train().zero_grad(set_to_none=True)
        rest = (x, y, nullcontext(), optimizer.step)
        return probe(lambda: made.append(learning.train(module, optimizer, *rest)), seed)

    def loss_of(module: nn.Module) -> Tensor | None:
        try:
            step(module)
        except Exception:  # noqa: BLE001 - it came through before
            return None
        return made[-1][0]

    randomness = step(trial)
    output = made[0][1]
    memory.refuse_changes(trial, lambda: step(trial))
    memory.refuse_carrying(trial, copy.deepcopy(prototype), loss_of)
    metric = learning.metric or default_metric(output, y)
    if metric is not None:
        with torch.no_grad():
            check_count_of(metric, output, y)
    schedule = Schedule(learning, prototype) if learning.scheduler else None
    return Program(learning, prototype, layout, seed, device, metric, randomness, schedule)


def make_model(model: Callable[[], nn.Module], seed: int) -> nn.Module:
    """The user's model, the same for the same seed; the caller's random state stays as it was."""
    if isinstance(model, nn.Module) or not callable(model):
        raise TypeError(
            f"model must be a function without arguments that returns a torch.nn.Module, but is "
            f"{type(model).__name__}; a ready network goes in as lambda: copy.deepcopy(network)"
        )
    with forked():
        reseed(seeds.integer(seed, "model"))
        module = model()
    if not isinstance(module, nn.Module):
        raise TypeError(f"model() must return a torch.nn.Module, but returned {module!r:.80}")
    if any(isinstance(part, torch.jit.ScriptModule) for part in module.modules()):
        raise TypeError(
            "model() returned a scripted network, whose copies cannot learn: return the network "
            "that it was made from"
        )
    refuse_lazy(module)
    refuse_hooks(module)
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
    known = set(map(id, trainable))
    if not all(id(p) in known for group in optimizer.param_groups for p in group["params"]):
        raise ValueError(
            "optimizer must be made from the parameters that it is handed, but holds others: is "
            "it lambda parameters: …(parameters, …)?"
        )
    return optimizer


def _refuse_closures(optimizer: torch.optim.Optimizer) -> None:
    closure = inspect.signature(optimizer.step).parameters.get("closure")
    if closure is not None and closure.default is inspect.Parameter.empty:
        raise TypeError(
            f"{type(optimizer).__name__} evaluates the loss several times a step, through a "
            "closure: give simulate a step=(module, optimizer, x, y) -> (loss, output) that does so"
        )
