"""What can be seen of runs, as data: series, bars and grids. Who draws them is not known here.

A chart is made from points (runs over seeds) and drawn twice: for print (`drawing`) and for pages
(`page`). A front's points are means over seeds. What happens over time is that of the first seed,
since seeds drift at different times; the title names it where there are several.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl

from dynavg.report.points import Floats, Point, curves_of, value_of

__all__ = [
    "Bars",
    "Chart",
    "Drawing",
    "Grid",
    "Picture",
    "Series",
    "causes",
    "divergence",
    "front",
    "grid",
    "lines_over",
    "over_time",
    "set_sizes",
]

MOST = 400
"""Numbers of a curve that are kept, and marks on it: more cannot be seen."""
WINDOWS = 60
"""Stretches of time over which restless numbers are averaged."""
FEW = 4
"""Runs whose restless numbers can be told apart in one chart."""

Unit = Literal["", "bytes", "log"]


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """One set of numbers in a chart. `spread` is a half-width in y; `joined` draws a line through
    the points, broken where y is NaN; `colour` is a number that stands for the same thing within a
    chart. `dots` are moments on a line of the same name, which the legend explains once for all.
    """

    name: str
    x: Floats
    y: Floats
    colour: int
    kind: Literal["line", "dashed", "steps", "points", "dots"] = "line"
    spread: Floats | None = None
    joined: bool = False
    hollow: bool = False
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Chart:
    """Series over a common x; `marks` are x at which something happened, such as a drift, and
    `marks_mean` and `dots_mean` say what that and the dots are.
    """

    name: str
    title: str
    x: str
    y: str
    series: tuple[Series, ...]
    x_unit: Unit = ""
    y_unit: Unit = ""
    marks: tuple[float, ...] = ()
    marks_mean: str = ""
    dots_mean: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Bars:
    """Stacked bars: one for each label, a part for each of `parts`."""

    name: str
    title: str
    y: str
    labels: tuple[str, ...]
    parts: dict[str, list[float]]


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Numbers by row and column, as colours and as text."""

    name: str
    title: str
    x: str
    y: str
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    values: Floats


Drawing: TypeAlias = Chart | Bars | Grid
Picture: TypeAlias = Callable[[Sequence[Point]], Sequence[Drawing]]


def front(points: Sequence[Point], published: Sequence[float] = (), of: str = "") -> list[Drawing]:
    """Cumulative loss against bytes: one series for each kind of operator in each setting, joined
    by bytes.

    Dynamic runs whose Δ is in `published`, the paper's grid, are a series of their own. `of` says
    what the points are, where there are several fronts.
    """
    groups: dict[tuple[str, str], list[Point]] = {}
    for point in points:
        if not point.diverged:
            groups.setdefault((point.kind, point.setting), []).append(point)
    one_setting = len({setting for _, setting in groups}) == 1
    series = []
    for colour, ((kind, setting), group) in enumerate(groups.items()):
        own = sorted(group, key=lambda point: point.bytes)
        name = kind if one_setting or not setting else f"{kind}, {setting}"
        series.append(_of_points(name, own, colour, joined=len(own) > 1))
        theirs = [p for p in own if value_of(p.spec, "delta") in published]
        if theirs and len(theirs) < len(own):
            series.append(_of_points("Δ of the paper", theirs, colour, hollow=True))
    title = "Cumulative loss against communication (less is better on both axes)"
    name = "-".join(["front", *re.findall(r"\w+", of)])
    x, y = "bytes sent", "cumulative loss per learner"
    return [Chart(name, f"{of}: {title}" if of else title, x, y, tuple(series), x_unit="bytes")]


def _of_points(
    name: str, points: Sequence[Point], colour: int, joined: bool = False, hollow: bool = False
) -> Series:
    return Series(
        name,
        np.array([point.bytes for point in points]),
        np.array([point.loss for point in points]),
        colour,
        kind="points",
        spread=np.array([point.spread for point in points]),
        joined=joined,
        hollow=hollow,
        texts=() if hollow else tuple(point.operator_name for point in points),
    )


