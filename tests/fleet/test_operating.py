"""Folders, signals, metrics, logs, status, demo."""

import asyncio
import json
import os
import signal
import urllib.request

import pytest
from typer.testing import CliRunner

from dynavg.cli import app
from dynavg.engines.fleet.broker import free_port
from dynavg.engines.fleet.config import FleetConfig
from dynavg.engines.fleet.folder import init, load
from dynavg.engines.fleet.journal import JOURNAL_FILE, entries_of
from dynavg.engines.fleet.office import Office
from dynavg.engines.fleet.post import NoBrokerError, Post
from dynavg.engines.fleet.status import status
from dynavg.engines.fleet.task import TaskSource
from dynavg.experiments.specfile import to_toml
from tests.fleet.fleets import join_all, small_fleet, small_spec, until
from tests.fleet.nets import own_loops

FACTORY = "tests.fleet.nets:own_loops"


def typed(arguments):
    """What `dynavg` prints for these words."""
    done = CliRunner().invoke(app, [str(word) for word in arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


LONG = {"rounds": 100_000, "delta": 0.05, "every": 5}


def test_init_writes_what_load_reads(tmp_path):
    source = TaskSource(factory=FACTORY)
    made = init(tmp_path / "f", FleetConfig(learners=5), source, hosts=[range(2), range(2, 5)])
    assert load(tmp_path / "f") == made
    assert made.config.host_of(range(2, 4)) == "host-2"
    users = json.loads((tmp_path / "f" / "broker.conf").read_text())["authorization"]["users"]
    assert [user["user"] for user in users] == ["CN=coordinator", "CN=host-0", "CN=host-2"]
    with pytest.raises(ValueError, match="no certificate speaks for learners 1 to 2 together"):
        made.config.host_of(range(1, 3))


def test_init_leaves_a_folder_alone_that_is_not_empty(tmp_path):
    (tmp_path / "mine").write_text("")
    with pytest.raises(FileExistsError, match="a folder of its own"):
        init(tmp_path, FleetConfig(learners=1), TaskSource(factory=FACTORY))


def test_a_mistake_in_the_file_is_named_with_its_place(tmp_path):
    init(tmp_path / "f", FleetConfig(learners=1), TaskSource(factory=FACTORY), tls=False)
    path = tmp_path / "f" / "fleet.json"
    path.write_text(path.read_text().replace('"pace":', '"paces":'))
    with pytest.raises(ValueError, match=r"(?s)fleet\.json.*config\.paces"):
        load(tmp_path / "f")
    with pytest.raises(FileNotFoundError, match="dynavg fleet init"):
        load(tmp_path)


def test_a_factory_that_makes_no_task_is_refused():
    with pytest.raises(TypeError, match="must return a Task or a ModelTask"):
        TaskSource(factory="tests.fleet.nets:not_a_task").make_any()


def test_a_coordinator_without_a_broker_says_so_and_leaves_its_journal_as_it_was(tmp_path):
    """Twice: the first leaves nothing that keeps the second out."""
    config = FleetConfig(
        learners=1, folder=tmp_path, url=f"nats://127.0.0.1:{free_port()}", connect_seconds=0.5
    )
    for _ in range(2):
        with pytest.raises(NoBrokerError, match="a NATS broker is wanted there"):
            asyncio.run(Office(config, own_loops()).run())
    assert entries_of(tmp_path / "coordinator" / JOURNAL_FILE) == ([], 0)


def test_a_broker_that_stays_away_is_complained_of_once(caplog):
    post = Post(FleetConfig(learners=1), "host-0", 100, lambda *_: None, lambda: None)

    async def fail():
        for port in (1, 1, 1, 2):
            await post._on_error(ConnectionRefusedError(port))
        await post._on_return()
        await post._on_error(ConnectionRefusedError(2))

    asyncio.run(fail())
    assert [line.getMessage() for line in caplog.records] == [
        *["broker error"] * 2,
        "broker back",
        "broker error",
    ]


@pytest.mark.slow
def test_learners_that_are_done_do_not_wait_for_their_next_report(tmp_path):
    """Their last word is a violation, so they are done when its answer has come."""
    task = {"rounds": 3, "delta": 1e-12}
    with small_fleet(tmp_path, 2, task, report_seconds=100.0, silence_seconds=300.0) as fleet:
        processes = [fleet.coordinator(), *fleet.one_each()]
        assert join_all(processes, 30.0) == [0] * 3


@pytest.mark.slow
def test_sigterm_ends_a_learner_in_order_and_it_goes_on_later(tmp_path):
    with small_fleet(tmp_path, 2, LONG) as fleet:
        coordinator = fleet.coordinator()
        learners = fleet.one_each()
        until(lambda: fleet.saw("check"))
        learners[0].terminate()
        assert join_all(learners[:1]) == [0]
        until(lambda: any(line["learner"] == 0 for line in fleet.saw("left")))
        first = fleet.result().losses.samples[0].count_nonzero()
        assert first > 0
        learners[:1] = fleet.learners(range(1))
        until(lambda: len(fleet.saw("joined")) == 3)
        for process in (coordinator, *learners):
            process.terminate()
        assert join_all([coordinator, *learners]) == [0] * 3
        assert fleet.result().losses.samples[0].count_nonzero() >= first


@pytest.mark.slow
def test_metrics_status_and_logs_tell_the_same_story(tmp_path):
    with small_fleet(tmp_path, 2, LONG, metrics_port=0) as fleet:
        coordinator = fleet.coordinator()
        learners = fleet.one_each()
        until(lambda: len(fleet.saw("check")) > 2)
        (url,) = [line["url"] for line in fleet.saw("metrics")]
        text = urllib.request.urlopen(url, timeout=5).read().decode()
        for process in learners:
            process.terminate()
        assert join_all([*learners, coordinator]) == [0] * 3
        now = status(fleet.config)
        checks = fleet.saw("check")
    figures = dict(line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")
    assert float(figures["dynavg_live_learners"]) == 2
    assert float(figures["dynavg_checks_total"]) >= 2
    assert float(figures['dynavg_bytes_total{type="violation"}']) > 0
    assert "dynavg_resolution_seconds_count" in figures
    assert now.checks == len(checks)
    assert sum(check["bytes"] for check in checks) <= now.bytes
    assert now.members == ()
    assert set(now.rounds) == {0, 1}
    json.dumps(now.as_dict())


@pytest.mark.slow
def test_the_demo_ends_with_figures_for_json_and_a_run_like_any_other(tmp_path):
    own = tmp_path / "own.toml"
    own.write_text(to_toml(small_spec(3, 100, delta=0.2)))
    changes = ["--learners", "2", "--rounds", "30"]
    demo = ["fleet", "demo", own, *changes, "--out", tmp_path / "f", "--json"]
    facts = json.loads(typed(demo))
    assert facts.keys() == {
        *("learners", "rounds", "violations", "bytes", "loss_per_learner", "wire_bytes")
    }
    assert (facts["learners"], facts["rounds"]) == (2, 30)
    assert facts["violations"] > 0
    assert facts["wire_bytes"] > facts["bytes"] > 0
    assert 0 < facts["loss_per_learner"] < 300
    report = ["report", tmp_path / "f" / "record", "--out", tmp_path / "out", "--json"]
    (row,) = json.loads(typed(report))["runs"]
    assert row["name"] == "dynamic Δ=0.2"
    assert row["samples"] == 2 * 30 * 10
    for name in ("rounds", "violations", "bytes"):
        assert row[name] == facts[name]
    assert row["loss_per_learner"] == pytest.approx(facts["loss_per_learner"])
    assert (tmp_path / "out" / "report.html").exists()


@pytest.mark.slow
def test_a_coordinator_told_to_stop_stops_and_takes_up_later(tmp_path):
    with small_fleet(tmp_path, 2, LONG) as fleet:
        first = fleet.coordinator()
        learners = fleet.one_each()
        until(lambda: fleet.saw("check"))
        os.kill(first.pid, signal.SIGINT)
        assert join_all([first]) == [0]
        before = len(fleet.book().checks)
        second = fleet.coordinator()
        until(lambda: len(fleet.book().checks) > before)
        for process in (*learners, second):
            process.terminate()
        assert join_all([*learners, second]) == [0] * 3
