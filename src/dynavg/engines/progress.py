"""How far a run is: a bar on a terminal, plain lines elsewhere, or nothing."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from dynavg.protocol.ledger import readable_bytes

if TYPE_CHECKING:
    from dynavg.engines.simulation import Simulation

__all__ = ["progress_on"]

REFRESH = 0.2
"""Seconds between two updates of the bar."""

LINE = 10.0
"""Seconds between two plain lines."""

Show = Callable[["Simulation"], None]


@contextmanager
def progress_on(wanted: bool | None, rounds: int) -> Iterator[Show]:
    """What to call when learners stand still; it shows something as often as is useful.

    True: always; False: never; None: only where standard error is a terminal.
    """
    console = Console(stderr=True)
    if wanted is False or (wanted is None and not console.is_terminal):
        yield lambda _: None
    elif console.is_terminal:
        with Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[facts]}"),
            console=console,
            transient=True,
        ) as bar:
            task = bar.add_task("rounds", total=rounds, facts="")
            yield _every(
                REFRESH,
                lambda facts, done: bar.update(task, completed=done, facts=facts),
            )
    else:
        yield _every(
            LINE,
            lambda facts, done: console.out(f"round {done}/{rounds}  {facts}", highlight=False),
        )


def _every(seconds: float, show: Callable[[str, int], object]) -> Show:
    start = last = time.monotonic()

    def told(simulation: "Simulation") -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < seconds:
            return
        last = now
        done, losses = simulation.round, simulation.losses
        recent = slice(max(0, done - 50), done)
        seen = losses.samples[:, recent].sum()
        loss = losses.losses[:, recent].double().sum() / seen
        all_seen = int(losses.samples[:, :done].sum())
        show(
            f"{done / (now - start):.1f} rounds/s  {all_seen / (now - start):,.0f} samples/s  "
            f"loss {loss:.4f}  {readable_bytes(simulation.sent_bytes)} sent",
            done,
        )

    return told
