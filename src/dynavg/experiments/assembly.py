"""From a spec to what `simulate` takes: names become functions, data become streams."""

import importlib
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from dynavg import data, models
from dynavg.data import Pictures, Streams
from dynavg.experiments.spec import DriftData, OwnData, PictureData, RunSpec, Settings, Shift

__all__ = ["arguments_of", "concepts_of", "imported"]


def arguments_of(spec: RunSpec) -> dict[str, Any]:
    """What `dynavg.simulate` and `dynavg.serial` take, but for the operator.

    >>> from dynavg.experiments.spec import RunSpec
    >>> spec = RunSpec(
    ...     data="drift",
    ...     model="drift_mlp",
    ...     learners=2,
    ...     rounds=5,
    ...     operator="nosync",
    ...     loss="mse_loss",
    ... )
    >>> arguments_of(spec)["streams"].learners
    2
    """
    streams, held_out = _data(spec)
    optimizer, scheduler = spec.optimizer, spec.scheduler
    return {
        "model": partial(named(spec.model, models, "model"), **spec.model_settings),
        "loss": named(spec.loss, functional, "loss"),
        "optimizer": _made_by(optimizer, torch.optim, "optimizer"),
        "scheduler": scheduler and _made_by(scheduler, torch.optim.lr_scheduler, "scheduler"),
        "metric": None if spec.metric is None else imported(spec.metric, "metric"),
        "streams": streams,
        "rounds": spec.rounds,
        "seed": spec.seed,
        "evaluate": None if spec.evaluate_every is None else (held_out, spec.evaluate_every),
        "init_noise": spec.init_noise,
        "clip": spec.clip,
        "reduction": spec.reduction,
        "on_sync": spec.on_sync,
        "buffers": spec.buffers,
        "divergence": spec.divergence,
        "shard": spec.shard,
        "device": spec.device,
        "dtype": None if spec.dtype is None else getattr(torch, spec.dtype),
    }


def concepts_of(streams: object, rounds: int) -> dict[str, Any]:
    """The drifts of a run's data with their rounds; and the best classifier's error, at first and
    after each drift, if it is known.
    """
    if hasattr(streams, "segments"):
        first, *drifts = (
            {"round": segment.round, "bayes_error": segment.bayes_error}
            for segment in streams.segments(rounds)
        )
        return {"first_bayes_error": first["bayes_error"], "drifts": drifts}
    if hasattr(streams, "drift_rounds"):
        return {"drifts": [{"round": round} for round in streams.drift_rounds(rounds)]}
    return {"drifts": []}


def imported(path: str, where: str) -> Any:
    """The object at "package.module:name".

    >>> imported("math:sqrt", "the doctest")(9.0)
    3.0
    """
    module, _, name = path.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ValueError(
            f"{where} = {path!r}: {error}; an import path such as my_package.nets:make is wanted, "
            "of a module in this folder or in an installed package"
        ) from None


def named(name: str, home: object, where: str) -> Any:
    """Something of ours or torch's by its name, or of the user's by its import path."""
    if ":" in name:
        return imported(name, where)
    found = getattr(home, name, None)
    if name.startswith("_") or not callable(found):
        place = getattr(home, "__name__", home)
        raise ValueError(
            f"{where} = {name!r}: neither in {place} nor an import path such as my_pkg.nets:make"
        )
    return found


def _made_by(settings: Settings, home: object, where: str) -> Callable[[Any], Any]:
    """A factory (parameters or optimiser) -> the thing of that kind with these settings."""
    own = {key: value for key, value in settings.items() if key != "kind"}
    factory = named(settings["kind"], home, where)
    return lambda subject: factory(subject, **own)


def _data(spec: RunSpec) -> tuple[Streams, object]:
    """The streams, and what is held out of them."""
    source = spec.data
    match source:
        case PictureData():
            pictures = _pictures(source.kind, source.folder)
            return _shifted(_split(spec, source, pictures), source.shift, spec.seed), pictures.test
        case DriftData():
            if not isinstance(spec.batch_size, int):
                raise ValueError("batch_size: drift data come in batches of one size")  # noqa: TRY004
            settings = source.model_dump(exclude={"kind"})
            return data.drift(spec.learners, spec.batch_size, spec.seed, **settings), None
        case OwnData():  # pragma: no branch
            factory = imported(source.factory, "data.factory")
            made = factory(spec.learners, spec.batch_size, spec.seed, **source.arguments)
            return data.as_streams(made), None


@lru_cache(maxsize=2)
def _pictures(kind: str, folder: Path | None) -> Pictures:
    return data.mnist(folder) if kind == "mnist" else data.fashion_mnist(folder)


def _split(spec: RunSpec, source: PictureData, pictures: Pictures) -> Streams:
    partitioners: Mapping[str, Any] = data.partition.BY_NAME
    if source.by not in partitioners:
        raise ValueError(f"data.by = {source.by!r}; allowed are {', '.join(partitioners)}")
    sizes = spec.batch_size
    return data.split(
        pictures.all if source.part == "all" else pictures.train,
        spec.learners,
        sizes if isinstance(sizes, int) else list(sizes),
        spec.seed,
        partitioners[source.by](**source.by_settings),
        source.share,
    )


def _shifted(streams: Streams, shift: Shift | None, seed: int) -> Streams:
    if shift is None:
        return streams
    kind = data.Rotated if shift.kind == "rotated" else data.Permuted
    return kind(
        streams,
        drifts=shift.drifts,
        probability=shift.probability,
        drift_seed=seed if shift.drift_seed is None else shift.drift_seed,
    )
