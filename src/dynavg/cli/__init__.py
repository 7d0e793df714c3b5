"""The command line: parse, call, print. No logic lives here; a file per group of commands."""

import sys
import sysconfig
import traceback
from pathlib import Path

import typer
from rich.console import Console

import dynavg
from dynavg.cli import fleet
from dynavg.cli.comparing import compare, report
from dynavg.cli.datasets import app as datasets
from dynavg.cli.driving import drive
from dynavg.cli.experimenting import reproduce, run
from dynavg.cli.measuring import bench
from dynavg.cli.tuning import tune
from dynavg.experiments.running import StoppedError

__all__ = ["app", "main"]

app = typer.Typer(
    help="Decentralised deep learning that communicates only when it pays.",
    epilog="Exit codes: 0 done; 1 an error, told in one line unless it comes out of code of your "
    "own; 2 wrong usage; 3 a claim does not hold (`dynavg reproduce --strict`); 130 interrupted, "
    "and the same command goes on.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
for command in (run, reproduce, compare, report, tune, drive, bench):
    app.command()(command)
app.add_typer(datasets, name="data")
app.add_typer(fleet.app, name="fleet")


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(dynavg.__version__)


def main() -> None:
    """The entry point: what users can mend is one line, not a traceback."""
    sys.path.append(str(Path.cwd()))  # a spec may name modules of the folder that one works in
    try:
        app()
    except (dynavg.data.DataUnavailable, ImportError, ValueError, TypeError, OSError) as error:
        if _in_own_code(error):
            raise
        _say(str(error))
        sys.exit(1)
    except (StoppedError, KeyboardInterrupt) as stopped:
        _say(str(stopped) or "interrupted")
        sys.exit(130)


def _in_own_code(error: BaseException) -> bool:
    """Whether it comes out of a model or data of the user's own, where only a traceback helps."""
    ours = (str(Path(dynavg.__file__).parent), *sysconfig.get_paths().values(), "<")
    frames = traceback.extract_tb(error.__traceback__)
    return any(not frame.filename.startswith(ours) for frame in frames)


def _say(message: str) -> None:
    Console(stderr=True).print(
        f"dynavg: {message}", style="red", highlight=False, markup=False, soft_wrap=True
    )
