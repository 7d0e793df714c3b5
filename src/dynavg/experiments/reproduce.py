"""An experiment from its plan to its verdicts; and the same, without claims, for any spec or runs.

In the folder `out`, `runs/` is the store of runs, and each report has a folder of its own.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dynavg import records
from dynavg.experiments.claims import Scale, Verdict, judged
from dynavg.experiments.experiment import Experiment
from dynavg.experiments.running import Also, finished, run_all
from dynavg.experiments.spec import RunSpec, Spec
from dynavg.experiments.specfile import overridden, parsed
from dynavg.records import Record
from dynavg.report.charts import Drawing, causes, divergence, front, over_time, set_sizes
from dynavg.report.points import Point, points_of
from dynavg.report.publishing import Report, publish

__all__ = ["Order", "Outcome", "Progress", "finished_runs", "report_on", "reproduce", "run_spec"]

RUNS, RESULT = "runs", "result.json"


@dataclass(frozen=True, slots=True)
class Progress:
    """A run is over, the `done`-th of `total`; `fresh` if it was done now, not found done."""

    record: Record
    fresh: bool
    done: int
    total: int


Tell = Callable[[Progress], object]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came out: the runs as points, the verdicts on claims, and where the report is."""

    points: list[Point]
    page: Path
    figures: list[Path]
    verdicts: Sequence[Verdict] = ()
    facts: Mapping[str, Any] | None = None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            **(self.facts or {}),
            "claims": [verdict.as_dict() for verdict in self.verdicts],
            "runs": [told(run) for point in self.points for run in point.runs],
            "report": str(self.page),
            "figures": [str(figure) for figure in self.figures],
        }


def told(run: Record) -> dict[str, Any]:
    """A run in a few lines: its name, seed, folder and summary, with `bytes` the total."""
    summary = dict(run.summary)
    views = summary.pop("bytes", None)
    return {
        "name": run.spec.get("name") or run.folder.name,
        "seed": run.spec.get("seed"),
        **summary,
        "bytes": None if views is None else views["total"],
        "bytes_by_view": views,
        "folder": str(run.folder),
    }


@dataclass(frozen=True, slots=True)
class Order:
    """What to reproduce. `data` is the user's own folder of pictures, `overrides` are "key=value"
    for every spec. `only_finished` runs nothing: what is there is judged.
    """

    experiment: Experiment
    scale: Scale = "quick"
    data: Path | None = None
    overrides: Sequence[str] = ()
    only_finished: bool = False

    def runs(self) -> list[RunSpec]:
        """All runs of it."""
        plan = self.experiment.plan(self.scale)
        changed = (_changed(spec, self.overrides, self.experiment.id) for spec in plan)
        return [run for spec in changed for run in spec.with_folder(self.data).runs()]


def reproduce(
    order: Order, out: Path, *, progress: bool | None = None, tell: Tell = lambda _: None
) -> Outcome:
    """Run what is not yet run of an experiment, judge its claims, and publish the report."""
    experiment, specs, store = order.experiment, order.runs(), out / RUNS
    if order.only_finished:
        found = [record for spec in specs if (record := finished(spec, store)) is not None]
    else:
        found = _all_done(specs, store, experiment.also, progress, tell)
    points = points_of(found)
    verdicts = judged(experiment.claims, points, order.scale)
    facts = {
        "experiment": experiment.id,
        "title": experiment.title,
        "scale": order.scale,
        "overrides": list(order.overrides),
        "missing_runs": len(specs) - len(found),
    }
    notes = [experiment.shows, _sizes(order, specs)]
    notes += [f"Changed with --set: {', '.join(order.overrides)}."] if order.overrides else []
    notes += [f"{facts['missing_runs']} runs are not there yet."] if facts["missing_runs"] else []
    report = Report(
        title=f"{experiment.id}: {experiment.title}",
        intro="\n\n".join(notes),
        points=points,
        drawings=[one for picture in experiment.pictures for one in picture(points)],
        verdicts=[verdict.as_dict() for verdict in verdicts],
        album=() if experiment.album is None else experiment.album(points),
    )
    return _published(out / f"{experiment.id}-{order.scale}", report, verdicts, facts)


def _sizes(order: Order, specs: Sequence[RunSpec]) -> str:
    """The scale in numbers: what an experiment says of itself is its full one."""
    full = {run.key for run in Order(order.experiment, "full").runs()}
    learners, rounds, seeds = (
        sorted({getattr(spec, name) for spec in specs}) for name in ("learners", "rounds", "seed")
    )
    told = (
        f"Scale {order.scale}: {_listed(learners)} learners a run, {_listed(rounds)} rounds, "
        f"{'seed' if len(seeds) == 1 else 'seeds'} {_listed(seeds)}."
    )
    smaller = order.scale != "full" and {run.key for run in specs} != full
    return f"{told} The text above tells of the full scale." if smaller else told


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def run_spec(
    spec: Spec,
    out: Path,
    *,
    name: str,
    progress: bool | None = None,
    tell: Tell = lambda _: None,
) -> Outcome:
    """Run what is not yet run of a spec, and publish a report under that name."""
    found = _all_done(spec.runs(), out / RUNS, None, progress, tell)
    return report_on(found, out / name, spec.title or name)


def report_on(found: Sequence[Record], folder: Path, title: str) -> Outcome:
    """A report on any runs."""
    points = points_of(found)
    return _published(folder, Report(title, "", points, _usual(points)), (), {"title": title})


def finished_runs(paths: Sequence[Path]) -> list[Record]:
    """The runs in these folders, each once. A report's folder stands for the runs it shows, and a
    folder of runs for all finished ones in it.
    """
    folders = dict.fromkeys(folder for path in paths for folder in _run_folders(path))
    return [records.read(folder) for folder in folders]


def _run_folders(path: Path) -> list[Path]:
    if records.is_finished(path):
        return [path]
    result = path / RESULT
    if result.is_file():
        runs = json.loads(result.read_text(encoding="utf-8"))["runs"]
        return [_found(Path(run["folder"]), path) for run in runs]
    return sorted(one.parent for one in path.glob("*/summary.json")) or [path]


def _found(folder: Path, report: Path) -> Path:
    """A run's folder as a report names it, which is relative to where the command was given; or
    else in the store beside the report, if both were moved or one has gone elsewhere.
    """
    beside = report.parent / RUNS / folder.name
    return beside if not folder.exists() and beside.exists() else folder


def _usual(points: Sequence[Point]) -> list[Drawing]:
    """The pictures that make sense of any runs."""
    pictures = (front, over_time, set_sizes, causes, divergence)
    return [drawing for picture in pictures for drawing in picture(points)]


def _all_done(
    specs: Sequence[RunSpec], store: Path, also: Also | None, progress: bool | None, tell: Tell
) -> list[Record]:
    found = []
    for record, fresh in run_all(specs, store, progress=progress, also=also):
        found.append(record)
        tell(Progress(record, fresh, len(found), len(specs)))
    return found


def _changed(spec: Spec, overrides: Sequence[str], where: str) -> Spec:
    if not overrides:
        return spec
    return parsed(overridden(spec.model_dump(mode="json"), overrides), where)


def _published(
    folder: Path, report: Report, verdicts: Sequence[Verdict], facts: Mapping[str, Any]
) -> Outcome:
    page, figures = publish(folder, report)
    outcome = Outcome(list(report.points), page, figures, verdicts, facts)
    text = json.dumps(outcome.as_dict(), indent=2, ensure_ascii=False)
    (folder / RESULT).write_text(text + "\n", encoding="utf-8")
    return outcome
