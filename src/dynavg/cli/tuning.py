"""`dynavg tune`: find Δ for a goal, and write the spec with it."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from dynavg.cli.output import AsJson, Overrides, Pictures, print_json
from dynavg.experiments import tuning
from dynavg.experiments.reproduce import RUNS, report_on
from dynavg.experiments.specfile import load, to_toml
from dynavg.protocol.ledger import readable_bytes

__all__ = ["tune"]


def tune(
    spec: Annotated[Path, typer.Argument(metavar="SPEC.toml", help="What Δ is wanted for.")],
    target: Annotated[
        str | None,
        typer.Option(help="loss=+5%: the largest Δ whose loss is that close to periodic's."),
    ] = None,
    budget: Annotated[
        str | None, typer.Option(help="2GB: the smallest Δ whose whole run sends no more.")
    ] = None,
    learners: Annotated[
        int | None, typer.Option(min=1, help="In the short runs; else a fifth, at least 4.")
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="In the short runs; else a fifth, at least 100.")
    ] = None,
    most: Annotated[int, typer.Option("--runs", min=1, help="Short runs at most.")] = 12,
    overrides: Overrides = None,
    data: Pictures = None,
    out: Annotated[Path, typer.Option("--out", help="Where runs and the report go.")] = Path("out"),
    as_json: AsJson = False,
) -> None:
    """Find Δ in a few short runs, on a share of the learners and rounds, and write it down.

    The bytes of the whole run are reckoned in proportion to learners and rounds: too many where
    learning grows quiet, too few where more learners violate more often. SPEC.tuned.toml beside the
    spec has the value found.

    Examples: `dynavg tune my.toml --target loss=+5%`, `dynavg tune my.toml --budget 2GB`
    """
    console = Console(stderr=True)
    goal = tuning.goal_of(target, budget)

    def tell(trial: tuning.Trial) -> None:
        console.print(f"{_name(trial)}: {_came_to(trial)}", highlight=False)

    found = tuning.tune(
        load(spec, overrides or ()).with_folder(data),
        goal,
        out / RUNS,
        learners=learners,
        rounds=rounds,
        most=most,
        tell=tell,
    )
    written = tuning.tuned_path(spec)
    written.write_text(to_toml(found.spec), encoding="utf-8")
    records = [trial.record for trial in (found.periodic, *found.trials)]
    outcome = report_on(records, out / written.stem, f"Δ for {spec.name}: {goal}")
    if as_json:
        print_json({"delta": found.delta, "spec": str(written), **outcome.as_dict()})
        return
    Console().print(_table(found))
    [chosen] = [trial for trial in found.trials if trial.delta == found.delta]
    if goal.exhausted(chosen, found.periodic):
        typer.echo("The goal asks for no balance: beyond this Δ the short runs do not change.")
    typer.echo(f"Δ = {found.delta:g}: {goal}\nspec: {written}\nreport: {outcome.page}")


def _name(trial: tuning.Trial) -> str:
    return f"Δ = {trial.delta:g}" if trial.delta else "periodic"


def _came_to(trial: tuning.Trial) -> str:
    return f"loss {trial.loss:.5g}, the whole run would send {readable_bytes(trial.bytes)}"


def _table(found: tuning.Tuned) -> Table:
    table = Table()
    table.add_column("", no_wrap=True)
    for heading in ("loss per learner", "against periodic", "bytes of the whole run"):
        table.add_column(heading, justify="right")
    trials = sorted(found.trials, key=lambda trial: trial.delta)
    for trial in (found.periodic, *trials):
        share = f"{trial.loss / found.periodic.loss - 1:+.1%}"
        chosen = "bold" if trial.delta == found.delta else None
        cells = (f"{trial.loss:.5g}", share, readable_bytes(trial.bytes))
        table.add_row(_name(trial), *cells, style=chosen)
    return table
