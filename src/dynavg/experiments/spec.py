"""What to run, as data: one validated tree, in Python or TOML; nothing here runs.

A `Spec` is what people write: a setting, the operators to compare in it, a grid over whatever
else varies, and seeds. `Spec.runs()` is the list of single runs that it means, each a `RunSpec`
that says all there is to know. Unknown keys are errors; `specfile` makes messages of them.
"""

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PositiveInt,
    model_validator,
)

from dynavg.operators import OPERATORS, Operator

__all__ = ["DataSpec", "RunSpec", "Setting", "Settings", "Spec", "operator_of"]

Settings: TypeAlias = dict[str, Any]
"""A thing by its `kind`, and the arguments that make it."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Shift(_Strict):
    """Drift laid over pictures: inputs that turn, or labels that change places."""

    kind: Literal["rotated", "permuted"]
    drifts: tuple[int, ...] | None = None
    probability: float = Field(default=0.001, ge=0, le=1)
    drift_seed: int | None = Field(default=None, ge=0)


class PictureData(_Strict):
    """MNIST or Fashion-MNIST: all 70,000 pictures, or the training part, with the rest held out."""

    kind: Literal["mnist", "fashion_mnist"]
    folder: Path | None = None
    part: Literal["all", "train"] = "all"
    by: str = "iid"
    by_settings: dict[str, float | int] = Field(default_factory=dict)
    share: Literal["dealt", "fixed"] | None = None
    shift: Shift | None = None


class DriftData(_Strict):
    """The random graphical model."""

    kind: Literal["drift"]
    d: int = Field(default=50, ge=2)
    probability: float = Field(default=0.001, ge=0, le=1)
    drift_per: Literal["sample_round", "batch_round"] = "sample_round"
    drifts: tuple[int, ...] | None = None
    drift_seed: int | None = Field(default=None, ge=0)


class OwnData(_Strict):
    """Streams of your own: `factory`, "package.module:function", is called with (learners,
    batch_size, seed) and the arguments, and returns what `dynavg.simulate` takes as streams.
    """

    kind: Literal["own"]
    factory: str = Field(pattern=r"^[\w.]+:\w+$")
    arguments: Settings = Field(default_factory=dict)


def _by_kind(value: object) -> object:
    """A plain word is short for {kind = word}."""
    return {"kind": value} if isinstance(value, str) else value


DataSpec = Annotated[
    PictureData | DriftData | OwnData, Field(discriminator="kind"), BeforeValidator(_by_kind)
]


def _has_kind(value: Settings) -> Settings:
    if not isinstance(value.get("kind"), str):
        told = f"a table with a `kind` is wanted, such as {{kind = …}}, not {value}"
        raise ValueError(told)  # noqa: TRY004
    return value


SGD: Settings = {"kind": "SGD", "lr": 0.1}
"""What learns where a spec says nothing else."""


def _or_sgd(value: object) -> object:
    """A table without a kind changes the default."""
    return SGD | value if isinstance(value, dict) and "kind" not in value else value


Kind = Annotated[Settings, BeforeValidator(_by_kind), AfterValidator(_has_kind)]


def operator_of(settings: Mapping[str, Any]) -> Operator | None:
    """The operator that these settings make; None is the serial baseline.

    >>> operator_of({"kind": "periodic", "every": 5})
    Periodic(every=5, weights='equal')
    """
    kind, own = settings["kind"], {key: settings[key] for key in settings if key != "kind"}
    if kind == "serial":
        if own.keys() - {"batch"} or own.get("batch", "sequential") not in ("sequential", "joint"):
            raise ValueError(f"serial takes batch = 'sequential' or 'joint' only, not {own}")
        return None
    if kind not in OPERATORS:
        allowed = ", ".join(("serial", *OPERATORS))
        raise ValueError(f"kind {kind!r} is no operator; allowed are {allowed}")
    made = OPERATORS[kind]
    known = [field.name for field in fields(made)]  # type: ignore[arg-type]
    for key in own.keys() - set(known):
        raise ValueError(f"{kind} has no setting {key!r}; it has {', '.join(known) or 'none'}")
    try:
        return made(**own)
    except TypeError as error:
        raise ValueError(str(error)) from None


class Setting(_Strict):
    """What all runs of a spec share. `model`, `loss` and `metric` are names from `dynavg.models`
    and `torch.nn.functional`, or import paths "package.module:name".
    """

    data: DataSpec
    model: str
    model_settings: Settings = Field(default_factory=dict)
    loss: str = "cross_entropy"
    metric: str | None = None
    optimizer: Annotated[Kind, BeforeValidator(_or_sgd)] = Field(default_factory=lambda: dict(SGD))
    scheduler: Kind | None = None
    learners: PositiveInt
    batch_size: PositiveInt | tuple[PositiveInt, ...] = 10
    rounds: PositiveInt
    init_noise: float = Field(default=0.0, ge=0)
    clip: float | None = Field(default=None, gt=0)
    reduction: Literal["mean", "sum"] = "mean"
    on_sync: Literal["keep", "reset"] = "keep"
    buffers: Literal["average", "local"] = "average"
    evaluate_every: PositiveInt | None = None
    divergence: bool = False
    shard: Literal["auto", "looped", "fused", "stacked"] = "auto"
    device: str = "cpu"
    dtype: Literal["float32", "float64"] | None = None

    def with_folder(self, folder: Path | None) -> Self:
        """The same with pictures from a folder of the user's own."""
        if folder is None or not isinstance(self.data, PictureData):
            return self
        return self.model_copy(update={"data": self.data.model_copy(update={"folder": folder})})

    @model_validator(mode="after")
    def _something_is_held_out(self) -> "Setting":
        held_out = isinstance(self.data, PictureData) and self.data.part == "train"
        if self.evaluate_every is not None and not held_out:
            raise ValueError(
                "evaluate_every wants held-out data: pictures with part = 'train', whose test part "
                "is held out"
            )
        return self


