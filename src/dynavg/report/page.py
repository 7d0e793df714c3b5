"""One self-contained HTML page per report: no network, light and dark, readable on a phone."""

import html
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from dynavg.protocol.ledger import readable_bytes
from dynavg.report.charts import Bars, Chart, Drawing, Grid, Series
from dynavg.report.drawing import COLOURS
from dynavg.report.points import Point, baseline_of

__all__ = ["COLUMNS", "rows_of", "write_page"]

COLUMNS = (
    "loss: cumulative, mean over seeds ± standard deviation once the difficulty of each seed is "
    "taken out; accuracy: on each learner's last 100 samples; saved: against the periodic run that "
    "sends most"
)
"""What the columns of `rows_of` mean."""
TEXT = 0.12, 0.06
"""Width and height of a text beside a point, as shares of the ranges of x and y."""

MARK = {"color": "#888888", "width": 1, "dash": "dot"}
DOT = 5


def write_page(
    path: Path,
    title: str,
    intro: str,
    verdicts: Sequence[Mapping[str, Any]],
    points: Sequence[Point],
    drawings: Sequence[Drawing],
    pictures: Sequence[tuple[str, str]] = (),
) -> Path:
    """Write the page: claims on top, then the runs, then the charts.

    `verdicts` have `id`, `text`, `verdict`, `expected`, `measured`, `holds`; `pictures` are
    (caption, data URL) of what is no chart.
    """
    charts = [(drawing.title, _figure(drawing)) for drawing in drawings]
    body = "\n".join(
        (
            f"<h1>{html.escape(title)}</h1>",
            *(f"<p>{html.escape(part)}</p>" for part in intro.split("\n\n") if part),
            _claims(verdicts),
            "<h2>Runs</h2>",
            _table(*rows_of(points)),
            f'<p class="small">{html.escape(COLUMNS)}</p>',
            *(f'<h2>{html.escape(name)}</h2><div class="chart" id="chart{n}"></div>'
              for n, (name, _) in enumerate(charts)),
            *(f'<h2>{html.escape(caption)}</h2>'
              f'<div class="wide"><img alt="{html.escape(caption)}" src="{source}"></div>'
              for caption, source in pictures),
        )
    )  # fmt: skip
    figures = "[" + ",".join(figure.to_json() for _, figure in charts) + "]"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        _PAGE.format(
            title=html.escape(title),
            style=_STYLE,
            body=body,
            plotly=get_plotlyjs(),
            figures=figures.replace("</", "<\\/"),
            script=_SCRIPT,
        ),
        encoding="utf-8",
    )
    return path


def rows_of(points: Sequence[Point]) -> tuple[list[str], list[list[str]]]:
    """Headings and cells of the table of runs; bytes saved are against the periodic run of the
    same setting that sends most.
    """
    headings = ["run", "seeds", "loss", "accuracy", "bytes", "saved", "seconds"]
    return headings, [_row(point, baseline_of(point, points)) for point in points]


def _row(point: Point, baseline: Point | None) -> list[str]:
    if point.diverged:
        ended = next(run.summary["diverged"] for run in point.runs if "diverged" in run.summary)
        told = f"diverged: learner {ended['learner']} in round {ended['round']}"
        return [point.name, str(len(point.runs)), told, "", "", "", ""]
    spread = f" ± {point.spread:.2g}" if len(point.runs) > 1 else ""
    accuracy = point.mean("accuracy_last_100")
    compared = None if point.kind == "serial" else baseline
    return [
        point.name,
        str(len(point.runs)),
        f"{point.loss:.5g}{spread}",
        "" if math.isnan(accuracy) else f"{accuracy:.4f}",
        readable_bytes(point.bytes),
        _share(1 - point.bytes / compared.bytes) if compared else "",
        f"{point.mean('seconds'):.0f}",
    ]


def _share(saved: float) -> str:
    """Only what sends nothing saves 100 %."""
    return f"{min(saved, 0.999):.1%}" if 0.99 < saved < 1 else f"{saved:.0%}"


