"""`dynavg demo`: a first look at the protocols on MNIST."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from dynavg.experiments import comparison
from dynavg.protocol.ledger import readable_bytes
from dynavg.records import Record
from dynavg.report import figures

__all__ = ["demo"]


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
