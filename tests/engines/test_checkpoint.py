"""A run that dies goes on from its checkpoint to the result of one that did not."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import dynavg
from dynavg.checkpoint import CheckpointError
from tests.engines import killed


@pytest.fixture(scope="module", params=["looped", "stacked"])
def shard(request):
    return request.param


@pytest.fixture(scope="module")
def undisturbed(shard):
    return killed.run(shard=shard)


class Stop(Exception):
    pass


def stop_after(round):
    def callback(check):
        if check.record.round == round:
            raise Stop

    return callback


def assert_same(made, expected):
    assert torch.equal(made.rows, expected.rows)
    assert made.ledger.equals(expected.ledger)
    for name in ("rounds", "checks", "evaluations"):
        assert getattr(made.history, name).equals(getattr(expected.history, name)), name
    for own, other in zip(made.models(), expected.models(), strict=True):
        assert all(torch.equal(*pair) for pair in zip(own.buffers(), other.buffers(), strict=True))


@pytest.mark.parametrize("round", [2, 14, 32, 58])
def test_a_resumed_run_is_the_undisturbed_one_bit_for_bit(tmp_path, shard, undisturbed, round):
    place = tmp_path / "run.safetensors"
    with pytest.raises(Stop):
        killed.run(place, [stop_after(round)], shard)
    assert_same(killed.run(place, shard=shard, resume=True), undisturbed)


def test_a_resume_repeats_at_most_one_interval(tmp_path):
    place, seen = tmp_path / "run", []
    with pytest.raises(Stop):
        killed.run(place, [stop_after(34)])
    killed.run(place, [lambda check: seen.append(check.record.round)], resume=True)
    assert 34 - 7 < min(seen) <= 34


def test_checkpoints_change_nothing(tmp_path, shard, undisturbed):
    assert_same(killed.run(tmp_path / "run", shard=shard), undisturbed)


def test_a_finished_run_resumes_to_its_result(tmp_path, shard, undisturbed):
    killed.run(tmp_path / "run", shard=shard)
    assert_same(killed.run(tmp_path / "run", shard=shard, resume=True), undisturbed)


def run_process(*arguments, kill_after=None):
    command = [sys.executable, killed.__file__, *map(str, arguments)]
    root = str(Path(__file__).parents[2])
    process = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": root})
    if kill_after is not None:
        time.sleep(kill_after)
        process.kill()
    return process.wait(timeout=120)


def finished(place, out):
    """Resume in a process until it is done; what it came to."""
    assert run_process(place, "resume", "never", out) == 0
    return load_file(out)


@pytest.mark.slow
@pytest.mark.parametrize("step", range(1, 9))
def test_a_kill_at_any_step_of_writing_loses_nothing(tmp_path, step):
    place, out = tmp_path / "run", tmp_path / "out"
    assert run_process(place, "fresh", f"write {step}", out) == -signal.SIGKILL
    whole = killed.run()
    resume = "resume" if place.exists() else "fresh"
    assert run_process(place, resume, "never", out) == 0
    assert torch.equal(load_file(out)["rows"], whole.rows)
    assert place.exists() or step <= 3, "after the first write there is always a checkpoint"


@pytest.mark.slow
def test_kills_at_random_moments_lose_nothing(tmp_path):
    place, out, draw = tmp_path / "run", tmp_path / "out", random.Random(7)
    for _ in range(6):
        resume = "resume" if place.exists() else "fresh"
        run_process(place, resume, "never", out, kill_after=draw.uniform(1.5, 4.5))
    made = finished(place, out) if place.exists() else None
    assert made is None or torch.equal(made["rows"], killed.run().rows)


@pytest.mark.slow
@pytest.mark.usefixtures("_ctrl_c")
def test_ctrl_c_writes_a_checkpoint_and_says_how_to_go_on(tmp_path):
    place = tmp_path / "run"
    interrupt = [
        lambda check: os.kill(os.getpid(), signal.SIGINT) if check.record.round == 30 else 0
    ]
    with pytest.raises(KeyboardInterrupt, match=r"stopped after round 30 of 60.*resume=True"):
        killed.run(place, interrupt)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert_same(killed.run(place, resume=True), killed.run())


def test_a_changed_run_is_refused_with_the_difference_named(tmp_path):
    place = tmp_path / "run"
    with pytest.raises(Stop):
        killed.run(place, [stop_after(10)])
    before = place.read_bytes()
    with pytest.raises(CheckpointError, match=r"clip: None in the checkpoint, 1\.0 now"):
        killed.run(place, resume=True, clip=1.0)
    assert place.read_bytes() == before


def test_an_existing_checkpoint_is_not_overwritten(tmp_path):
    killed.run(tmp_path / "run")
    with pytest.raises(CheckpointError, match=r"exists already: pass resume=True"):
        killed.run(tmp_path / "run")


def test_nothing_to_resume_from_is_said(tmp_path):
    with pytest.raises(CheckpointError, match="no checkpoint there"):
        killed.run(tmp_path / "run", resume=True)
    with pytest.raises(ValueError, match=r"resume=True\): checkpoint= has to say"):
        killed.run(resume=True)


@pytest.mark.parametrize("damage", ["truncated", "foreign", "text", "empty"])
def test_a_damaged_or_foreign_checkpoint_is_refused_and_left_alone(tmp_path, damage):
    place = tmp_path / "run"
    killed.run(place)
    content = place.read_bytes()
    if damage == "foreign":
        save_file({"weight": torch.zeros(3)}, place)
    else:
        short = {"truncated": content[: len(content) // 2], "text": b"hello", "empty": b""}
        place.write_bytes(short[damage])
    before = place.read_bytes()
    with pytest.raises(CheckpointError, match=str(place)):
        killed.run(place, resume=True)
    assert place.read_bytes() == before


def test_iterators_are_read_up_to_where_the_run_stopped(tmp_path):
    def streams():
        batch = [(torch.full((2, 1), float(t)), torch.ones(2, 1)) for t in range(1, 21)]
        return [iter(batch), iter(batch)]

    def go(**changes):
        return dynavg.simulate(
            model=lambda: torch.nn.Linear(1, 1),
            loss=torch.nn.functional.mse_loss,
            optimizer=lambda p: torch.optim.SGD(p, lr=1e-3),
            streams=streams(),
            operator=dynavg.Periodic(every=3),
            rounds=20,
            progress=False,
            **changes,
        )

    kept = {"checkpoint": tmp_path / "run", "checkpoint_every": 5}
    with pytest.raises(Stop):
        go(**kept, callbacks=[stop_after(12)])
    assert torch.equal(go(**kept, resume=True).rows, go().rows)


def test_no_pickle_in_the_file(tmp_path):
    """The file is safetensors: a JSON header of known length, then raw numbers."""
    place = tmp_path / "run"
    killed.run(place)
    content = place.read_bytes()
    length = int.from_bytes(content[:8], "little")
    assert json.loads(content[8 : 8 + length])["__metadata__"]["format"] == "dynavg-checkpoint-1"
