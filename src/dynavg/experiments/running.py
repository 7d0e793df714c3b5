"""One run, from its description to its folder."""

import platform
import subprocess
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from dynavg import records
from dynavg.engines.result import Result
from dynavg.protocol.ledger import View

__all__ = ["circumstances", "keep", "summary_of"]


def keep(folder: Path, spec: Mapping[str, Any], result: Result, seconds: float) -> records.Record:
    """Write a run's records."""
    return records.write(
        folder,
        {**spec, "circumstances": circumstances()},
        summary_of(result, seconds),
        result.history,
        result.ledger,
        result.model().state_dict(),
    )


def summary_of(result: Result, seconds: float) -> dict[str, Any]:
    """What a run came to, in a few numbers."""
    checks = result.checks
    return {
        "operator": "serial" if result.operator is None else str(result.operator),
        "learners": result.learners,
        "rounds": result.rounds,
        "samples": result.samples,
        "cumulative_loss": result.cumulative_loss,
        "loss_per_learner": result.loss_per_learner,
        "accuracy": None if result.losses.correct is None else result.accuracy(),
        "accuracy_last_100": None if result.losses.correct is None else result.accuracy(last=100),
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
