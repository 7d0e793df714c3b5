"""A fleet's run as a `Result`, like a simulation's, out of what its processes left in a folder.

Learners' files from other machines are copied into that folder first. A learner that was killed has
left nothing but what the coordinator heard of it: its row stays the reference's, its losses are 0.
"""

import torch
from torch import Tensor

from dynavg import checkpoint
from dynavg.engines.fleet.book import Book
from dynavg.engines.fleet.config import FleetConfig
from dynavg.engines.fleet.journal import JOURNAL_FILE, entries_of
from dynavg.engines.fleet.task import Task
from dynavg.engines.history import Losses
from dynavg.engines.result import Result

__all__ = ["gather", "read_book"]


def read_book(config: FleetConfig) -> Book:
    """The coordinator's records, read only; a coordinator may be writing them at the same time."""
    book = Book()
    book.read(entries_of(config.coordinator_folder / JOURNAL_FILE)[0])
    return book


def gather(config: FleetConfig, task: Task) -> Result:
    """The result of a run that has ended."""
    book, program = read_book(config), task.program()
    learners = task.streams.learners
    rows = program.initial_row().repeat(learners, 1)
    fresh = program.layout.counters(program.prototype)
    counters = [[counter.clone() for counter in fresh] for _ in range(learners)]
    traces: dict[int, Tensor] = {}
    for id in range(learners):
        path = config.learner_file(id)
        if path.exists():
            tensors, _ = checkpoint.read(path)
            rows[id] = tensors["row"]
            traces[id] = tensors["rounds"]
            for number, counter in enumerate(counters[id]):
                counter.copy_(tensors[f"counter/{id}/{number}"])
    return Result(
        operator=task.operator,
        learners=learners,
        losses=_losses(traces, learners, program.layout.dtype),
        checks=book.checks,
        evaluations=[],
        book=book.ledger,
        prototype=program.prototype,
        layout=program.layout,
        rows=rows,
        mean_row=rows.double().mean(0).to(rows.dtype),
        counters=counters,
        shard="looped",
    )


def _losses(traces: dict[int, Tensor], learners: int, dtype: torch.dtype) -> Losses:
    rounds = max((int(trace[:, 0].max()) for trace in traces.values() if len(trace)), default=0)
    losses = Losses(learners, rounds, dtype)
    losses.rounds = rounds
    for id, trace in traces.items():
        columns = trace[:, 0].long() - 1
        losses.losses[id, columns] = trace[:, 1].to(dtype)
        losses.samples[id, columns] = trace[:, 2].to(losses.samples.dtype)
        if losses.correct is not None:
            losses.correct[id, columns] = trace[:, 3].to(losses.correct.dtype)
    if any(bool((trace[:, 3] < 0).any()) for trace in traces.values()):
        losses.correct = None
    return losses
