"""Keep what `dynavg reproduce` found: `python results/keep.py out/E6-full`.

Copies the numbers and figures of reports into this folder, without the runs and the page, which are
large, and writes docs/results.md anew from all that is kept here. Beside a result, `notes.md` says
what its numbers cannot: it stands in the page below them. Without arguments, only the page is
written.
"""

import json
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from dynavg.experiments.catalogue import NAMES
from dynavg.records import Record
from dynavg.report.page import rows_of
from dynavg.report.points import Point, points_of

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "results.md"

HEAD = """# Results

What the paper claims, and what came out here at the paper's size. `python results/keep.py` writes
this page from what lies in `results/`; each section names the command that runs it again.
Thresholds stand in the code and were there before the runs. Learning rates that the paper does not
give were chosen for periodic averaging, on seeds that no experiment uses (`results/rates/`). The
paper's Δ belong to its authors' code, rates and counts of messages, so a wider grid was run as
well, and claims are judged on both.

Loss: cumulative, per learner, mean over seeds ± standard deviation once the difficulty of each seed
is taken out. Accuracy: on each learner's last 100 samples, before it learned from them. Saved:
against the periodic run of the same setting that sends most. Seconds: one run, next to other work
on the same two cores.
"""


def keep(report: Path) -> Path:
    """Copy a report's numbers and figures; folders are told as where runs lie by default."""
    place = HERE / report.name
    shutil.rmtree(place / "figures", ignore_errors=True)
    place.mkdir(exist_ok=True)
    told = (report / "result.json").read_text()
    (place / "result.json").write_text(told.replace(str(report.parent), "out"))
    shutil.copytree(report / "figures", place / "figures")
    return place


def page() -> str:
    """The whole page."""
    kept = {name: HERE / f"{name}-full" for name in NAMES}
    results = {
        name: json.loads((place / "result.json").read_text())
        for name, place in kept.items()
        if (place / "result.json").is_file()
    }
    parts = [HEAD, *_overview(results)]
    for name, result in results.items():
        parts += _section(name, result, kept[name])
    missing = [name for name in NAMES if name not in results]
    if missing:
        parts += ["## Not run\n"]
        parts += [f"- {name}: `dynavg reproduce {name} --scale full`" for name in missing]
    return "\n".join(parts).rstrip() + "\n"


def _overview(results: dict[str, Any]) -> list[str]:
    rows = [
        [claim["id"], claim["text"], f"**{claim['verdict']}**"]
        for result in results.values()
        for claim in result["claims"]
    ]
    return [_table(["", "claim", "verdict"], rows), ""]


def _section(name: str, result: dict[str, Any], place: Path) -> list[str]:
    runs = result["runs"]
    machine, seconds = runs[0]["machine"], sum(run["seconds"] for run in runs)
    seeds = len({run["seed"] for run in runs})
    claims = [
        [one["id"], f"**{one['verdict']}**", one["expected"], one["measured"].replace("; ", "<br>")]
        for one in result["claims"]
    ]
    notes = place / "notes.md"
    figures = [place / "figures" / Path(figure).name for figure in result["figures"]]
    changed = "".join(f" --set {override}" for override in result["overrides"])
    incomplete = f" {result['missing_runs']} runs are missing." if result["missing_runs"] else ""
    told = (
        f"`dynavg reproduce {name} --scale {result['scale']}{changed}`: {len(runs)} runs with "
        f"{seeds} {'seeds' if seeds > 1 else 'seed'} in {seconds / 60:.0f} minutes on "
        f"{machine['machine']}, torch {machine['torch']}.{incomplete}"
    )
    links = (f"[{figure.stem}](../{figure.relative_to(HERE.parent)})" for figure in figures)
    return [
        f"## {name}: {result['title']}\n",
        f"{told}\n",
        _table(["", "verdict", "expected", "measured"], claims),
        "",
        *([notes.read_text().rstrip(), ""] if notes.is_file() else []),
        *(f"![{figure.stem}](../{figure.relative_to(HERE.parent)})\n" for figure in figures[:1]),
        _table(*rows_of(_points(runs))),
        "",
        f"Figures: {', '.join(links)}.\n",
    ]


def _points(runs: Iterable[dict[str, Any]]) -> list[Point]:
    """Points with what the table needs, from the lines that a report keeps of its runs."""
    records = []
    for run in runs:
        operator, _, setting = run["name"].partition(", ")
        spec = {"name": run["name"], "seed": run["seed"], "setting": setting}
        spec |= {"operator": {"kind": operator.split()[0]}}
        summary = run | {"bytes": run["bytes_by_view"]}
        records.append(Record(Path(run["folder"]), spec, summary))
    return points_of(records)


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(cell for cell in line) + " |" for line in lines)


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        keep(Path(argument))
    PAGE.write_text(page())