def over_time(points: Sequence[Point]) -> list[Drawing]:
    """Cumulative loss and bytes over samples, with lines at drifts and dots at synchronisations."""
    loss: list[Series] = []
    sent: list[Series] = []
    shown = [point for point in points if not point.diverged]
    for colour, point in enumerate(shown):
        curves = curves_of(point.runs[0])
        keep = _thinned(len(curves.samples))
        x = curves.samples[keep]
        spoken = _synchronisations(point)
        loss.append(Series(point.name, x, curves.loss[keep], colour))
        loss += _dots(point.name, curves.samples, curves.loss, spoken, colour)
        if point.bytes:
            sent.append(Series(point.name, x, curves.bytes[keep], colour, kind="steps"))
            sent += _dots(point.name, curves.samples, curves.bytes, spoken, colour)
    marks = drifts_of(shown)
    same: dict[str, Any] = {
        "marks": marks,
        "marks_mean": "drift" if marks else "",
        "dots_mean": "synchronisation" if any(one.kind == "dots" for one in loss) else "",
    }
    along, seed = "samples per learner", _seed_of(shown)
    charts: list[Drawing] = [
        Chart("loss", f"Cumulative loss over time{seed}", along, "cumulative loss per learner",
              tuple(loss), **same),
    ]  # fmt: skip
    if sent:
        charts.append(
            Chart("communication", f"Communication over time{seed}", along, "bytes sent",
                  tuple(sent), y_unit="bytes", **same)
        )  # fmt: skip
    return charts


def _seed_of(points: Sequence[Point]) -> str:
    """For titles: the seed that is shown, where a point has more than one."""
    several = any(len(point.runs) > 1 for point in points)
    return f" (seed {points[0].runs[0].spec.get('seed')})" if several else ""


def drifts_of(points: Sequence[Point]) -> tuple[float, ...]:
    """Where the data of the first runs drifted, in samples per learner."""
    if not points:
        return ()
    run = points[0].runs[0]
    samples = curves_of(run).samples
    rounds = [int(drift["round"]) for drift in run.summary.get("drifts", ())]
    return tuple(float(samples[round - 2]) for round in dict.fromkeys(rounds) if round > 1)


_Places: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.intp]]"


def _synchronisations(point: Point) -> _Places:
    """The rounds, from 0, in which a dynamic run synchronised; of very many only those that can be
    told apart.
    """
    checks = point.runs[0].checks
    if point.kind != "dynamic" or not len(checks):
        return np.zeros(0, dtype=np.intp)
    spoken = checks.filter(pl.col("cause").is_not_null())["round"].to_numpy().astype(np.intp) - 1
    place = spoken * MOST // max(MOST, int(point.spec["rounds"]))
    return spoken[np.unique(place, return_index=True)[1]]


def _dots(name: str, x: Floats, y: Floats, places: _Places, colour: int) -> list[Series]:
    return [Series(name, x[places], y[places], colour, kind="dots")] if len(places) else []


def _thinned(length: int) -> _Places:
    return np.unique(np.linspace(0, length - 1, min(length, MOST)).astype(np.intp))


def set_sizes(points: Sequence[Point]) -> list[Drawing]:
    """How many learners took part in each synchronisation, over time."""
    series = []
    shown = _few(points)
    for colour, point in enumerate(shown):
        checks = point.runs[0].checks.filter(pl.col("cause").is_not_null())
        if len(checks):
            x, y = _windowed(checks, "balancing_set", point)
            series.append(Series(point.name, x, y, colour, kind="points", joined=True))
    if not series:
        return []
    title = f"Size of the balancing sets{_seed_of(shown)}: means over stretches of time"
    return [Chart("balancing-sets", title, "round", "learners averaged", tuple(series))]


def _windowed(checks: pl.DataFrame, column: str, point: Point) -> tuple[Floats, Floats]:
    """The means of a column over stretches of rounds of the same length, each at its middle; NaN in
    one without checks.
    """
    width = max(1.0, float(point.spec["rounds"]) / WINDOWS)
    means = checks.group_by(((pl.col("round") - 1) / width).floor().cast(pl.Int64).alias("at")).agg(
        pl.col("round").mean().alias("x"), pl.col(column).cast(pl.Float64).mean()
    )
    stretches = int(np.ceil(float(point.spec["rounds"]) / width))
    x: Floats = 0.5 + width * np.arange(0.5, stretches, dtype=np.float64)
    y: Floats = np.full(stretches, np.nan)
    at = means["at"].to_numpy()
    x[at], y[at] = means["x"].to_numpy(), means[column].to_numpy()
    return x, y


def _few(points: Sequence[Point]) -> list[Point]:
    """Dynamic runs, few enough to be told apart: from the smallest Δ to the largest."""
    dynamic = _dynamic(points)
    chosen = np.unique(np.linspace(0, len(dynamic) - 1, min(len(dynamic), FEW)).round())
    return [dynamic[int(place)] for place in chosen]


