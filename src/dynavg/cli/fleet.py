"""`dynavg fleet …`: broker, coordinator and learners as processes."""

import json
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

__all__ = ["app"]

app = typer.Typer(
    help="Run learners and a coordinator as real processes, over a NATS broker.",
    no_args_is_help=True,
)

Place = Annotated[
    Path, typer.Argument(metavar="DIR", help="What `dynavg fleet init` made, or the spec in it.")
]
Learners = Annotated[int | None, typer.Option(min=1, help="How many; else as the spec says.")]
Pace = Annotated[str, typer.Option(help="free, or lockstep as in a simulation.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON only.")]

# The fleet needs an extra, so each command imports it when it is called.


@app.command()
def demo(
    spec: Annotated[
        Path | None, typer.Argument(help="A spec of one run; else drifting data come along.")
    ] = None,
    learners: Learners = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="Batches per learner; else as the spec says.")
    ] = None,
    pace: Pace = "free",
    out: Annotated[Path | None, typer.Option(help="Keep the fleet's folder here.")] = None,
    as_json: AsJson = False,
) -> None:
    """Start a broker, a coordinator and learners on this machine, over TLS, and watch them.

    Examples: `dynavg fleet demo --learners 4 --rounds 100`,
    `dynavg fleet demo spec.toml --learners 8 --out field`
    """
    from dynavg import fleet  # noqa: PLC0415

    chosen = fleet.spec_of(spec, learners, rounds)
    with tempfile.TemporaryDirectory(prefix="dynavg-fleet-") as temporary:
        folder = Path(temporary) / "fleet" if out is None else out
        config = fleet.FleetConfig.model_validate(
            {"learners": chosen.learners, "pace": pace, "run": "demo"} | fleet.WATCHED
        )
        fleet.init_from_spec(folder, chosen, config, port=fleet.free_port())
        result = fleet.demo(folder, table=not as_json).as_dict()
        fleet.record(folder)
    if as_json:
        typer.echo(json.dumps(result, indent=2))
        return
    for name, value in result.items():
        typer.echo(f"{name.replace('_', ' ')}: {value}")
    if out is not None:
        typer.echo(f"record: {out / 'record'}")


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new or empty folder.")],
    learners: Learners = None,
    spec: Annotated[
        Path | None, typer.Option(help="A spec of one run; it is copied into the folder.")
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(help="Instead: import path of a function that returns a dynavg.fleet task."),
    ] = None,
    together: Annotated[
        int, typer.Option(min=1, help="Learners per process, and so per certificate.")
    ] = 1,
    pace: Pace = "free",
    host: Annotated[str, typer.Option(help="Where the broker listens.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="The broker's port.")] = 4222,
    name: Annotated[
        list[str] | None, typer.Option(help="The broker's names for learners; the first is used.")
    ] = None,
) -> None:
    """Make a fleet's folder: spec, configuration, CA, certificates, the broker's permissions.

    Examples: `dynavg fleet init field --learners 10`,
    `dynavg fleet init field --learners 10 --spec spec.toml --host 0.0.0.0 --name broker.example`
    """
    from dynavg import fleet  # noqa: PLC0415

    if task is not None and (spec is not None or learners is None):
        raise typer.BadParameter("--task goes with --learners, and without --spec")
    chosen = fleet.spec_of(spec, learners)
    names = tuple(name or ("localhost", "127.0.0.1"))
    m = learners or chosen.learners
    config = fleet.FleetConfig.model_validate({"learners": m, "pace": pace})
    hosts = [range(first, min(first + together, m)) for first in range(0, m, together)]
    if task is None:
        made = fleet.init_from_spec(
            folder, chosen, config, host=host, port=port, reached_as=names, hosts=hosts
        )
    else:
        source = fleet.TaskSource(factory=task)
        made = fleet.init(
            folder, config, source, host=host, port=port, reached_as=names, hosts=hosts
        )
    ids = "--id 0" if together == 1 else f"--id 0 --count {len(hosts[0])}"
    typer.echo(
        f"{folder}: {m} learners, broker at {made.config.url}\n"
        f"next: dynavg fleet broker {folder}, dynavg fleet coordinator {folder}, and for every "
        f"{'learner' if together == 1 else 'process'} dynavg fleet learner {folder} {ids}"
    )


@app.command()
def broker(place: Place) -> None:
    """Run the broker that comes with `dynavg[fleet]`, with the folder's TLS and permissions.

    Example: `dynavg fleet broker field`
    """
    from dynavg import fleet  # noqa: PLC0415

    raise typer.Exit(fleet.run_broker(fleet.folder_of(place)))


@app.command()
def coordinator(place: Place) -> None:
    """Run the coordinator until the learners are done; started again, it takes up its journal.

    Example: `dynavg fleet coordinator field`
    """
    from dynavg import fleet  # noqa: PLC0415

    fleet.log_to()
    folder = fleet.folder_of(place)
    fleet.run_coordinator(folder)
    if (written := fleet.record(folder)) is not None:
        typer.echo(f"record: {written.folder}")


@app.command()
def learner(
    place: Place,
    first: Annotated[int, typer.Option("--id", min=0, help="The (first) learner's id.")],
    count: Annotated[int, typer.Option(min=1, help="Learners in this process.")] = 1,
) -> None:
    """Run one learner, or several with ids one after the other, in this process.

    Example: `dynavg fleet learner field --id 3`
    """
    from dynavg import fleet  # noqa: PLC0415

    fleet.log_to()
    fleet.run_learners(fleet.folder_of(place), range(first, first + count))


@app.command()
def status(place: Place = Path(), as_json: AsJson = False) -> None:
    """Say how a fleet is doing, from its coordinator's journal; nobody is asked.

    Example: `dynavg fleet status field --json`
    """
    from dynavg import fleet  # noqa: PLC0415

    now = fleet.status(fleet.load(fleet.folder_of(place)).config).as_dict()
    if as_json:
        typer.echo(json.dumps(now, indent=2))
        return
    console = Console()
    for name, value in now.items():
        console.print(f"{name}: {value}", highlight=False)


@app.command()
def record(
    place: Place,
    out: Annotated[Path | None, typer.Option(help="Where it goes; else `record` in DIR.")] = None,
) -> None:
    """Write the run's record again, after learners' files from other machines have been copied to
    DIR/state: with them it has the loss of every round.

    Example: `dynavg fleet record field`
    """
    from dynavg import fleet  # noqa: PLC0415

    written = fleet.record(fleet.folder_of(place), out)
    if written is None:
        raise typer.BadParameter("learners with training loops of their own keep their losses")
    typer.echo(f"record: {written.folder}")
