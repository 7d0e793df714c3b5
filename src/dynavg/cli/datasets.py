"""`dynavg data`: get the datasets, and look at them."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from dynavg import data
from dynavg.cli.output import AsJson, Pictures, print_json
from dynavg.data.gallery import samples_figure, segments_figure

__all__ = ["app"]

app = typer.Typer(help="Get the datasets, and look at them.", no_args_is_help=True)

Collection = StrEnum("Collection", "mnist fashion_mnist")
Dataset = StrEnum("Dataset", "mnist fashion_mnist drift")

FOLDERS = {"mnist": "mnist", "fashion_mnist": "fashion-mnist"}
LOADERS = {"mnist": data.mnist, "fashion_mnist": data.fashion_mnist}


@app.command()
def fetch(
    names: Annotated[
        list[Collection] | None, typer.Argument(help="Which; both if none is named.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="A folder of your own for --data, instead of the cache."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fetch datasets into the cache, verified; what is there already is not fetched again.

    Examples: `dynavg data fetch`, `dynavg data fetch fashion_mnist --out pictures`
    """
    place = out or data.cache_folder()
    chosen = [name.value for name in names or list(Collection)]
    facts = [
        {**_facts(name, LOADERS[name](cache=place)), "folder": str(place / FOLDERS[name])}
        for name in chosen
    ]
    if as_json:
        print_json(facts)
        return
    for fact in facts:
        typer.echo(f"{fact['name']}: {fact['pictures']:,} pictures, in {fact['folder']}")


@app.command()
def show(
    name: Annotated[Dataset, typer.Argument(help="Which.")],
    folder: Pictures = None,
    out: Annotated[Path, typer.Option("--out", help="Where the picture goes.")] = Path("out"),
    rounds: Annotated[int, typer.Option(min=1, help="drift: how far to look.")] = 500,
    batch_size: Annotated[int, typer.Option(min=1, help="drift: samples in a round.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="drift: of concepts and their times.")] = 0,
    drift_per: Annotated[
        Literal["sample_round", "batch_round"],
        typer.Option(help="drift: may come at each sample, or with each batch."),
    ] = "sample_round",
    as_json: AsJson = False,
) -> None:
    """Say what is in a dataset, and draw it: pictures of each class, or drifts over time.

    Examples: `dynavg data show mnist`, `dynavg data show drift --seed 3 --rounds 2000`
    """
    if name is Dataset.drift:
        streams = data.drift(1, batch_size, seed, drift_per=drift_per)
        segments = streams.segments(rounds)
        facts: dict[str, Any] = {
            "name": name.value,
            "rounds": rounds,
            "segments": [
                {"round": segment.round, "best_error": segment.bayes_error} for segment in segments
            ],
        }
        figure = segments_figure(
            segments, rounds, f"drift, seed {seed}: {len(segments) - 1} drifts"
        )
    else:
        pictures = LOADERS[name.value](folder)
        facts = _facts(name.value, pictures)
        figure = samples_figure(pictures, f"{name.value}: the first pictures of each class")
    path = out / f"{name.value}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    facts["picture"] = str(path)
    if as_json:
        print_json(facts)
        return
    for key, value in facts.items():
        if key != "segments":
            typer.echo(f"{key.replace('_', ' ')}: {value}")
            continue
        for segment in value:
            best = f"{segment['best_error']:.4f}"
            typer.echo(f"from round {segment['round']}: error of the best classifier {best}")


def _facts(name: str, pictures: data.Pictures) -> dict[str, Any]:
    x, y = pictures.tensors
    return {
        "name": name,
        "pictures": len(y),
        "training": len(pictures.train),
        "test": len(pictures.test),
        "shape": list(x.shape[1:]),
        "per_class": y.bincount().tolist(),
    }
