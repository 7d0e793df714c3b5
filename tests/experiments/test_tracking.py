"""Runs handed on to other people's tools."""

import re
import sys

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from dynavg.experiments import running, tracking
from dynavg.experiments.tracking import trackers
from tests.experiments import tiny


# tensorboard's own import of a part of setuptools, or protobuf's, may warn.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tensorboard_shows_loss_and_bytes_of_every_round(tmp_path):
    record = running.run(tiny.spec().runs()[1], tmp_path / "a-run", progress=False)
    [track] = trackers(tmp_path / "board", mlflow=False)
    track(record)
    track(record)  # logged again, it replaces itself
    events = EventAccumulator(str(tmp_path / "board" / "a-run"))
    events.Reload()
    loss = events.Scalars("cumulative loss per learner")
    assert [event.step for event in loss] == list(range(1, 13))
    assert loss[-1].value == pytest.approx(record.summary["loss_per_learner"])
    sent = events.Scalars("cumulative bytes")[-1].value
    assert sent == record.summary["bytes"]["total"]


def test_names_are_such_as_mlflow_takes(tmp_path):
    record = running.run(tiny.spec().runs()[1], tmp_path / "a-run", progress=False)
    names = {name for name, _, _ in tracking._series(record)}
    assert len(names) == 3
    assert all(re.fullmatch(r"[\w\-. :/]+", name) for name in names)


def test_mlflow_gets_every_round_once(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")  # left out of what `make test` installs
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'mlflow.db'}")
    monkeypatch.chdir(tmp_path)
    record = running.run(tiny.spec().runs()[1], tmp_path / "a-run", progress=False)
    [track] = trackers(None, mlflow=True)
    track(record)
    track(record)
    [logged] = mlflow.search_runs(output_format="list")
    history = mlflow.MlflowClient().get_metric_history(logged.info.run_id, "cumulative bytes")
    assert len(history) == 12
    assert logged.data.metrics["cumulative bytes"] == record.summary["bytes"]["total"]


def test_a_tool_that_is_not_installed_is_told_before_anything_runs(monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(ImportError, match=r"dynavg\[tracking\]"):
        trackers(None, mlflow=True)
