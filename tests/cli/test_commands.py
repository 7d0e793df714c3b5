"""What a person types, and what comes back."""

import json

import pytest
from typer.testing import CliRunner

import dynavg
from dynavg.cli import app, main
from dynavg.experiments import speed

run = CliRunner().invoke


def test_help_names_every_command():
    shown = run(app, ["--help"]).stdout
    assert all(command.split()[0] in shown for command in [*COMMANDS, "version"])


COMMANDS = [
    *("run", "reproduce", "compare", "report", "tune", "data fetch", "data show", "bench", "drive"),
    *(f"fleet {name}" for name in ("demo", "init", "broker", "coordinator", "learner", "status")),
]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_shows_an_example(command):
    shown = run(app, [*command.split(), "--help"]).stdout
    assert f"dynavg {command}" in " ".join(shown.split())


def test_a_fleets_folder_is_made_and_asked(tmp_path):
    place = str(tmp_path / "field")
    made = run(app, ["fleet", "init", place, "--learners", "3"])
    assert made.exit_code == 0, made.output
    assert "3 learners, broker at tls://localhost:4222" in made.stdout
    facts = json.loads(run(app, ["fleet", "status", place, "--json"]).stdout)
    assert (facts["members"], facts["checks"], facts["bytes"]) == ([], 0, 0)


def test_a_fleets_processes_get_certificates_for_the_learners_they_speak_for(tmp_path):
    place = tmp_path / "field"
    made = run(app, ["fleet", "init", str(place), "--learners", "5", "--together", "2"])
    assert f"every process dynavg fleet learner {place} --id 0 --count 2" in made.stdout
    hosts = json.loads((place / "fleet.json").read_text())["config"]["hosts"]
    assert hosts == {"host-0": [0, 1], "host-2": [2, 3], "host-4": [4]}


def test_version_is_the_packages():
    assert run(app, ["version"]).stdout.strip() == dynavg.__version__


def test_drive_prints_the_facts_as_json_only():
    facts = json.loads(
        run(app, ["drive", "expert", "--track", "narrow", "--laps", "1", "--json"]).stdout
    )
    assert facts["outcome"] == "finished"
    assert {"t", "crossings", "t_line", "laps"} <= facts.keys()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["drive", "nobody"], "no model at nobody"),
        (["drive", "expert", "--track", "moon"], "unknown track 'moon'"),
        (["drive", "expert", "--speed", "9"], "--speed goes with --udacity"),
        (
            ["drive", "m.safetensors", "--udacity", "--track", "training", "--map", "a.png"],
            "--track, --map: not with --udacity",
        ),
        (["run", "nowhere.toml"], "no spec at nowhere.toml"),
        (["compare", "nowhere"], "nowhere holds no finished run"),
        (["tune", "my.toml"], "name one goal"),
    ],
)
def test_what_a_user_can_mend_is_one_line(monkeypatch, capsys, arguments, message):
    monkeypatch.setattr("sys.argv", ["dynavg", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 1
    shown = " ".join(capsys.readouterr().err.split())
    assert shown.startswith("dynavg: ")
    assert message in shown
    assert "Traceback" not in shown


def test_bench_prints_ratios_as_json_only(monkeypatch):
    ratios = [speed.Measured.at_least("a", 2.0, 1.5), speed.Measured.at_most("b", 2.0, 1.5)]
    monkeypatch.setattr(speed, "measure", lambda quick: iter(ratios))
    assert json.loads(run(app, ["bench", "--json"]).stdout) == [
        {"name": "a", "ratio": 2.0, "reach": "≥ 1.5", "holds": True},
        {"name": "b", "ratio": 2.0, "reach": "≤ 1.5", "holds": False},
    ]
