"""What the commands do: run one process of the fleet in a folder, until it is done or told to stop.

SIGTERM and SIGINT end it in order: state saved, the others told. Where there is nothing to save
yet, because the broker was not reached, they end it at once.
"""

import asyncio
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from dynavg.engines.fleet import folder as folders
from dynavg.engines.fleet.broker import BROKER_FILE, server_program
from dynavg.engines.fleet.crew import Crew
from dynavg.engines.fleet.metrics import metrics_served
from dynavg.engines.fleet.office import Office

__all__ = ["run_broker", "run_coordinator", "run_learners"]


def run_coordinator(folder: Path, watch: Callable[[Office], None] = lambda _: None) -> Office:
    """Coordinate the fleet in `folder`; afterwards the office holds the records."""
    torch.set_num_threads(1)
    fleet = folders.load(folder)
    with metrics_served(fleet.config.metrics_port) as observe:

        def both(office: Office) -> None:
            observe(office)
            watch(office)

        office = Office(fleet.config, fleet.task.make_any(), both)
        with _ended_by_signals(office.stop):
            asyncio.run(office.run())
    return office


def run_learners(folder: Path, ids: range) -> None:
    """Train these learners of the fleet in `folder`."""
    torch.set_num_threads(1)  # many processes share the cores
    fleet = folders.load(folder)
    crew = Crew(fleet.config, fleet.task.make(), ids)
    with _ended_by_signals(crew.stop):
        crew.run()


def run_broker(folder: Path) -> int:
    """Run the broker of the fleet in `folder` until it is told to stop; its exit code."""
    folders.load(folder)  # says what is missing
    process = subprocess.Popen([server_program(), "--config", BROKER_FILE], cwd=folder)

    def stop() -> bool:
        process.terminate()
        return True

    with _ended_by_signals(stop):
        return process.wait()


@contextmanager
def _ended_by_signals(stop: Callable[[], bool]) -> Iterator[None]:
    """`stop` says whether it will come to an end in order."""

    def told(*_: object) -> None:
        if not stop():
            raise KeyboardInterrupt

    numbers = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.signal(number, told) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