def _claims(verdicts: Sequence[Mapping[str, Any]]) -> str:
    if not verdicts:
        return ""
    classes = {True: "holds", False: "fails", None: "open"}
    rows = "".join(
        f'<tr class="{classes[verdict["holds"]]}"><td>{html.escape(verdict["id"])}</td>'
        f"<td><b>{html.escape(verdict['verdict'])}</b></td><td>{html.escape(verdict['text'])}</td>"
        f"<td>{html.escape(verdict['expected'])}</td><td>{_lines(verdict['measured'])}</td></tr>"
        for verdict in verdicts
    )
    heads = "".join(f"<th>{head}</th>" for head in ("", "verdict", "claim", "expected", "measured"))
    return f'<h2>Claims</h2><table class="claims"><tr>{heads}</tr>{rows}</table>'


def _lines(text: str) -> str:
    """A line for each part of a measurement."""
    return html.escape(text).replace("; ", "<br>")


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in headings)
    lines = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f'<div class="wide"><table class="numbers"><tr>{head}</tr>{lines}</table></div>'


def _figure(drawing: Drawing) -> go.Figure:
    figure = go.Figure()
    match drawing:
        case Chart():
            _add_chart(figure, drawing)
        case Bars():
            for colour, (name, heights) in zip(COLOURS, drawing.parts.items(), strict=False):
                figure.add_bar(x=list(drawing.labels), y=heights, name=name, marker_color=colour)
            figure.update_layout(barmode="stack", yaxis_title=drawing.y)
        case Grid():
            figure.add_heatmap(
                x=[f"{drawing.x} = {column}" for column in drawing.columns],
                y=[f"{drawing.y} = {row}" for row in drawing.rows],
                z=drawing.values,
                texttemplate="%{z:.2f}",
                colorscale="Viridis",
            )
    figure.update_layout(
        template="none",
        margin={"l": 70, "r": 20, "t": 34},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
    )
    return figure


def _add_chart(figure: go.Figure, chart: Chart) -> None:
    texts = _texts(chart)
    for series in chart.series:
        figure.add_scatter(**_trace(series, texts))
    for name, look in (
        (chart.dots_mean, {"mode": "markers", "marker": {"color": "#888888", "size": DOT}}),
        (chart.marks_mean, {"mode": "lines", "line": MARK}),
    ):
        if name:  # a trace without points explains a sign in the legend
            figure.add_scatter(x=[None], y=[None], name=name, **look)
    for mark in chart.marks:
        figure.add_vline(x=mark, line=MARK)
    for axis, label, unit in (("xaxis", chart.x, chart.x_unit), ("yaxis", chart.y, chart.y_unit)):
        settings: dict[str, Any] = {"title": {"text": label}, "automargin": True}
        settings |= {"type": "log", "dtick": "D2"} if unit == "log" else {}
        settings |= {"exponentformat": "SI", "ticksuffix": "B"} if unit == "bytes" else {}
        figure.update_layout({axis: settings})


_Texts = dict[tuple[float, float, str], str]


def _texts(chart: Chart) -> _Texts:
    """On which side of which points their texts stand: as many as do not cover each other, and
    inwards at the right edge. The rest is shown when pointed at.
    """
    points = [
        (x, y, text)
        for series in chart.series
        for x, y, text in zip(series.x, series.y, series.texts, strict=False)
    ]
    if not points:
        return {}
    width, height = (float(np.ptp([point[axis] for point in points])) or 1.0 for axis in (0, 1))
    edge = max(x for x, *_ in points) - TEXT[0] * width
    chosen: _Texts = {}
    for x, y, text in points:
        if all(abs(x - u) > TEXT[0] * width or abs(y - v) > TEXT[1] * height for u, v, _ in chosen):
            chosen[x, y, text] = "top left" if x > edge else "top right"
    return chosen


