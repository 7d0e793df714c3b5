"""A report on disk: `report.html`, and each figure as PNG and SVG under `figures/`."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dynavg.report.charts import Drawing
from dynavg.report.drawing import draw_all
from dynavg.report.page import write_page
from dynavg.report.points import Point

__all__ = ["Report", "publish"]

MIME = {".png": "image/png", ".gif": "image/gif", ".jpg": "image/jpeg", ".webp": "image/webp"}


@dataclass(frozen=True, slots=True)
class Report:
    """What a report shows. `album` are pictures that are no charts, each with its caption."""

    title: str
    intro: str
    points: Sequence[Point]
    drawings: Sequence[Drawing]
    verdicts: Sequence[Mapping[str, Any]] = ()
    album: Sequence[tuple[str, Path]] = ()


def publish(folder: Path, report: Report) -> tuple[Path, list[Path]]:
    """Write a report into the folder: the page's path, and the figures'."""
    folder.mkdir(parents=True, exist_ok=True)
    figures = draw_all(report.drawings, folder / "figures")
    page = write_page(
        folder / "report.html",
        report.title,
        report.intro,
        report.verdicts,
        report.points,
        report.drawings,
        [(caption, _inline(path)) for caption, path in report.album],
    )
    return page, figures


def _inline(path: Path) -> str:
    content = base64.b64encode(path.read_bytes()).decode()
    return f"data:{MIME[path.suffix]};base64,{content}"
