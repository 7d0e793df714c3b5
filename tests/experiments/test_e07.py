"""E7: models that drive; what its claims find is worked out by hand."""

from dataclasses import replace

import polars as pl
import pytest
from PIL import Image

from dynavg.driving import load_model
from dynavg.experiments import e07
from dynavg.experiments.catalogue import experiment_named
from dynavg.experiments.reproduce import Order, reproduce
from tests.experiments.made_up import diverged, points, run

ONE = {"kind": "periodic", "every": 1}
EIGHT = {"kind": "periodic", "every": 8}


def drove(seconds, sent, *, crossings=(0,), curve=None, **operator):
    """A run whose models, one for each number of crossings, drove so long from the one start."""
    made = run(1.0, sent, **operator)
    ride = {
        "track": "narrow",
        "at": 0.0,
        "day": "noon",
        "outcome": "finished" if seconds == 100 else "off road",
        "seconds": float(seconds),
        "line_seconds": 0.0,
        "laps": seconds / 50,
    }
    rides = [[{**ride, "crossings": own}] for own in crossings]
    made = replace(made, summary={**made.summary, "rides": rides})
    if curve is not None:
        frame = pl.DataFrame({"round": range(1, len(curve) + 1), "loss": 1.0, "samples": 1})
        made.__dict__["rounds"] = frame
        made.__dict__["checks"] = pl.DataFrame({"round": frame["round"], "bytes": curve})
    return made


BASE = drove(100, 1000, **ONE)


@pytest.mark.parametrize(
    ("seconds", "sent", "holds"),
    [
        (100, 500, True),
        (98, 500, True),  # L_dd 0.8 * 2 / 100 = 0.016, within the slack of 0.02
        (97, 500, False),  # planted: 0.024
        (100, 1000, False),  # planted: no fewer bytes
    ],
)
def test_a_periodic_run_is_beaten_by_fewer_bytes_at_no_worse_driving(seconds, sent, holds):
    made = points(BASE, drove(seconds, sent, kind="dynamic", delta=0.1))
    assert e07.each_is_beaten(made).holds is holds


def test_every_periodic_run_must_be_beaten():
    dynamic = drove(100, 500, kind="dynamic", delta=0.1)
    assert not e07.each_is_beaten(points(BASE, drove(100, 10, **EIGHT), dynamic)).holds


def test_crossings_are_compared_over_all_models():
    # One periodic model crosses 8 times, the most; the dynamic one once: 0.15 * 1 / 8 = 0.01875.
    many = drove(100, 1000, crossings=(8,), **ONE)
    few = drove(100, 1000, crossings=(0,), **EIGHT)
    dynamic = drove(100, 500, crossings=(1,), kind="dynamic", delta=0.1)
    assert e07.each_is_beaten(points(many, few, dynamic)).holds
    assert not e07.each_is_beaten(points(few, dynamic)).holds  # 0.15 * 1 / 1


@pytest.mark.parametrize(
    ("curve", "holds"), [([30, 30, 20, 20], True), ([25, 25, 25, 25], False), ([0, 0, 5, 5], False)]
)
def test_communication_is_front_loaded_only_if_the_first_half_has_more_of_it(curve, holds):
    dynamic = drove(100, sum(curve), curve=curve, kind="dynamic", delta=0.1)
    assert e07.front_loaded(points(BASE, dynamic)).holds is holds


@pytest.mark.parametrize(("most", "holds"), [(90, True), (99, False)])
def test_the_busiest_are_not_the_best_only_if_another_drives_clearly_better(most, holds):
    busy = drove(most, 1000, **ONE), drove(most, 900, kind="dynamic", delta=0.01)
    assert e07.neither_is_best(points(*busy, drove(100, 10, **EIGHT))).holds is holds


def test_cars_that_do_not_speak_are_judged_each_by_its_own_model():
    serial = drove(100, 0, kind="serial")
    # 0.15 * (8 + 0) / 2 / 8 = 0.075 for two cars; 0.15 for one
    two = drove(100, 0, crossings=(8, 0), kind="nosync")
    assert e07.scored(points(serial, two))["nosync"].loss == pytest.approx(0.075)
    assert not e07.alone_is_worse(points(serial, two)).holds
    assert e07.alone_is_worse(points(serial, drove(100, 0, crossings=(8,), kind="nosync"))).holds


def test_a_diverged_run_is_left_out_of_claims_and_pictures():
    made = points(BASE, diverged(kind="dynamic", delta=0.1))
    assert set(e07.scored(made)) == {"periodic 1"}
    assert e07.driven_front([]) == []
    assert [len(chart.series) for chart in e07.driven_front(made)] == [1]


def test_the_published_grid_and_a_wider_one_are_run_at_full_scale():
    [spec] = e07.plan("full")
    runs = spec.runs()
    assert {r.operator.get("every") for r in runs if r.operator["kind"] == "periodic"} == {
        1,
        2,
        4,
        8,
    }
    deltas = {r.operator["delta"] for r in runs if r.operator["kind"] == "dynamic"}
    assert deltas > set(e07.PUBLISHED)
    assert min(deltas) < min(e07.PUBLISHED)
    assert max(deltas) > max(e07.PUBLISHED)
    assert {r.operator["kind"] for r in runs} > {"serial", "nosync"}
    assert {(r.learners, r.rounds * r.batch_size, r.optimizer["lr"]) for r in runs} == {
        (10, 25_000, 0.1)
    }


@pytest.fixture
def fewer(monkeypatch):
    """Two starts, not twelve."""
    monkeypatch.setattr(e07, "STARTS", e07.STARTS[:1] + e07.STARTS[-1:])


@pytest.mark.slow
def test_a_small_fleet_learns_drives_and_is_judged(tmp_path, fewer):
    outcome = reproduce(Order(experiment_named("E7"), "smoke"), tmp_path, progress=False)
    assert [verdict.id for verdict in outcome.verdicts] == ["E7.1", "E7.2", "E7.3", "E7.4"]
    assert {figure.stem for figure in outcome.figures} >= {"driving", "communication", "loss"}
    assert outcome.page.read_text(encoding="utf-8").count('src="data:image/jpeg') == 6
    for point in outcome.points:
        folder, rides = point.runs[0].folder, point.runs[0].summary["rides"]
        assert len(rides) == (2 if point.kind == "nosync" else 1)
        assert {len(own) for own in rides} == {2}
        with Image.open(folder / e07.FILM) as film:
            assert film.size == (320, 400)
        load_model(folder / "model.safetensors")  # what `dynavg drive` takes
