"""What the commands of experiments share: options, progress on standard error, what they print."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from dynavg.experiments import tracking
from dynavg.experiments.reproduce import Outcome, Progress
from dynavg.report.page import COLUMNS, rows_of
from dynavg.report.points import Point

__all__ = ["AsJson", "Overrides", "Pictures", "Quiet", "Store", "print_json", "show", "teller"]

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON only.")]
Store = Annotated[Path, typer.Option("--out", help="Where runs and reports go.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
Pictures = Annotated[
    Path | None,
    typer.Option("--data", help="A folder with the dataset's IDX files; else they are fetched."),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change the spec; may be given repeatedly."),
]
Tensorboard = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Log each run there for TensorBoard.")
]
Mlflow = Annotated[bool, typer.Option("--mlflow", help="Log each run to MLflow.")]

STYLES = {True: "green", False: "red", None: "yellow"}


def teller(
    quiet: bool, tensorboard: Path | None = None, mlflow: bool = False
) -> Callable[[Progress], None]:
    """Says after each run how it went and how long the rest may take, and passes it to trackers."""
    console = Console(stderr=True, quiet=quiet)
    trackers = tracking.trackers(tensorboard, mlflow)
    start, fresh = time.monotonic(), 0

    def tell(progress: Progress) -> None:
        nonlocal fresh
        fresh += progress.fresh
        for track in trackers:
            track(progress.record)
        left = progress.total - progress.done
        reckoned = left * (time.monotonic() - start) / fresh if fresh else 0
        rest = f"; {_duration(reckoned)} left at most" if left and reckoned >= 1 else ""
        console.print(
            f"{progress.done}/{progress.total}  {_said(progress)}{rest}",
            highlight=False,
            soft_wrap=True,
        )

    return tell


def _said(progress: Progress) -> str:
    run = progress.record
    name = f"{run.spec['name']}, seed {run.spec['seed']}"
    if "diverged" in run.summary:
        return f"{name}: diverged in round {run.summary['diverged']['round']}"
    loss = f"loss {run.summary['loss_per_learner']:.5g}"
    took = f"in {_duration(run.summary['seconds'])}" if progress.fresh else "found done"
    return f"{name}: {loss}, {took}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def show(outcome: Outcome, as_json: bool) -> None:
    """Verdicts first, then the table, then where the page is; or all of it as JSON."""
    if as_json:
        print_json(outcome.as_dict())
        return
    console = Console()
    for verdict in outcome.verdicts:
        style = STYLES[verdict.holds]
        console.print(f"{verdict.id}  {verdict.word}", style=style, end="", highlight=False)
        console.print(f": {verdict.text}", highlight=False, markup=False)
        measured = verdict.measured.replace("; ", "\n" + " " * 14)
        console.print(f"    measured: {measured}", highlight=False, markup=False)
        console.print(f"    expected: {verdict.expected}", highlight=False, markup=False)
    console.print(table_of(outcome.points))
    typer.echo(f"report: {outcome.page}")


def table_of(points: Sequence[Point]) -> Table:
    """The runs, a line for each configuration."""
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        caption=COLUMNS,
        caption_justify="left",
    )
    headings, rows = rows_of(points)
    for place, heading in enumerate(headings):
        # On a narrow terminal the widest give way, names and losses: none may vanish.
        table.add_column(heading, justify="right" if place else "left")
    for row in rows:
        table.add_row(*row)
    return table


def print_json(content: Mapping[str, Any] | Sequence[Any]) -> None:
    """The only thing on standard output."""
    typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
