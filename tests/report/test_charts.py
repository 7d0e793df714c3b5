"""What charts show, and what they do not suggest."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from dynavg.records import Record
from dynavg.report.charts import divergence, front, over_time, set_sizes
from dynavg.report.drawing import draw
from dynavg.report.page import write_page
from dynavg.report.points import points_of
from tests.experiments.made_up import points, run

DYNAMIC = {"kind": "dynamic", "delta": 1.0}


def recorded(folder: Path, checks: dict[str, list[Any]], *, rounds: int = 60, seed: int = 0):
    """A run of one learner with a sample and a loss of 2 in each round, and these checks."""
    folder.mkdir(parents=True)
    every = {"round": list(range(1, rounds + 1)), "learner": [0] * rounds}
    frame = pl.DataFrame(every | {"loss": [2.0] * rounds, "samples": [1] * rounds})
    frame.write_parquet(folder / "rounds.parquet")
    schema = {"cause": pl.String, "divergence_after": pl.Float64}
    plain = {"bytes": [10] * len(checks["round"]), "false_alarm": [None] * len(checks["round"])}
    pl.DataFrame(plain | checks, schema_overrides=schema).write_parquet(folder / "checks.parquet")
    spec = {"name": "dynamic Δ=1", "operator": DYNAMIC, "seed": seed, "rounds": rounds}
    summary = {"loss_per_learner": 2.0 * rounds, "bytes": {"total": 10}, "learners": 1}
    return Record(folder, spec, summary | {"drifts": [{"round": 31}]})


def in_setting(record, words, **settings):
    record.spec.update(settings, name=f"{record.spec['name']}, {words}" if words else "dynamic")
    return record


def test_a_front_joins_points_of_one_setting_only():
    runs = [
        in_setting(run(loss, sent, kind="dynamic", delta=sent), f"lr={lr}", lr=lr)
        for lr, loss in ((0.1, 900.0), (0.3, 500.0))
        for sent in (10, 20)
    ]
    [chart] = front(points(*runs))
    assert [series.name for series in chart.series] == ["dynamic, lr=0.1", "dynamic, lr=0.3"]
    assert [series.y.tolist() for series in chart.series] == [[900.0, 900.0], [500.0, 500.0]]
    assert chart.series[0].texts == ("10", "20")


def test_dots_stand_where_a_run_synchronised_and_lines_where_its_data_drifted(tmp_path):
    checks = {"round": [10, 20, 30], "cause": ["balanced", None, "counter"]}
    loss, sent = over_time(points_of([recorded(tmp_path / "a", checks)]))
    [dots] = [series for series in loss.series if series.kind == "dots"]
    assert (dots.x.tolist(), dots.y.tolist()) == ([10.0, 30.0], [20.0, 60.0])
    [dots] = [series for series in sent.series if series.kind == "dots"]
    assert (dots.x.tolist(), dots.y.tolist()) == ([10.0, 30.0], [10.0, 30.0])
    assert loss.marks == sent.marks == (30.0,)
    assert loss.dots_mean == sent.dots_mean == "synchronisation"


def test_of_very_many_synchronisations_every_stretch_of_time_keeps_one(tmp_path):
    everywhere = list(range(1, 2001))
    checks = {"round": everywhere, "cause": ["balanced"] * 2000}
    loss, _ = over_time(points_of([recorded(tmp_path / "a", checks, rounds=2000)]))
    [dots] = [series for series in loss.series if series.kind == "dots"]
    assert np.diff(dots.x).tolist() == [5.0] * 399


def test_no_line_leads_through_time_without_synchronisations(tmp_path):
    checks = {"round": [1, 2, 40], "cause": ["balanced"] * 3, "balancing_set": [2, 4, 3]}
    [chart] = set_sizes(points_of([recorded(tmp_path / "a", checks)]))
    [series] = chart.series
    heights = dict(zip(series.x.tolist(), series.y.tolist(), strict=True))
    assert (heights[1.0], heights[2.0], heights[40.0]) == (2.0, 4.0, 3.0)
    assert np.isnan(series.y).sum() == 57


def test_a_divergence_of_zero_has_no_place_on_a_logarithmic_scale(tmp_path):
    checks = {
        "round": [1, 2, 3],
        "cause": ["balanced", "counter", None],
        "divergence_before": [0.5, 0.7, 0.2],
        "divergence_after": [0.4, 0.0, 0.2],
    }
    [chart] = divergence(points_of([recorded(tmp_path / "a", checks)]))
    before, after = chart.series
    assert before.y.tolist() == [0.5, 0.7, 0.2]
    assert after.y[[0, 2]].tolist() == [0.4, 0.2]
    assert np.isnan(after.y[1])


def test_titles_name_the_seed_that_is_shown_where_there_are_several(tmp_path):
    checks = {"round": [5], "cause": ["balanced"]}
    runs = [recorded(tmp_path / str(seed), checks, seed=seed) for seed in (7, 8)]
    assert over_time(points_of(runs))[0].title.endswith("(seed 7)")
    assert "seed" not in over_time(points_of(runs[:1]))[0].title


def test_texts_of_a_front_cover_no_text_and_no_point():
    close = [run(100.0 + n, 1000.0 + n, kind="dynamic", delta=10**12 + n) for n in range(90)]
    [chart] = front(points(*close))
    figure = draw(chart)
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    assert 1 < len(boxes) < 90
    assert not any(one.overlaps(two) for n, one in enumerate(boxes) for two in boxes[:n])


@pytest.mark.parametrize("sign", ["drift", "synchronisation"])
def test_the_pages_legend_explains_each_sign_once(tmp_path, sign):
    checks = {"round": [10, 20], "cause": ["balanced", "balanced"]}
    charts = over_time(points_of([recorded(tmp_path / "a", checks)]))
    page = write_page(tmp_path / "page.html", "title", "", (), (), charts[:1])
    figures = page.read_text(encoding="utf-8").rpartition("const figures = ")[2]
    assert figures.count(f'"name":"{sign}"') == 1


def test_texts_on_a_page_do_not_cover_each_other(tmp_path):
    alike = [run(100.0, 1000.0, kind="dynamic", delta=n) for n in (1, 2)]
    far = run(50.0, 9000.0, kind="dynamic", delta=3)
    page = write_page(tmp_path / "page.html", "title", "", (), (), front(points(*alike, far)))
    figures = page.read_text(encoding="utf-8").rpartition("const figures = ")[2]
    assert '"hovertext":["1","2","3"]' in figures
    assert '"text":["1","","3"]' in figures