def causes(points: Sequence[Point]) -> list[Drawing]:
    """Why resolutions ended as they did, and false alarms where divergence was measured."""
    dynamic = _dynamic(points)
    if not dynamic:
        return []
    seed = _seed_of(dynamic)
    counts = [Counter(point.runs[0].checks["cause"].drop_nulls().to_list()) for point in dynamic]
    names = [name for name in _CAUSES if any(name in count for count in counts)]
    labels = tuple(point.short_name for point in dynamic)
    parts = {name: [float(count[name]) for count in counts] for name in names}
    bars: list[Drawing] = [
        Bars("causes", f"Causes of synchronisations{seed}", "synchronisations", labels, parts)
    ]
    alarms = [point.runs[0].checks["false_alarm"] for point in dynamic]
    if any(alarm.is_not_null().any() for alarm in alarms):
        told = {
            "divergence above Δ": [float((~alarm).sum()) for alarm in map(_spoken, dynamic)],
            "false alarm": [float(alarm.sum()) for alarm in map(_spoken, dynamic)],
        }
        title = f"False alarms{seed}: violations while the divergence was at most Δ"
        bars.append(Bars("false-alarms", title, "checks with violations", labels, told))
    return bars


_CAUSES = ("all violated", "counter", "exhausted", "balanced", "abandoned")


def _spoken(point: Point) -> pl.Series:
    checks = point.runs[0].checks
    return checks.filter(pl.col("cause").is_not_null())["false_alarm"].fill_null(value=False)


def divergence(points: Sequence[Point]) -> list[Drawing]:
    """δ before and after each check, where it was measured. Zero, as after a stretch of full
    synchronisations only, has no place on a logarithmic scale.
    """
    series = []
    shown = _few(points)
    for colour, point in enumerate(shown):
        checks = point.runs[0].checks.drop_nulls("divergence_before")
        for moment, kind in _MOMENTS if len(checks) else ():
            x, y = _windowed(checks, f"divergence_{moment}", point)
            measured = ~np.isnan(y)
            y[y == 0] = np.nan
            name = f"{point.name}, {moment}"
            series.append(Series(name, x[measured], y[measured], colour, kind=kind))
    if not series:
        return []
    title = f"Divergence before and after checks{_seed_of(shown)}: means over stretches of time"
    return [Chart("divergence", title, "round", "δ (zero is not shown)", tuple(series),
                  y_unit="log")]  # fmt: skip


_MOMENTS: tuple[tuple[str, Literal["dashed", "line"]], ...] = (
    ("before", "dashed"),
    ("after", "line"),
)


def _dynamic(points: Sequence[Point]) -> list[Point]:
    return [point for point in points if point.kind == "dynamic" and not point.diverged]


def grid(
    points: Sequence[Point],
    rows: str,
    columns: str,
    value: Callable[[Point], float],
    title: str,
    name: str,
) -> Grid:
    """A number of each point, by two of its settings."""
    ups = _settings(points, rows)
    acrosses = _settings(points, columns)
    values = np.full((len(ups), len(acrosses)), np.nan)
    for point in points:
        at = ups.index(value_of(point.spec, rows)), acrosses.index(value_of(point.spec, columns))
        values[at] = value(point)
    labels = {"init_noise": "ε", "every": "b"}
    return Grid(
        name,
        title,
        labels.get(columns, columns),
        labels.get(rows, rows),
        tuple(f"{entry:g}" for entry in acrosses),
        tuple(f"{entry:g}" for entry in ups),
        values,
    )


def lines_over(
    points: Sequence[Point],
    setting: str,
    value: Callable[[Point], float],
    name: str,
    title: str,
    y: str,
    y_unit: Unit = "",
) -> Chart:
    """A number of each point against one of its settings, a line for each operator."""
    groups: dict[str, list[Point]] = {}
    for point in points:
        if not point.diverged:
            groups.setdefault(point.name.partition(", ")[0], []).append(point)
    series = []
    for colour, (operator, own) in enumerate(groups.items()):
        ordered = sorted(own, key=lambda point: float(value_of(point.spec, setting)))
        across = np.array([float(value_of(point.spec, setting)) for point in ordered])
        heights = np.array([value(point) for point in ordered])
        series.append(Series(operator, across, heights, colour, kind="points", joined=True))
    return Chart(name, title, setting, y, tuple(series), y_unit=y_unit)


def _settings(points: Iterable[Point], name: str) -> list[float]:
    return sorted({float(value_of(point.spec, name)) for point in points})
