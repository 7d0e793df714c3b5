"""The comparison behind `make run`, on a handful of made-up digits."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from typer.testing import CliRunner

from dynavg import records
from dynavg.cli import app
from dynavg.data import pictures


@pytest.fixture
def digits(monkeypatch):
    """A dataset in MNIST's shape; the files themselves are tested in tests/data."""

    draw = torch.Generator().manual_seed(0)
    x = torch.randint(0, 256, (60, 1, 28, 28), generator=draw, dtype=torch.uint8)
    small = pictures.Pictures(x, torch.arange(60) % 10, train=50)
    monkeypatch.setattr("dynavg.experiments.comparison.mnist", lambda folder: small)


def test_demo_compares_all_protocols_and_draws(digits, tmp_path):
    shown = CliRunner().invoke(app, ["demo", "--rounds", "5", "--out", str(tmp_path), "--json"])
    report = json.loads(shown.stdout)
    by_name = {run["name"]: run for run in report["runs"]}
    model_bytes = 4 * 1_199_882 + 84
    assert by_name["no synchronisation"]["bytes"]["total"] == 0
    assert by_name["periodic, b = 5"]["bytes"]["total"] == 20 * model_bytes
    assert by_name["FedAvg, b = 5, C = 0.5"]["bytes"]["total"] == 10 * model_bytes + 5 * 84
    assert (tmp_path / "comparison.png").read_bytes().startswith(b"\x89PNG")
    run = records.read(tmp_path / "periodic-b5")
    assert run.summary == {k: v for k, v in by_name["periodic, b = 5"].items() if k != "name"}
    assert run.ledger["bytes"].sum() == 20 * model_bytes
    assert len(run.rounds) == 10 * 5
    assert len(run.checks) == 1
    assert sum(t.numel() for t in load_file(run.folder / "model.safetensors").values()) == 1_199_882
    assert np.isfinite(run.rounds["loss"].to_numpy()).all()


def test_a_folder_without_a_finished_run_says_so(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"summary\.json is missing"):
        records.read(tmp_path)