def _trace(series: Series, texts: _Texts) -> dict[str, Any]:
    colour = COLOURS[series.colour % len(COLOURS)]
    trace: dict[str, Any] = {"x": series.x, "y": series.y, "name": series.name}
    trace |= {"legendgroup": series.name}  # dots go with their line
    if series.kind == "dots":
        look = {"mode": "markers", "marker": {"color": colour, "size": DOT}}
        return trace | look | {"showlegend": False, "hoverinfo": "skip"}
    if series.kind != "points":
        shape = "hv" if series.kind == "steps" else "linear"
        dashed = series.kind == "dashed" or series.colour >= len(COLOURS)
        dash = "dash" if dashed else "solid"
        line = {"color": colour, "width": 2, "shape": shape, "dash": dash}
        return trace | {"mode": "lines", "line": line}
    symbol = "circle-open" if series.hollow else "circle"
    named = list(zip(series.x, series.y, series.texts, strict=False))
    trace |= {
        "mode": "markers" + "+lines" * series.joined + "+text" * bool(series.texts),
        "textposition": [texts.get(point, "top right") for point in named] or None,
        "textfont": {"size": 10, "color": colour},
        "marker": {"color": colour, "size": 12 if series.hollow else 8, "symbol": symbol},
        "line": {"color": colour, "width": 1},
        "text": [point[2] if point in texts else "" for point in named] or None,
        "hovertext": list(series.texts) or None,
    }
    if series.spread is not None and series.spread.any():
        trace["error_y"] = {"type": "data", "array": series.spread, "thickness": 1}
    return trace


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>{style}</style></head>
<body><main>{body}</main>
<script>{plotly}</script>
<script>const figures = {figures};
{script}</script></body></html>
"""

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2329; --paper: #ffffff; --line: #d9dde1;
  --good: #1a7f37; --bad: #c0392b; --open: #8a6d00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7ea; --paper: #16191d; --line: #3a4046;
  --good: #4cc36c; --bad: #ff7b6b; --open: #e3b341; } }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.5rem; line-height: 1.25; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: 0.9rem; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: 0.35rem 0.6rem;
  border-bottom: 1px solid var(--line); }
.numbers td { white-space: nowrap; font-variant-numeric: tabular-nums; }
.numbers td:not(:first-child), .numbers th:not(:first-child) { text-align: right; }
.holds b { color: var(--good); } .fails b { color: var(--bad); } .open b { color: var(--open); }
@media (min-width: 45rem) { .claims td:nth-child(5) { min-width: 20rem; } }
.small { font-size: 0.85rem; opacity: 0.8; }
td b { white-space: nowrap; } img { max-width: 100%; }
@media (max-width: 45rem) { .claims tr:first-child { display: none; }
  .claims tr { display: block; padding: 0.6rem 0; border-bottom: 1px solid var(--line); }
  .claims td { display: block; border: 0; padding: 0.1rem 0; }
  .claims td:nth-child(1) { margin-right: 0.5em; font-weight: bold; }
  .claims td:nth-child(4)::before { content: "expected: "; opacity: 0.7; }
  .claims td:nth-child(5)::before { content: "measured: "; opacity: 0.7; }
  .claims td:nth-child(1), .claims td:nth-child(2) { display: inline; }
  .wide img { max-width: none; width: 45rem; } }
"""

_SCRIPT = """
const dark = window.matchMedia("(prefers-color-scheme: dark)");
function draw() {
  const ink = dark.matches ? "#e4e7ea" : "#1d2329", line = dark.matches ? "#3a4046" : "#d9dde1";
  figures.forEach((figure, n) => {
    // The legend lies below the axis in as many columns as fit, and the chart grows by its rows.
    const place = document.getElementById("chart" + n);
    const names = figure.data.filter(one => one.showlegend !== false && one.name)
      .map(one => one.name.length);
    const columns = Math.max(1, Math.floor(place.clientWidth / (60 + 7 * Math.max(0, ...names))));
    const rows = names.length > 1 || figure.data[0]?.type === "bar"
      ? Math.ceil(names.length / columns) : 0;
    const low = 60 + 20 * rows;
    const layout = Object.assign({}, figure.layout, {font: {color: ink, size: 13},
      width: place.clientWidth, height: 390 + low,
      margin: Object.assign({}, figure.layout.margin, {b: low}),
      legend: {orientation: "h", font: {size: 12}, maxheight: 1, yref: "container", y: 0,
        yanchor: "bottom"},
      modebar: {bgcolor: "rgba(0,0,0,0)", color: line, activecolor: ink}});
    for (const axis of ["xaxis", "yaxis"])
      layout[axis] = Object.assign({}, layout[axis], {gridcolor: line, linecolor: line,
        zerolinecolor: line});
    Plotly.react("chart" + n, figure.data, layout, {displaylogo: false,
      modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"]});
  });
}
draw();
dark.addEventListener("change", draw);
window.addEventListener("resize", draw);
"""
