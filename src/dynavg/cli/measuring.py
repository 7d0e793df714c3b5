"""`dynavg bench`: how fast the simulator is."""

import json
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from dynavg.experiments import speed

__all__ = ["bench"]


def bench(
    quick: Annotated[bool, typer.Option(help="Smaller and noisier, in under a minute.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Measure how fast the simulator is, as ratios against baselines measured in the same run.

    Run it on an idle machine: a busy one punishes the baseline more than the simulator.

    Example: `dynavg bench --quick --json`
    """
    console = Console(stderr=True)
    measured = []
    for ratio in speed.measure(quick):
        measured.append(ratio)
        console.print(f"{ratio.name}: {ratio.ratio:.3g} ({ratio.reach})", highlight=False)
    if as_json:
        typer.echo(json.dumps([asdict(ratio) for ratio in measured], indent=2))
        return
    table = Table()
    table.add_column("what")
    for heading in ("ratio", "reach", "holds"):
        table.add_column(heading, justify="right")
    for ratio in measured:
        holds = "yes" if ratio.holds else "no"
        table.add_row(ratio.name, f"{ratio.ratio:.3g}", ratio.reach, holds)
    Console().print(table)
