"""From a plan to verdicts and a report; nothing is done twice, nothing is lost."""

import json
from pathlib import Path

import polars as pl
import pytest
from safetensors.torch import load_file

from dynavg import data
from dynavg.experiments import running
from dynavg.experiments.catalogue import NAMES, experiment_named
from dynavg.experiments.reproduce import Order, finished_runs, report_on, reproduce, run_spec
from dynavg.experiments.running import StoppedError, finished, run_all
from tests.experiments import tiny

MACHINE = [name for name in NAMES if name != "E7"]  # E7 has tests of its own


@pytest.mark.slow
@pytest.mark.parametrize("name", MACHINE)
def test_an_experiment_runs_is_judged_and_drawn(name, tmp_path, pictures):
    experiment = experiment_named(name)
    outcome = reproduce(Order(experiment, "smoke"), tmp_path, progress=False)
    assert [verdict.id for verdict in outcome.verdicts] == [c.id for c in experiment.claims]
    assert len(outcome.figures) >= 1
    assert all(figure.with_suffix(".svg").stat().st_size > 1000 for figure in outcome.figures)
    told = json.loads((outcome.page.parent / "result.json").read_text())
    assert told == outcome.as_dict()
    assert (told["experiment"], told["scale"], told["missing_runs"]) == (name, "smoke", 0)
    assert len(told["runs"]) == len(Order(experiment, "smoke").runs())


def test_a_page_says_how_large_its_runs_are(tmp_path):
    outcome = reproduce(Order(experiment_named("E2"), "smoke", only_finished=True), tmp_path)
    page = outcome.page.read_text(encoding="utf-8")
    assert "Scale smoke: 3 learners a run, 60 rounds, seed 0." in page
    assert "The text above tells of the full scale." in page


def test_finished_runs_are_not_done_again(tmp_path):
    seen = []
    for _ in range(2):
        run_spec(tiny.spec(), tmp_path, name="tiny", progress=False, tell=seen.append)
    assert [progress.fresh for progress in seen] == [True, True, False, False]
    assert [progress.done for progress in seen] == [1, 2, 1, 2]


def test_only_finished_judges_what_is_there(tmp_path):
    e2 = experiment_named("E2")
    specs = Order(e2, "smoke").runs()
    list(run_all(specs[:1], tmp_path / "runs", progress=False))
    outcome = reproduce(Order(e2, "smoke", only_finished=True), tmp_path, progress=False)
    assert outcome.facts["missing_runs"] == len(specs) - 1
    assert {verdict.holds for verdict in outcome.verdicts} == {None}


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path, monkeypatch):
    spec = tiny.spec(rounds=40).runs()[1]
    whole = running.run(spec, tmp_path / "whole", progress=False)
    simulate = running.simulate

    def interrupted(**arguments):
        def stop(check):
            if check.record.round == 25:
                raise KeyboardInterrupt

        return simulate(**arguments, callbacks=[stop])

    monkeypatch.setattr(running, "simulate", interrupted)
    with pytest.raises(StoppedError, match="the same command goes on"):
        list(run_all([spec], tmp_path / "store", progress=False))
    assert finished(spec, tmp_path / "store") is None
    monkeypatch.setattr(running, "simulate", simulate)
    [(resumed, fresh)] = run_all([spec], tmp_path / "store", progress=False)
    assert fresh
    assert resumed.rounds.equals(whole.rounds)
    assert resumed.ledger.equals(whole.ledger)
    assert not (resumed.folder / running.CHECKPOINT).exists()


def test_a_record_holds_all_there_is_to_know(tmp_path):
    spec = tiny.spec(seeds=[5]).runs()[1]
    record = running.run(spec, tmp_path / "run", progress=False)
    assert record.spec["seed"] == 5
    assert record.spec["operator"] == tiny.DYNAMIC
    assert record.summary["machine"].keys() >= {"torch", "dynavg", "python", "commit"}
    frames = {path.stem: pl.read_parquet(path) for path in record.folder.glob("*.parquet")}
    assert frames.keys() == {"rounds", "checks", "evaluations", "ledger"}
    assert len(frames["rounds"]) == 3 * 12
    assert frames["ledger"]["bytes"].sum() == record.summary["bytes"]["total"]
    assert frames["checks"]["bytes"].sum() == record.summary["bytes"]["total"]
    loss = record.summary["loss_per_learner"]
    assert frames["rounds"]["loss"].cast(pl.Float64).sum() / 3 == pytest.approx(loss)
    assert load_file(record.folder / "model.safetensors")["weight"].shape == (1, 8)


def test_a_record_has_the_best_classifiers_error_of_every_concept(tmp_path):
    spec = tiny.spec(data={"kind": "drift", "d": 8, "drifts": [5, 9]}, seeds=[3]).runs()[0]
    summary = running.run(spec, tmp_path / "run", progress=False).summary
    streams = data.drift(1, 4, 3, d=8, drifts=(5, 9))
    assert summary["first_bayes_error"] == streams.bayes_error(0)
    assert summary["drifts"] == [
        {"round": 5, "bayes_error": streams.bayes_error(1)},
        {"round": 9, "bayes_error": streams.bayes_error(2)},
    ]


def test_a_diverged_run_is_over_and_says_where(tmp_path):
    spec = tiny.spec(loss="mse_loss", optimizer={"kind": "SGD", "lr": 1e30}, rounds=30)
    outcome = run_spec(spec, tmp_path, name="wild", progress=False)
    assert all(point.diverged for point in outcome.points)
    assert "diverged: learner" in outcome.page.read_text(encoding="utf-8")
    assert outcome.as_dict()["runs"][0]["bytes"] is None


def test_overrides_reach_every_run(tmp_path):
    order = Order(experiment_named("E6"), "smoke", overrides=["rounds=7", "learners=2"])
    assert {(run.rounds, run.learners) for run in order.runs()} == {(7, 2)}


def test_a_report_on_runs_found_by_any_of_their_folders(tmp_path):
    outcome = run_spec(tiny.spec(seeds=[0, 1]), tmp_path, name="tiny", progress=False)
    store, single = tmp_path / "runs", finished_runs([tmp_path / "runs"])[0].folder
    for paths, count in (([store], 4), ([outcome.page.parent], 4), ([single, single], 1)):
        assert len(finished_runs(paths)) == count
    again = report_on(finished_runs([store]), tmp_path / "again", "again & <more>")
    page = again.page.read_text(encoding="utf-8")
    assert "again &amp; &lt;more&gt;" in page
    with pytest.raises(FileNotFoundError, match="holds no finished run"):
        finished_runs([tmp_path / "nowhere"])


def test_a_report_still_finds_its_runs_from_elsewhere_and_after_a_move(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_spec(tiny.spec(), Path("out"), name="tiny", progress=False)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert len(finished_runs([tmp_path / "out" / "tiny"])) == 2
    (tmp_path / "out").rename(tmp_path / "moved")
    assert len(finished_runs([tmp_path / "moved" / "tiny"])) == 2


def test_a_page_needs_no_network_and_shows_claims_on_top(tmp_path):
    outcome = reproduce(Order(experiment_named("E1"), "smoke"), tmp_path, progress=False)
    page = outcome.page.read_text(encoding="utf-8")
    body = page[: page.index("<script>")]
    assert "http" not in body
    assert "<link" not in page
    assert "<script src" not in page
    assert "prefers-color-scheme: dark" in page
    assert 'name="viewport"' in page
    assert body.index("Claims") < body.index("Runs") < body.index('id="chart0"')
    assert outcome.verdicts[0].measured.split(";")[0] in page
