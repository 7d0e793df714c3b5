"""From a spec in a file to a table, a page and JSON; exit codes that mean something."""

import json

import pytest
from typer.testing import CliRunner

from dynavg.cli import app, experimenting, main
from dynavg.cli.datasets import LOADERS
from dynavg.experiments.claims import Claim, Finding
from dynavg.experiments.experiment import Experiment
from dynavg.experiments.running import StoppedError
from dynavg.report.charts import front
from tests.experiments import tiny
from tests.experiments.conftest import small_pictures

SPEC = """
title = "three learners"
data = {kind = "drift", d = 8}
model = "tests.experiments.tiny:linear"
model_settings = {in_features = 8, out_features = 1}
loss = "binary_cross_entropy_with_logits"
learners = 3
rounds = 12
operators = [{kind = "periodic", every = 1}, {kind = "dynamic", delta = [0.01, 0.05], every = 1}]
"""


def run(*arguments, code=0):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == code, done.output
    return done


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "my.toml"
    path.write_text(SPEC)
    return path


def made_up(monkeypatch, *, holds):
    claim = Claim("X.1", "it is so", "so", lambda _: Finding(holds, "seen"), "smoke")
    found = Experiment("X", "Made up", "", lambda _: [tiny.spec()], (claim,), (front,))
    monkeypatch.setattr(experimenting, "experiment_named", lambda _: found)


def test_a_spec_becomes_a_table_and_a_page_and_json(spec, tmp_path):
    out = tmp_path / "out"
    shown = run("run", spec, "--out", out)
    assert "dynamic Δ=0.05" in shown.stdout
    assert f"report: {out / 'my' / 'report.html'}" in shown.stdout
    assert "3/3" in shown.stderr
    again = run("run", spec, "--out", out, "--json", "--quiet")
    assert again.stderr == ""
    told = json.loads(again.stdout)
    assert [one["name"] for one in told["runs"]] == [
        "periodic b=1",
        "dynamic Δ=0.01 b=1",
        "dynamic Δ=0.05 b=1",
    ]
    assert all(one["loss_per_learner"] > 0 and one["bytes"] > 0 for one in told["runs"])
    compared = run("compare", out / "my", "--json").stdout
    assert json.loads(compared) == told["runs"]
    drawn = run("report", out / "my", "--out", tmp_path / "page", "--title", "Mine")
    assert "Mine" in (tmp_path / "page" / "report.html").read_text()
    assert "page" in drawn.stdout


def test_set_changes_the_spec_and_an_unknown_key_names_the_nearest(spec, tmp_path):
    changed = run("run", spec, "--out", tmp_path, "--set", "rounds=5", "--json")
    assert {one["rounds"] for one in json.loads(changed.stdout)["runs"]} == {5}
    with pytest.raises(ValueError, match=r"did you mean .rounds"):
        CliRunner().invoke(app, ["run", str(spec), "--set", "round=5"], catch_exceptions=False)


def test_reproduce_prints_one_object(tmp_path):
    told = json.loads(
        run("reproduce", "E6", "--scale", "smoke", "--out", tmp_path, "--json").stdout
    )
    assert (told["experiment"], told["scale"]) == ("E6", "smoke")
    assert [claim["id"] for claim in told["claims"]] == ["E6.1", "E6.2", "E6.3"]
    assert all(
        claim.keys() >= {"text", "holds", "measured", "expected"} for claim in told["claims"]
    )
    assert all(one.keys() >= {"operator", "loss_per_learner", "bytes"} for one in told["runs"])
    assert told["report"] == str(tmp_path / "E6-smoke" / "report.html")


@pytest.mark.parametrize(("holds", "code"), [(True, 0), (False, 3)])
def test_strict_says_by_its_exit_code_whether_all_claims_hold(monkeypatch, tmp_path, holds, code):
    made_up(monkeypatch, holds=holds)
    shown = run("reproduce", "X", "--out", tmp_path, "--strict", code=code)
    assert shown.stdout.startswith("X.1  holds" if holds else "X.1  does not hold")
    assert run("reproduce", "X", "--out", tmp_path).exit_code == 0


def test_an_unknown_experiment_is_wrong_usage():
    assert "there is no experiment 'E11'" in run("reproduce", "E11", code=2).stderr


def test_an_interruption_says_how_to_go_on(monkeypatch, capsys, spec):
    def stopped(*_, **__):
        raise StoppedError("stopped; the same command goes on")

    monkeypatch.setattr(experimenting.reproducing, "run_spec", stopped)
    monkeypatch.setattr("sys.argv", ["dynavg", "run", str(spec)])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 130
    assert "the same command goes on" in capsys.readouterr().err


def test_an_error_in_code_of_ones_own_keeps_its_traceback(monkeypatch, capsys, spec, tmp_path):
    (tmp_path / "my_nets.py").write_text("def make(width):\n    return width + 'a'\n")
    monkeypatch.syspath_prepend(tmp_path)
    arguments = ["dynavg", "run", str(spec), "--out", str(tmp_path), "--set", "model=my_nets:make"]
    monkeypatch.setattr("sys.argv", [*arguments, "--set", "model_settings={width = 3}"])
    with pytest.raises(TypeError, match="unsupported operand"):
        main()
    monkeypatch.setattr("sys.argv", [*arguments, "--set", "model_settings={wdth = 3}"])
    with pytest.raises(SystemExit):
        main()
    assert "unexpected keyword argument 'wdth'" in capsys.readouterr().err


def test_tuning_writes_the_spec_with_the_value_found(spec, tmp_path):
    arguments = ["--budget", "1GB", "--learners", "2", "--rounds", "10", "--runs", "2"]
    told = json.loads(run("tune", spec, *arguments, "--out", tmp_path / "out", "--json").stdout)
    tuned = tmp_path / "my.tuned.toml"
    assert f"delta = {told['delta']}" in tuned.read_text()
    run("run", tuned, "--out", tmp_path / "out", "--set", "rounds=3")


def test_the_two_readings_of_drift_differ(tmp_path):
    def drifts(reading):
        told = run("data", "show", "drift", "--drift-per", reading, "--rounds", 4000,
                   "--out", tmp_path, "--json")  # fmt: skip
        return [segment["round"] for segment in json.loads(told.stdout)["segments"]]

    batches, samples = drifts("batch_round"), drifts("sample_round")
    # The same ticks, of which a round has ten where each sample is one.
    earlier = [(tick - 1) // 10 + 1 for tick in batches]
    assert len(batches) > 2
    assert samples[: len(batches)] == earlier
    assert len(samples) > 5 * len(batches)


def test_pictures_are_fetched_into_a_folder_of_ones_own(monkeypatch, tmp_path):
    def fetched(folder=None, *, cache=None):
        assert (folder, cache) == (None, tmp_path)
        return small_pictures()

    monkeypatch.setitem(LOADERS, "mnist", fetched)
    [told] = json.loads(run("data", "fetch", "mnist", "--out", tmp_path, "--json").stdout)
    assert (told["pictures"], told["folder"]) == (600, str(tmp_path / "mnist"))


def test_a_dataset_is_described_and_drawn(tmp_path):
    arguments = ["data", "show", "drift", "--rounds", "40", "--out", tmp_path, "--json"]
    told = json.loads(run(*arguments).stdout)
    assert told["segments"][0].keys() == {"round", "best_error"}
    assert (tmp_path / "drift.png").stat().st_size > 1000
