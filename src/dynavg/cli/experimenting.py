"""`dynavg run` and `dynavg reproduce`: a spec of one's own, or an experiment of the paper."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dynavg.cli.output import (
    AsJson,
    Mlflow,
    Overrides,
    Pictures,
    Quiet,
    Store,
    Tensorboard,
    show,
    teller,
)
from dynavg.experiments import reproduce as reproducing
from dynavg.experiments.catalogue import NAMES, experiment_named
from dynavg.experiments.specfile import load

__all__ = ["reproduce", "run"]

OUT = Path("out")
Scale = StrEnum("Scale", {"smoke": "smoke", "quick": "quick", "full": "full"})


def run(
    spec: Annotated[Path, typer.Argument(metavar="SPEC.toml", help="What to run.")],
    overrides: Overrides = None,
    data: Pictures = None,
    out: Store = OUT,
    tensorboard: Tensorboard = None,
    mlflow: Mlflow = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Do all runs of a spec, and report on them.

    A spec names data, model, loss, optimiser, learners, rounds, operators to compare, a grid and
    seeds; docs/experiments.md has all keys. Models and data of your own are import paths
    ("my_nets:make") of modules in this folder or installed ones. Ctrl-C loses nothing: the same
    command goes on, and a finished run is not done again.

    Examples: `dynavg run my.toml`, `dynavg run my.toml --set optimizer.lr=0.05 --set rounds=200`
    """
    chosen = load(spec, overrides or ()).with_folder(data)
    outcome = reproducing.run_spec(
        chosen,
        out,
        name=spec.stem,
        progress=not quiet,
        tell=teller(quiet, tensorboard, mlflow),
    )
    show(outcome, as_json)


def reproduce(
    experiment: Annotated[
        str,
        typer.Argument(help=f"One of {', '.join(NAMES)}.", autocompletion=lambda: list(NAMES)),
    ],
    scale: Annotated[
        Scale,
        typer.Option(help="smoke: seconds, decides nothing; quick: minutes; full: the paper's."),
    ] = Scale.quick,
    overrides: Overrides = None,
    data: Pictures = None,
    out: Store = OUT,
    finished: Annotated[
        bool, typer.Option("--finished", help="Run nothing: judge the runs that are there.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 3 if a claim does not hold.")
    ] = False,
    tensorboard: Tensorboard = None,
    mlflow: Mlflow = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run an experiment of the paper, judge its claims, and draw its figures.

    Ctrl-C loses nothing: the same command goes on, and a finished run is not done again.

    Examples: `dynavg reproduce E5`, `dynavg reproduce E6 --scale full --out results-mine`,
    `dynavg reproduce E6 --scale smoke --json`
    """
    try:
        chosen = experiment_named(experiment)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    outcome = reproducing.reproduce(
        reproducing.Order(chosen, scale.value, data, overrides or (), finished),
        out,
        progress=not quiet,
        tell=teller(quiet, tensorboard, mlflow),
    )
    show(outcome, as_json)
    if strict and any(verdict.holds is False for verdict in outcome.verdicts):
        raise typer.Exit(3)
