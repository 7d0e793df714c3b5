"""What a fleet's learners learn, and how: the same parts that `simulate` takes, in one object.

A process on another machine makes its task anew, by calling the same function with the same
arguments: `TaskSource` names it, as an import path, in a file of the owner's own. Nothing that can
run ever crosses the network.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn

from dynavg.data.streams import Streams
from dynavg.learning.layout import Layout
from dynavg.learning.program import Learning, Program, make_model, prepare
from dynavg.protocol.operator import Operator

__all__ = ["ModelTask", "Start", "Task", "TaskSource"]


@dataclass(frozen=True, slots=True)
class Start:
    """The common initial model, as far as it travels, and what it looks like."""

    layout: Layout
    vector: Tensor


@dataclass(frozen=True, slots=True)
class Task:
    """What to learn. `model` and the others mean what they mean in `dynavg.simulate`; `rounds` is
    None for learners that go on until they are stopped.
    """

    model: Any
    learning: Learning
    streams: Streams
    operator: Operator
    rounds: int | None
    seed: int = 0
    device: str = "cpu"
    dtype: torch.dtype | None = None
    buffers: Literal["average", "local"] = "average"
    on_sync: Literal["keep", "reset"] = "keep"
    init_noise: float = 0.0

    def program(self) -> Program:
        """The program that all processes of the fleet share."""
        return prepare(
            self.model,
            self.learning,
            self.streams.at(0, 1),
            seed=self.seed,
            device=torch.device(self.device),
            dtype=self.dtype,
        )

    def start(self) -> Start:
        """Where learners start."""
        program = self.program()
        return Start(program.layout, program.initial_row()[: self.entries(program)])

    def entries(self, program: Program) -> int:
        """How many numbers of a row travel."""
        layout = program.layout
        return layout.width if self.buffers == "average" else layout.parameters


@dataclass(frozen=True, slots=True)
class ModelTask:
    """What to average, for a coordinator whose learners bring training loops of their own.

    `model` makes the network that all start from; with `rounds` None the coordinator stays until
    it is stopped, with a number it ends when all learners have left.
    """

    model: Callable[[], nn.Module]
    operator: Operator
    rounds: int | None = None
    seed: int = 0
    buffers: Literal["average", "local"] = "average"

    def start(self) -> Start:
        """Where learners start."""
        module = make_model(self.model, self.seed)
        layout = Layout.of(module)
        row = torch.empty(layout.width, dtype=layout.dtype)
        layout.write(module, row)
        return Start(
            layout, row[: layout.width if self.buffers == "average" else layout.parameters]
        )


class TaskSource(BaseModel):
    """Where a task comes from: "package.module:function" and its arguments. `file` is handed over
    first, if there is one; in fleet.json its path begins at the fleet's folder.

    >>> TaskSource(factory="math:sqrt", arguments={}).factory
    'math:sqrt'
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    factory: str = Field(pattern=r"^[\w.]+:\w+$")
    file: Path | None = None
    arguments: dict[str, Any] = Field(default_factory=dict)

    def make(self) -> Task:
        """The task of learners that this package trains."""
        task = self.make_any()
        if not isinstance(task, Task):
            raise TypeError(
                f"{self.factory} must return a Task, but returned {task!r:.80}: learners with "
                "loops of their own use dynavg.fleet.Learner"
            )
        return task

    def make_any(self) -> Task | ModelTask:
        """The task, as far as a coordinator needs it."""
        module, _, name = self.factory.partition(":")
        try:
            factory = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise ValueError(
                f"task.factory = {self.factory!r}: {error}; the import path of a function that "
                "returns a dynavg.fleet.Task is wanted, such as my_package.field:task"
            ) from None
        task = factory(*([] if self.file is None else [self.file]), **self.arguments)
        if not isinstance(task, Task | ModelTask):
            raise TypeError(
                f"{self.factory} must return a Task or a ModelTask, but returned {task!r:.80}"
            )
        return task
