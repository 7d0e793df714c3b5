"""The command line: parse, call, print. No logic lives here."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

import dynavg
from dynavg.experiments import comparison, speed
from dynavg.protocol.ledger import readable_bytes
from dynavg.records import Record
from dynavg.report import figures

__all__ = ["app", "main"]

app = typer.Typer(
    help="Decentralised deep learning that communicates only when it pays.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)


@app.callback()
def _root() -> None:
    """With a callback, typer keeps the commands' names even while there is only one."""


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(dynavg.__version__)


@app.command()
def demo(
    data: Annotated[
        Path | None, typer.Option(help="Folder with the four IDX files of MNIST, raw or .gz.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Where the runs and the picture go.")] = Path(
        "runs/demo"
    ),
    rounds: Annotated[int, typer.Option(min=1, help="Batches of 10 per learner.")] = 400,
    seed: Annotated[int, typer.Option(help="All randomness follows from it.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Compare nosync, periodic, FedAvg and dynamic averaging on MNIST, in a few minutes.

    Ten learners train the paper's CNN, each on its own stream. MNIST is fetched once and cached.

    Example: `dynavg demo --rounds 100 --out /tmp/demo`
    """
    console = Console(stderr=True)
    runs: dict[str, Record] = {}
    total = len(comparison.PROTOCOLS)
    for name, run in comparison.compare(out, data, rounds=rounds, seed=seed):
        runs[name] = run
        console.print(
            f"{len(runs)}/{total}  {name}: {run.summary['seconds']:.0f} s", highlight=False
        )
    picture = out / "comparison.png"
    figures.comparison(runs, picture)
    if as_json:
        summaries = [{"name": name, **run.summary} for name, run in runs.items()]
        typer.echo(json.dumps({"runs": summaries, "picture": str(picture)}, indent=2))
        return
    Console().print(_table(runs))
    typer.echo(f"picture: {picture}")


@app.command()
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


def _table(runs: dict[str, Record]) -> Table:
    table = Table(title="MNIST, 10 learners, the paper's CNN", title_justify="left")
    table.add_column("protocol", no_wrap=True)
    for heading in ("loss per learner", "accuracy", "bytes", "saved against periodic"):
        table.add_column(heading, justify="right")
    baseline = runs[comparison.BASELINE].summary["bytes"]["total"]
    for name, run in runs.items():
        sent = run.summary["bytes"]["total"]
        table.add_row(
            name,
            f"{run.summary['loss_per_learner']:.1f}",
            f"{run.summary['accuracy_last_100']:.3f}",
            readable_bytes(sent),
            f"{1 - sent / baseline:.0%}",
        )
    table.caption = "accuracy: on each learner's last 100 samples, before learning from them"
    return table


def main() -> None:
    """The entry point: what users can mend is one line, not a traceback."""
    try:
        app()
    except (dynavg.data.DataUnavailable, ValueError, TypeError, OSError) as error:
        Console(stderr=True).print(f"dynavg: {error}", style="red", highlight=False, markup=False)
        sys.exit(1)
    except KeyboardInterrupt:
        Console(stderr=True).print("dynavg: interrupted", style="red")
        sys.exit(130)
