"""`dynavg drive`: a model, or the best driver, drives; you watch and get the facts."""

import json
import logging
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

__all__ = ["drive"]

HERE = ("--track", "--day", "--laps", "--gif", "--map")
"""Options of a drive on our own roads."""


def drive(
    context: typer.Context,
    model: Annotated[
        str, typer.Argument(help="A .safetensors file of the driving network, or 'expert'.")
    ],
    track: Annotated[str, typer.Option(help="training, mirror, narrow or heldout.")] = "training",
    day: Annotated[str, typer.Option(help="noon, morning, forest, evening or rough.")] = "noon",
    laps: Annotated[int, typer.Option(min=1, help="Laps after which the drive is over.")] = 2,
    gif: Annotated[
        Path | None, typer.Option(help="Film what the car sees and where it is.")
    ] = None,
    picture: Annotated[Path | None, typer.Option("--map", help="Draw where it drove.")] = None,
    udacity: Annotated[
        bool, typer.Option("--udacity", help="Drive the original simulator, on port 4567.")
    ] = False,
    speed: Annotated[float, typer.Option(min=1, help="With --udacity: miles per hour.")] = 9.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Let a model drive until it leaves the road or has done its laps.

    Examples: `dynavg drive expert --track narrow --gif out.gif`,
    `dynavg drive model.safetensors --json`, `dynavg drive model.safetensors --udacity`
    """
    # Imported here: the package needs an extra, which the other commands do without.
    from dynavg import driving  # noqa: PLC0415

    _check_options(context, udacity=udacity)
    if udacity:
        logging.basicConfig(format="%(message)s")  # to standard error
        logging.getLogger("dynavg.driving").setLevel(logging.INFO)
        served = driving.drive_simulator(model, speed)
        typer.echo(json.dumps(asdict(served)) if as_json else str(served))
        return
    result = driving.drive(
        model, driving.Start(track, day=day), laps=laps, gif=gif, map_picture=picture
    )
    if as_json:
        typer.echo(json.dumps(result.as_dict(), indent=2))
        return
    Console().print(
        f"{result.model} on {result.track}, {result.day}: {result.outcome} after "
        f"{result.t:.1f} s and {result.laps:.2f} laps; {result.crossings} crossings, "
        f"{result.t_line:.1f} s on a sideline",
        highlight=False,
    )
    for written in (gif, picture):
        if written is not None:
            typer.echo(f"picture: {written}")


def _check_options(context: typer.Context, *, udacity: bool) -> None:
    """Refuse what would have no effect."""
    given = {
        parameter.opts[0]
        for parameter in context.command.params
        if (source := context.get_parameter_source(parameter.name or "")) is not None
        and source.name == "COMMANDLINE"
    }
    if udacity and (useless := [name for name in HERE if name in given]):
        raise ValueError(
            f"{', '.join(useless)}: not with --udacity, which drives on roads of its own"
        )
    if not udacity and "--speed" in given:
        raise ValueError("--speed goes with --udacity; on our own roads, all cars are equally fast")