class RunSpec(Setting):
    """One run. `name` is for people; everything else decides the result."""

    name: str = ""
    operator: Kind
    seed: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _operator_is_one(self) -> "RunSpec":
        operator_of(self.operator)
        return self

    @property
    def key(self) -> str:
        """Eight letters that tell runs apart; not by the name, nor by where the data lie."""
        told = self.model_dump(exclude={"name"})
        told["data"].pop("folder", None)
        return blake2b(
            json.dumps(told, sort_keys=True, default=str).encode(), digest_size=4
        ).hexdigest()

    @property
    def folder_name(self) -> str:
        """The name of the run's folder: readable, and its own."""
        words = "".join(
            letter if letter.isalnum() or letter in ".=" else "-" for letter in self.name
        )
        return "-".join(filter(None, (*words.split("-"), f"seed{self.seed}", self.key)))


class Spec(Setting):
    """What people write.

    `operators` are tables with a `kind`; a list in one of their values means one operator for each
    entry. `grid` maps the path of a key to the values that it takes: all combinations are run.

    >>> spec = Spec(
    ...     data="drift",
    ...     model="drift_mlp",
    ...     loss="binary_cross_entropy_with_logits",
    ...     learners=4,
    ...     rounds=10,
    ...     operators=[{"kind": "dynamic", "delta": [0.1, 0.3]}, "nosync"],
    ...     grid={"optimizer.lr": [0.1, 0.2]},
    ...     seeds=[0, 1],
    ... )
    >>> len(spec.runs()), spec.runs()[0].name
    (12, 'dynamic Δ=0.1, lr=0.1')
    """

    title: str = ""
    operators: tuple[Kind, ...] = Field(min_length=1)
    grid: dict[str, tuple[Any, ...]] = Field(default_factory=dict)
    seeds: tuple[int, ...] = Field(default=(0,), min_length=1)

    @model_validator(mode="after")
    def _all_runs_are_sound(self) -> "Spec":
        self.runs()
        return self

    def runs(self) -> list[RunSpec]:
        """Every single run, seeds innermost."""
        base = self.model_dump(exclude={"title", "operators", "grid", "seeds"})
        runs: list[RunSpec] = []
        for values in itertools.product(*self.grid.values()):
            varied = dict(zip(self.grid, values, strict=True))
            setting = base
            for path, value in varied.items():
                setting = _with(setting, path.split("."), value, path)
            for operator in itertools.chain.from_iterable(map(_expanded, self.operators)):
                name = ", ".join([operator_label(operator), *map(_said, varied, values)])
                settings = {**setting, "operator": operator, "name": name}
                runs.extend(RunSpec(**settings, seed=seed) for seed in self.seeds)
        return runs


def _expanded(operator: Settings) -> Iterator[Settings]:
    """One table for each combination of its listed values."""
    listed = {key: value for key, value in operator.items() if isinstance(value, list | tuple)}
    for values in itertools.product(*listed.values()):
        yield operator | dict(zip(listed, values, strict=True))


def _with(tree: Any, path: Sequence[str], value: Any, whole: str) -> Any:
    """The tree with another value at that path; only the last key may be new."""
    first, *rest = path
    if not isinstance(tree, dict) or (rest and first not in tree):
        raise ValueError(f"grid: there is no {whole!r} in the spec to vary")
    return {**tree, first: _with(tree[first], rest, value, whole) if rest else value}


_SIGNS = {"delta": "Δ", "every": "b", "fraction": "C", "learners": "m", "init_noise": "ε"}


def operator_label(settings: Mapping[str, Any]) -> str:
    """An operator in a few words.

    >>> operator_label({"kind": "dynamic", "delta": 0.7, "every": 5})
    'dynamic Δ=0.7 b=5'
    """
    own = [_said(key, value) for key, value in settings.items() if key != "kind"]
    return " ".join((settings["kind"], *own))


def _said(path: str, value: Any) -> str:
    key = path.rpartition(".")[2]
    if isinstance(value, Mapping):
        return str(value.get("kind", value))
    short = f"{value:g}" if isinstance(value, float) else str(value)
    return f"{_SIGNS.get(key, key)}={short}"
