"""`dynavg compare` and `dynavg report`: what finished runs came to, side by side."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from dynavg.cli.output import AsJson, print_json, show, table_of
from dynavg.experiments.reproduce import finished_runs, report_on, told
from dynavg.report.points import points_of

__all__ = ["compare", "report"]

Runs = Annotated[
    list[Path],
    typer.Argument(metavar="RUN...", help="Folders of runs, of many runs, or of reports."),
]


def compare(runs: Runs, as_json: AsJson = False) -> None:
    """Print finished runs as one table; runs that differ in their seed only are one line.

    Examples: `dynavg compare out/my`, `dynavg compare out/runs/dynamic-* out/runs/periodic-*`
    """
    found = finished_runs(runs)
    if as_json:
        print_json([told(run) for run in found])
        return
    Console().print(table_of(points_of(found)))


def report(
    runs: Runs,
    out: Annotated[Path, typer.Option(help="The report's folder.")] = Path("out/report"),
    title: Annotated[str, typer.Option(help="What stands on top.")] = "Comparison of runs",
    as_json: AsJson = False,
) -> None:
    """Draw finished runs: a page that works without a network, and figures as PNG and SVG.

    Examples: `dynavg report out/my`, `dynavg report field/record --out field/report`
    """
    show(report_on(finished_runs(runs), out, title), as_json)
