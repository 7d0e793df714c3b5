"""A fleet's run as a record folder of the same format as a simulation's, for `dynavg report`."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from dynavg import records
from dynavg.engines.fleet import folder as folders
from dynavg.engines.fleet.folder import Fleet
from dynavg.engines.fleet.gathering import gather, read_book
from dynavg.engines.fleet.task import Task
from dynavg.experiments.assembly import concepts_of
from dynavg.experiments.fleet_task import SPEC_FILE, one_run
from dynavg.experiments.running import circumstances, keep
from dynavg.experiments.specfile import load
from dynavg.operators import OPERATORS

__all__ = ["RECORD", "record"]

RECORD = "record"


def record(folder: Path, out: Path | None = None) -> records.Record | None:
    """Write what the fleet in `folder` has come to so far into `out` (default: `record` in it).
    None for learners with training loops of their own: they keep their losses to themselves.

    What the run's processes left must be there: the coordinator's journal, and the learners' files
    where every round's loss is wanted.
    """
    fleet = folders.load(folder)
    task = fleet.task.make_any()
    if not isinstance(task, Task):
        return None
    book = read_book(fleet.config)
    result = gather(fleet.config, task)
    facts = {
        **concepts_of(task.streams, result.rounds),
        "machine": circumstances(),
        "fleet": {
            "pace": fleet.config.pace,
            "handed_out_bytes": book.handed_out.total(),
            **{name: _sum(book.lives, name) for name in ("small_talk", "wire_bytes", "lost")},
            "coordinators": len(book.lives),
            "refused": len(book.refused),
        },
    }
    seconds = _sum(book.lives, "seconds") or 0.0
    return keep(out or folder / RECORD, _told(fleet, task), result, seconds, facts)


def _told(fleet: Fleet, task: Task) -> dict[str, Any]:
    """The run in the words of a spec; of a task of the user's own, what can be said."""
    if fleet.task.file is not None and fleet.task.file.name == SPEC_FILE:
        spec = one_run(load(fleet.task.file))
        return spec.model_dump(mode="json") | {"operator": spec.operator}
    kinds = {made: kind for kind, made in OPERATORS.items()}
    operator: Any = task.operator
    return {
        "name": fleet.config.run,
        "operator": {"kind": kinds.get(type(operator), "own"), **asdict(operator)},
        "learners": task.streams.learners,
        "rounds": task.rounds,
        "seed": task.seed,
        "task": fleet.task.model_dump(mode="json"),
    }


def _sum(lives: list[dict[str, Any]], name: str) -> float | None:
    known = [life[name] for life in lives if life[name] is not None]
    return sum(known) if known else None
