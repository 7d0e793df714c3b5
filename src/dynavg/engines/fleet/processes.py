"""Processes of a fleet on this machine, for trying out and for tests.

They are forked from a server that has imported everything once: a process that imports torch for
itself needs two seconds of a core before it can do anything.
"""

import multiprocessing
import multiprocessing.forkserver
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path

from dynavg.engines.fleet.logs import log_to
from dynavg.engines.fleet.running import run_coordinator, run_learners

__all__ = ["ended", "start_coordinator", "start_learners"]

_FORKED = multiprocessing.get_context("forkserver")
_FORKED.set_forkserver_preload([__name__, "dynavg.engines.fleet.warm"])


def start_coordinator(folder: Path) -> BaseProcess:
    """A coordinator process for the fleet in `folder`, logging into it."""
    return _started(_coordinator, str(folder))


def start_learners(folder: Path, ids: range) -> BaseProcess:
    """A process with these learners, logging into the folder."""
    return _started(_learners, str(folder), ids.start, ids.stop)


@contextmanager
def ended(processes: list[BaseProcess], seconds: float = 10.0) -> Iterator[None]:
    """At the end of the block these processes have ended: by themselves, asked to, or killed."""
    try:
        yield
    finally:
        for process in processes:
            if process.is_alive():
                process.terminate()
        for process in processes:
            process.join(seconds)
            if process.is_alive():
                process.kill()
                process.join()


def _started(target: object, *arguments: str | int) -> BaseProcess:
    process = _FORKED.Process(target=target, args=arguments, daemon=True)  # type: ignore[arg-type]
    process.start()
    return process


def _coordinator(folder: str) -> None:
    _log_into(Path(folder) / "coordinator.log")
    run_coordinator(Path(folder))


def _learners(folder: str, first: int, stop: int) -> None:
    _log_into(Path(folder) / f"learner-{first}.log")
    run_learners(Path(folder), range(first, stop))


def _log_into(path: Path) -> None:
    """Everything that this process says, until its end, a last traceback too."""
    sys.stderr = path.open("a", buffering=1)
    log_to(sys.stderr)
