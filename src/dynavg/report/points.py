"""Runs that differ in their seed only, as one point with a spread; and curves over time.

What a figure shows and a verdict compares comes from here, so that both mean the same.
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dynavg.records import Record

__all__ = ["Curves", "Point", "baseline_of", "chosen", "curves_of", "points_of", "value_of"]

Floats = NDArray[np.float64]

FEW = 3
"""Differences between settings that a name can take in."""


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """One configuration: its runs, one per seed.

    `spread` is the standard deviation of the loss between seeds after each seed's own difficulty,
    by which it scales the losses of all configurations, is taken out; 0 for one seed.
    """

    name: str
    spec: Mapping[str, Any]
    runs: tuple[Record, ...]
    spread: float = 0.0

    @property
    def short_name(self) -> str:
        """The name without the operator's kind, where that leaves something."""
        return self.name.removeprefix(self.kind).strip(" ,") or self.name

    @property
    def operator_name(self) -> str:
        """The operator's own settings, or its kind where it has none."""
        whole = self.name.partition(", ")[0]
        return whole.removeprefix(self.kind).strip() or whole

    @property
    def setting(self) -> str:
        """What the name says besides the operator: where in a grid the point is."""
        return self.name.partition(", ")[2]

    @property
    def kind(self) -> str:
        """The operator's kind."""
        return str(self.spec["operator"]["kind"])

    @property
    def diverged(self) -> bool:
        """Whether some run of it ended before its time."""
        return any("diverged" in run.summary for run in self.runs)

    @property
    def loss(self) -> float:
        """The mean cumulative loss per learner; infinite where a run diverged."""
        return self.mean("loss_per_learner", math.inf)

    @property
    def bytes(self) -> float:
        """The mean bytes, headers included."""
        return statistics.fmean(self.values("bytes", math.nan))

    def mean(self, name: str, missing: float = math.nan) -> float:
        """The mean of a number in the summaries."""
        return statistics.fmean(self.values(name, missing))

    def values(self, name: str, missing: float = math.nan) -> list[float]:
        """A number of each run's summary; of `bytes`, those of the view `total`."""
        found = [run.summary.get(name, missing) for run in self.runs]
        plain = [value["total"] if isinstance(value, dict) else value for value in found]
        return [missing if value is None else float(value) for value in plain]


