"""The command line: parse, call, print. No logic lives here; a file per group of commands."""

import sys

import typer
from rich.console import Console

import dynavg
from dynavg.cli import fleet
from dynavg.cli.driving import drive
from dynavg.cli.measuring import bench

__all__ = ["app", "main"]

app = typer.Typer(
    help="Decentralised deep learning that communicates only when it pays.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
app.command()(bench)
app.command()(drive)
app.add_typer(fleet.app, name="fleet")


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(dynavg.__version__)


def main() -> None:
    """The entry point: what users can mend is one line, not a traceback."""
    try:
        app()
    except (dynavg.data.DataUnavailable, ImportError, ValueError, TypeError, OSError) as error:
        Console(stderr=True).print(f"dynavg: {error}", style="red", highlight=False, markup=False)
        sys.exit(1)
    except KeyboardInterrupt:
        Console(stderr=True).print("dynavg: interrupted", style="red")
        sys.exit(130)
