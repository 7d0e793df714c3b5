"""Runs, from their specs to their folders: resumed where they stopped, never done twice.

A store is a folder with a folder for each run, whose name ends with the spec's key; experiments
that share a run find each other's.
"""

import platform
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from dynavg import records
from dynavg.engines.api import serial, simulate
from dynavg.engines.history import DivergedError
from dynavg.engines.result import Result
from dynavg.experiments.assembly import arguments_of, concepts_of
from dynavg.experiments.spec import RunSpec, operator_of
from dynavg.protocol.ledger import View
from dynavg.records import Record

__all__ = ["Also", "StoppedError", "finished", "keep", "run", "run_all", "summary_of"]

CHECKPOINT = "checkpoint.safetensors"

Also = Callable[[RunSpec, Result, Path], dict[str, Any]]
"""What else is to be found out about a run: it writes into the run's folder, and returns what goes
into the summary.
"""


class StoppedError(Exception):
    """Ctrl-C; what was done is kept, and the message says how to go on."""


def run_all(
    specs: Sequence[RunSpec],
    store: Path,
    *,
    progress: bool | None = None,
    also: Also | None = None,
) -> Iterator[tuple[Record, bool]]:
    """One run after the other; with each whether it was done now, or found done."""
    for spec in specs:
        found = finished(spec, store)
        if found is None:
            yield run(spec, store / spec.folder_name, progress=progress, also=also), True
        else:
            yield found, False


def finished(spec: RunSpec, store: Path) -> Record | None:
    """The run of that spec in the store, under the name that the spec gives it; None if there is
    none, or an unfinished one.
    """
    for folder in sorted(store.glob(f"*-{spec.key}")):
        if records.is_finished(folder):
            found = records.read(folder)
            return replace(found, spec={**found.spec, "name": spec.name})
    return None


def run(
    spec: RunSpec, folder: Path, *, progress: bool | None = None, also: Also | None = None
) -> Record:
    """Do the run in its folder, or go on with it where it stopped."""
    start = time.perf_counter()
    arguments = arguments_of(spec)
    facts = concepts_of(arguments["streams"], spec.rounds) | {"machine": circumstances()}
    checkpoint = folder / CHECKPOINT
    arguments |= {
        "checkpoint": checkpoint,
        "checkpoint_every": max(10, spec.rounds // 10),
        "resume": checkpoint.exists(),
        "progress": progress,
    }
    told = spec.model_dump(mode="json") | {"operator": spec.operator}
    try:
        result = _simulated(spec, arguments)
    except DivergedError as error:
        what = {"learner": error.learner, "round": error.round, "what": error.what}
        facts |= {"diverged": what, "seconds": time.perf_counter() - start}
        named = {"operator": str(operator_of(spec.operator) or "serial")}
        record = records.write_unfinished(folder, told, {**named, **facts})
    except KeyboardInterrupt as stopped:
        why = str(stopped).partition(";")[0] or "stopped"
        raise StoppedError(f"{spec.name}: {why}; the same command goes on from there") from None
    else:
        folder.mkdir(parents=True, exist_ok=True)
        facts |= also(spec, result, folder) if also is not None else {}
        record = keep(folder, told, result, time.perf_counter() - start, facts)
    checkpoint.unlink(missing_ok=True)
    return record


def _simulated(spec: RunSpec, arguments: Mapping[str, Any]) -> Result:
    operator = operator_of(spec.operator)
    if operator is None:
        return serial(**arguments, batch=spec.operator.get("batch", "sequential"))
    return simulate(**arguments, operator=operator)


def keep(
    folder: Path,
    spec: Mapping[str, Any],
    result: Result,
    seconds: float,
    facts: Mapping[str, Any] | None = None,
) -> Record:
    """Write a result's records."""
    return records.write(
        folder,
        spec,
        {**summary_of(result, seconds), **(facts or {"machine": circumstances()})},
        result.history,
        result.ledger,
        result.model().state_dict(),
    )


def summary_of(result: Result, seconds: float) -> dict[str, Any]:
    """What a run came to, in a few numbers."""
    checks = result.checks
    counted = result.losses.correct is not None
    last = result.evaluations[-1] if result.evaluations else None
    return {
        "operator": "serial" if result.operator is None else str(result.operator),
        "learners": result.learners,
        "rounds": result.rounds,
        "samples": result.samples,
        "cumulative_loss": result.cumulative_loss,
        "loss_per_learner": result.loss_per_learner,
        "accuracy": result.accuracy() if counted else None,
        "accuracy_last_100": result.accuracy(last=100) if counted else None,
        "held_out_loss": None if last is None else last.loss,
        "held_out_accuracy": None if last is None else last.accuracy,
        "bytes": {view.value: result.bytes(view) for view in View},
        "checks": len(checks),
        "violations": sum(check.violations for check in checks),
        "full_synchronisations": sum(check.full for check in checks),
        "partial_synchronisations": sum(
            not check.full for check in checks if check.cause is not None
        ),
        "notes": list(result.notes),
        "shard": result.shard,
        "seconds": seconds,
    }


def circumstances() -> dict[str, Any]:
    """Versions, commit and machine: what a run's numbers may depend on besides its spec."""
    return {
        "dynavg": version("dynavg"),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {torch.get_num_threads()} threads",
        "commit": _commit(),
    }


def _commit() -> str | None:
    """The commit of the source tree, if dynavg runs from one."""
    here = Path(__file__).parent
    asked = subprocess.run(
        ["git", "-C", str(here), "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    )
    return asked.stdout.strip() if asked.returncode == 0 else None
