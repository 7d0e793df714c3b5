"""A live view of a fleet on a terminal: who trains, who violates, balancing sets, bytes, loss."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.table import Table

from dynavg.engines.fleet.office import Office
from dynavg.protocol.ledger import readable_bytes

__all__ = ["fleet_table", "table_on"]

REFRESH = 0.2
"""Seconds between two pictures."""

SHOWN = 30
"""Learners shown at most."""


def fleet_table(office: Office) -> Table:
    """The fleet as it is now."""
    book, machine = office.book, office.machine
    last = book.checks[-1] if book.checks else None
    caption = f"{len(book.checks)} checks, {readable_bytes(book.ledger.total())} sent"
    if last is not None:
        caption += f"; last in round {last.round}: {last.cause or 'nobody spoke'}"
        caption += f", balancing set {last.balancing_set}" if last.balancing_set else ""
    title = f"{office.config.run}: {len(machine.members)} learners, epoch {machine.epoch}"
    table = Table(title=title, caption=caption)
    for name in ("learner", "state", "round", "violations", "loss per sample"):
        table.add_column(name, justify="left" if name == "state" else "right")
    for id, progress in list(book.rows())[:SHOWN]:
        seen = progress.all_samples
        loss = f"{progress.all_loss / seen:.4f}" if seen else ""
        violations = str(office.minutes.violations[id])
        table.add_row(str(id), _state(office, id), str(progress.round), violations, loss)
    return table


def _state(office: Office, id: int) -> str:
    machine = office.machine
    if id not in machine.members:
        return "[dim]gone[/dim]"
    if id in machine.pending:
        return "[red]violates[/red]"
    if id in machine.awaited:
        return "[yellow]is asked[/yellow]"
    if id in office.carrier.holding.models:
        return "[cyan]balances[/cyan]"
    return "[green]trains[/green]"


@contextmanager
def table_on(wanted: bool) -> Iterator[Callable[[Office], None]]:
    """What to call when something has changed; it draws as often as is useful."""
    if not wanted:
        yield lambda _: None
        return
    drawn = 0.0
    with Live(console=Console(stderr=True), auto_refresh=False) as live:

        def show(office: Office) -> None:
            nonlocal drawn
            now = time.monotonic()
            if now - drawn > REFRESH or not office.machine.members:
                drawn = now
                live.update(fleet_table(office), refresh=True)

        yield show
