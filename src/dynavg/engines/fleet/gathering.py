"""A fleet's run as a `Result`, like a simulation's, out of what its processes left in a folder.

Learners' files from other machines are copied into that folder first. Of a learner that left no
file, or a file of its last life only, the coordinator knows how far it had come whenever it spoke:
its loss then stands at those rounds, for all rounds since it spoke before.
"""

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from dynavg import checkpoint
from dynavg.engines.fleet.book import Book
from dynavg.engines.fleet.config import FleetConfig
from dynavg.engines.fleet.journal import JOURNAL_FILE, entries_of, kept_average
from dynavg.engines.fleet.task import Task
from dynavg.engines.history import Losses
from dynavg.engines.result import Result

__all__ = ["gather", "read_book"]

Trace = list[tuple[int, float, int, float]]
"""Round, loss (a sum), samples, correct (NaN where nobody counts)."""


def read_book(config: FleetConfig) -> Book:
    """The coordinator's records, read only; a coordinator may be writing them at the same time."""
    book = Book()
    book.read(_entries(config))
    return book


def gather(config: FleetConfig, task: Task) -> Result:
    """The result of a run so far. Who left no model is left out of the average; in its row stands
    the reference.
    """
    program, learners = task.program(), task.streams.learners
    entries, book, average = _so_far(config)
    row = program.initial_row()
    if average is not None:
        row[: len(average)] = average
    rows = row.repeat(learners, 1)
    fresh = program.layout.counters(program.prototype)
    counters = [[counter.clone() for counter in fresh] for _ in range(learners)]
    traces = _heard(entries)
    present = [id for id in range(learners) if config.learner_file(id).exists()]
    for id in present:
        tensors, _ = checkpoint.read(config.learner_file(id))
        rows[id] = tensors["row"]
        traces[id] = _merged(traces.get(id, []), tensors["rounds"])
        for number, counter in enumerate(counters[id]):
            counter.copy_(tensors[f"counter/{id}/{number}"])
    models = rows[present] if present else rows[:1]
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
        mean_row=models.double().mean(0).to(rows.dtype),
        counters=counters,
        shard="looped",
    )


def _entries(config: FleetConfig) -> list[dict[str, Any]]:
    return entries_of(config.coordinator_folder / JOURNAL_FILE)[0]


def _so_far(config: FleetConfig) -> tuple[list[dict[str, Any]], Book, Tensor | None]:
    """The journal, what it says, and the last reference (None: still the initial model). A
    coordinator at work may replace the reference after we have read its number: then again.
    """
    known = -1
    while True:
        book, entries = Book(), _entries(config)
        book.read(entries)
        since = 0 if book.state is None else book.state["reference_from"]
        if not since:
            return entries, book, None
        try:
            return entries, book, kept_average(config.coordinator_folder, since)
        except checkpoint.CheckpointError:
            if since == known:
                raise
            known = since


def _heard(entries: Iterable[dict[str, Any]]) -> dict[int, Trace]:
    """What each learner has said of its loss, as differences between its words."""
    before: dict[int, tuple[float, int, float]] = {}
    traces: dict[int, Trace] = {}
    for entry in entries:
        if entry["kind"] != "heard":
            continue
        id, sums = entry["id"], (entry["loss"], entry["samples"], entry["correct"])
        last = before.get(id, (0.0, 0, 0.0))
        if sums[1] < last[1]:  # it has started anew
            last = (0.0, 0, 0.0)
        before[id] = sums
        if sums[1] > last[1]:
            loss, samples, correct = (now - then for now, then in zip(sums, last, strict=True))
            traces.setdefault(id, []).append((entry["round"], loss, int(samples), correct))
    return traces


def _merged(heard: Trace, rounds: Tensor) -> Trace:
    """A learner's own trace, and what was heard of rounds that are not in it."""
    own: Trace = [
        (int(round), loss, int(samples), math.nan if correct < 0 else correct)
        for round, loss, samples, correct in rounds.tolist()
    ]
    known = {round for round, *_ in own}
    return own + [words for words in heard if words[0] not in known]


def _losses(traces: dict[int, Trace], learners: int, dtype: torch.dtype) -> Losses:
    rounds = max((round for trace in traces.values() for round, *_ in trace), default=0)
    losses = Losses(learners, rounds, dtype)
    losses.rounds = rounds
    assert losses.correct is not None, "they begin counting"
    for id, trace in traces.items():
        columns = torch.tensor([round - 1 for round, *_ in trace])
        for place, sums in enumerate((losses.losses, losses.samples, losses.correct), 1):
            sums[id].index_add_(0, columns, torch.tensor([t[place] for t in trace]).to(sums.dtype))
    if bool(losses.correct.isnan().any()):
        losses.correct = None
    return losses