def points_of(records: Iterable[Record]) -> list[Point]:
    """One point for all runs that differ in their seed only, in the order of their coming."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        same = record.spec.get("name"), record.spec["operator"], _setting(record.spec)
        groups.setdefault(repr(same), []).append(record)
    difficulty = _difficulties(list(groups.values()))
    names = _names([runs[0] for runs in groups.values()])
    return [
        Point(
            name,
            runs[0].spec,
            tuple(runs),
            _spread(runs, difficulty),
        )
        for name, runs in zip(names, groups.values(), strict=True)
    ]


def _names(runs: Sequence[Record]) -> list[str]:
    """What each run is called. Where those of one kind have different settings of which their
    names say nothing, as runs of different specs do, what tells them apart is added.
    """
    names = [str(run.spec.get("name") or run.folder.name) for run in runs]
    groups: dict[tuple[str, str], list[int]] = {}
    for place, (run, name) in enumerate(zip(runs, names, strict=True)):
        alike = str(run.spec["operator"]["kind"]), name.partition(", ")[2]
        groups.setdefault(alike, []).append(place)
    for places in groups.values():
        settings = {place: _flat(_setting(runs[place].spec)) for place in places}
        paths = _telling(list(settings.values()))
        for place, setting in settings.items():
            told = [f"{p.rpartition('.')[2]}={setting[p]}" for p in paths if p in setting]
            names[place] = ", ".join([names[place], *told])
    return names


def _telling(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """The paths in which settings differ; of many, only as many as tell the settings apart."""

    def kinds(paths: Sequence[str]) -> int:
        return len({repr([one.get(path) for path in paths]) for one in settings})

    every = list(dict.fromkeys(path for one in settings for path in one))
    apart = [path for path in every if kinds([path]) > 1]
    if len(apart) <= FEW:
        return apart
    chosen: list[str] = []
    for path in apart:
        if kinds([*chosen, path]) > kinds(chosen):
            chosen.append(path)
    return chosen


def _flat(tree: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """The leaves of a tree by their paths."""
    leaves: dict[str, Any] = {}
    for key, value in tree.items():
        inner = isinstance(value, Mapping)
        leaves |= _flat(value, f"{above}{key}.") if inner else {f"{above}{key}": value}
    return leaves


def _difficulties(groups: Sequence[Sequence[Record]]) -> dict[int, float]:
    """For each seed the factor by which losses are larger than on average: the mean over all
    configurations that were run with every seed.
    """
    losses = [{int(run.spec.get("seed", 0)): _loss(run) for run in runs} for runs in groups]
    seeds = {seed for one in losses for seed in one}
    whole = [one for one in losses if one.keys() == seeds and math.isfinite(sum(one.values()))]
    ratios = [{seed: one[seed] * len(one) / sum(one.values()) for seed in one} for one in whole]
    return {seed: statistics.fmean(one[seed] for one in ratios) for seed in seeds if ratios}


def _spread(runs: Sequence[Record], difficulty: Mapping[int, float]) -> float:
    losses = [_loss(run) / difficulty.get(int(run.spec.get("seed", 0)), 1.0) for run in runs]
    return statistics.stdev(losses) if len(losses) > 1 and all(map(math.isfinite, losses)) else 0.0


def _loss(run: Record) -> float:
    return float(run.summary.get("loss_per_learner", math.nan))


def chosen(points: Iterable[Point], **settings: Any) -> list[Point]:
    """The points with these settings: of the operator (`kind`, `delta`, …), or of the spec.

    >>> chosen([], kind="dynamic", learners=100)
    []
    """
    return [
        point
        for point in points
        if all(value_of(point.spec, key) == value for key, value in settings.items())
    ]


def value_of(spec: Mapping[str, Any], key: str) -> Any:
    """A setting of the operator if it has it, else of the spec; None where nobody says.

    >>> value_of({"operator": {"kind": "nosync"}, "learners": 3}, "learners")
    3
    """
    return spec["operator"].get(key, spec.get(key))


def baseline_of(point: Point, points: Iterable[Point]) -> Point | None:
    """The periodic point of the same setting that sends most: what savings are counted against."""
    periodic = [
        other
        for other in points
        if other.kind == "periodic"
        and not other.diverged
        and _setting(other.spec) == _setting(point.spec)
    ]
    return max(periodic, key=lambda other: other.bytes, default=None)


def _setting(spec: Mapping[str, Any]) -> dict[str, Any]:
    """All but operator and seed; where pictures lay does not matter."""
    apart = ("name", "seed", "operator")
    setting = {key: value for key, value in sorted(spec.items()) if key not in apart}
    data = setting.get("data")
    if isinstance(data, Mapping):
        setting["data"] = {key: value for key, value in data.items() if key != "folder"}
    return setting


@dataclass(frozen=True, slots=True)
class Curves:
    """One run over time, an entry per round: samples per learner seen so far, cumulative loss per
    learner, cumulative bytes.
    """

    samples: Floats
    loss: Floats
    bytes: Floats


def curves_of(run: Record) -> Curves:
    """The curves of a run."""
    per_round = (
        run.rounds.group_by("round", maintain_order=True)
        .agg(pl.col("loss").cast(pl.Float64).sum(), pl.col("samples").sum())
        .sort("round")
    )
    learners = int(run.summary["learners"])
    sent = np.zeros(len(per_round))
    if len(run.checks):
        sent[run.checks["round"].to_numpy() - 1] = run.checks["bytes"].to_numpy()
    return Curves(
        samples=per_round["samples"].to_numpy().cumsum() / learners,
        loss=per_round["loss"].to_numpy().cumsum() / learners,
        bytes=sent.cumsum(),
    )
