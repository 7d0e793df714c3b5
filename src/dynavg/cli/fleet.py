"""`dynavg fleet …`: broker, coordinator and learners as processes."""

import json
import subprocess
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

__all__ = ["app"]

app = typer.Typer(
    help="Run learners and a coordinator as real processes, over a NATS broker.",
    no_args_is_help=True,
)

Folder = Annotated[Path, typer.Argument(help="What `dynavg fleet init` made.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON only.")]

# The fleet needs an extra, so each command imports it when it is called.


@app.command()
def demo(
    learners: Annotated[int, typer.Option(min=1, help="Each in a process of its own.")] = 4,
    rounds: Annotated[int, typer.Option(min=1, help="Batches per learner.")] = 100,
    task: Annotated[
        str | None, typer.Option(help="Import path of a function (learners, rounds) -> Task.")
    ] = None,
    pace: Annotated[str, typer.Option(help="free or lockstep.")] = "free",
    out: Annotated[Path | None, typer.Option(help="Keep the fleet's folder here.")] = None,
    as_json: AsJson = False,
) -> None:
    """Start a broker, a coordinator and learners on this machine, over TLS, and watch them.

    Examples: `dynavg fleet demo --learners 4 --rounds 100`,
    `dynavg fleet demo --pace lockstep --json`
    """
    from dynavg import fleet  # noqa: PLC0415

    arguments = {"learners": learners, "rounds": rounds}
    source = None if task is None else fleet.TaskSource(factory=task, arguments=arguments)
    result = fleet.demo(
        learners, rounds, task=source, pace=pace, table=not as_json, folder=out
    ).as_dict()
    if as_json:
        typer.echo(json.dumps(result, indent=2))
        return
    for name, value in result.items():
        typer.echo(f"{name.replace('_', ' ')}: {value}")


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="A new or empty folder.")],
    learners: Annotated[int, typer.Option(min=1, help="How many the run starts with.")],
    task: Annotated[
        str, typer.Option(help="Import path of a function that returns a dynavg.fleet.Task.")
    ] = "dynavg.engines.fleet.builtin:drift_task",
    pace: Annotated[str, typer.Option(help="free or lockstep.")] = "free",
    host: Annotated[str, typer.Option(help="Where the broker listens.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="The broker's port.")] = 4222,
    name: Annotated[
        list[str] | None, typer.Option(help="The broker's names for learners; the first is used.")
    ] = None,
) -> None:
    """Make a fleet's folder: configuration, CA, certificates, the broker's permissions.

    Example: `dynavg fleet init field --learners 10 --task my_pkg.field:task`
    """
    from dynavg import fleet  # noqa: PLC0415

    made = fleet.init(
        folder,
        fleet.FleetConfig.model_validate({"learners": learners, "pace": pace}),
        fleet.TaskSource(factory=task, arguments={"learners": learners}),
        host=host,
        port=port,
        reached_as=tuple(name or ("localhost", "127.0.0.1")),
    )
    typer.echo(f"{folder}: {len(made.config.hosts)} learners, broker at {made.config.url}")


@app.command()
def broker(folder: Folder) -> None:
    """Run the broker that comes with `dynavg[fleet]`, with the folder's TLS and permissions.

    Example: `dynavg fleet broker field`
    """
    from dynavg import fleet  # noqa: PLC0415

    raise typer.Exit(subprocess.run(fleet.broker_command(folder), check=False).returncode)


@app.command()
def coordinator(folder: Folder) -> None:
    """Run the coordinator until the learners are done; started again, it takes up its journal.

    Example: `dynavg fleet coordinator field`
    """
    from dynavg import fleet  # noqa: PLC0415

    fleet.run_coordinator(folder)


@app.command()
def learner(
    folder: Folder,
    first: Annotated[int, typer.Option("--id", min=0, help="The (first) learner's id.")],
    count: Annotated[int, typer.Option(min=1, help="Learners in this process.")] = 1,
) -> None:
    """Run one learner, or several with ids one after the other, in this process.

    Example: `dynavg fleet learner field --id 3`
    """
    from dynavg import fleet  # noqa: PLC0415

    fleet.run_learners(folder, range(first, first + count))


@app.command()
def status(folder: Folder, as_json: AsJson = False) -> None:
    """Say how a fleet is doing, from its coordinator's journal; nobody is asked.

    Example: `dynavg fleet status field --json`
    """
    from dynavg import fleet  # noqa: PLC0415

    now = fleet.status(fleet.load(folder).config).as_dict()
    if as_json:
        typer.echo(json.dumps(now, indent=2))
        return
    console = Console()
    for name, value in now.items():
        console.print(f"{name}: {value}", highlight=False)
