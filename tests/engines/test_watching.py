"""Callbacks, evaluation, divergence, progress, and what happens when somebody presses Ctrl-C."""

import os
import signal
import threading

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from dynavg import Check, Dynamic, FedAvg, NoSync, Periodic
from tests.engines.problems import regression, run, seeded, states, vector, walking

HELD_OUT = tuple(torch.cat(part) for part in zip(*regression(1, 300, seed=9)[0], strict=True))


def test_callbacks_get_every_check_in_order_with_models_and_reference():
    seen = []

    def note(check):
        assert isinstance(check, Check)
        seen.append((check.record.round, check.models.clone(), check.reference.clone()))

    first, second = [], []
    result = run(operator=Periodic(2), callbacks=[note, first.append, second.append])
    assert [round for round, _, _ in seen] == [2, 4, 6]
    assert [check.record for check in first] == [check.record for check in second] == result.checks
    for _, models, reference in seen:
        assert models.shape == (3, 4)
        assert all(torch.equal(row, reference) for row in models)
    rows = torch.stack([vector(module) for module in result.models()])
    assert torch.equal(seen[-1][1], rows)


def test_callbacks_may_stop_a_run_with_an_error_of_their_own():
    def stop(check):
        if check.record.round == 4:
            raise StopAsyncIteration("enough")

    with pytest.raises(StopAsyncIteration, match="enough"):
        run(operator=Periodic(2), callbacks=[stop])


def test_an_operator_that_never_checks_calls_nobody_back():
    run(operator=NoSync(), callbacks=[lambda check: pytest.fail("called")])


def test_the_averaged_model_is_evaluated_on_all_held_out_samples():
    x, y = HELD_OUT
    assert len(x) == 1200  # more than one batch
    result = run(operator=Periodic(4), evaluate=(HELD_OUT, 3), dtype=torch.float64, workers=2)
    frame = result.history.evaluations
    assert frame["round"].to_list() == [3, 6]
    assert frame["accuracy"].to_list() == [None, None]
    expected = F.mse_loss(result.model()(x.double()), y.double()).item()
    assert frame["loss"][1] == pytest.approx(expected, rel=1e-12)


def test_evaluation_counts_correct_predictions_in_evaluation_mode():
    def make():
        return nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 1), nn.Dropout(0.5))

    x, y = HELD_OUT
    labels = (y > 0).float()
    streams = [[(a, (b > 0).float()) for a, b in stream] for stream in regression()]
    result = run(
        model=seeded(make),
        loss=F.binary_cross_entropy_with_logits,
        streams=streams,
        evaluate=((x, labels), 6),
    )
    output = result.model().eval()(x)
    evaluation = result.history.evaluations.row(0, named=True)
    assert evaluation["accuracy"] == ((output > 0) == (labels > 0)).sum().item() / 1200
    expected = F.binary_cross_entropy_with_logits(output, labels).item()
    assert evaluation["loss"] == pytest.approx(expected, rel=1e-5)


def test_a_summed_loss_is_evaluated_per_sample():
    def total(output, target):
        return F.mse_loss(output, target, reduction="sum")

    slow = {"optimizer": lambda p: torch.optim.SGD(p, lr=0.0), "evaluate": (HELD_OUT, 6)}
    mean, summed = run(**slow), run(loss=total, reduction="sum", **slow)
    pair = [result.history.evaluations["loss"][0] for result in (mean, summed)]
    assert pair[0] == pytest.approx(pair[1], rel=1e-5)


def test_divergence_and_false_alarms_are_measured_on_request():
    # Round 1: all at 2, no divergence, yet each is 4 from the reference 0: a false alarm.
    # Round 2: at 2, 2 and 8 (reference 2): mean 4, δ = (4 + 4 + 16) / 3 = 8 > 3: a true one.
    # Round 3: nobody moves.
    steps = [[2, 0, 0], [2, 0, 0], [2, 6, 0]]
    operator = Dynamic(delta=3.0, augmentation="all")
    checks = walking(steps, operator, divergence=True).history.checks
    assert checks["divergence_before"].to_list() == [0, 8, 0]
    assert checks["divergence_after"].to_list() == [0, 0, 0]
    assert checks["false_alarm"].to_list() == [True, False, False]


def test_divergence_is_weighted_as_the_operator_weights():
    # At 0 and 4, weights 1 and 3: mean 3, δ = (1·9 + 3·1) / 4 = 3; equal weights: mean 2, δ = 4.
    steps = [[0.0], [4.0]]
    for weights, expected in (("samples", 3), ("equal", 4)):
        operator = Dynamic(delta=100.0, weights=weights)
        checks = walking(steps, operator, sizes=[1, 3], divergence=True).history.checks
        assert checks["divergence_before"].to_list() == [expected]


def test_distances_are_of_the_learners_before_the_check():
    checks = walking([[1], [2], [5]], Dynamic(delta=1000.0)).history.checks
    distances = checks.select("distance_min", "distance_median", "distance_max").row(0)
    assert distances == (1.0, 4.0, 25.0)


def test_learners_outside_a_federated_draw_keep_their_models():
    walked = walking([[1], [2], [3], [4]], NoSync())
    result = walking([[1], [2], [3], [4]], FedAvg(every=1, fraction=0.5), seed=5)
    drawn = result.ledger.filter(type="query")["receiver"].to_list()
    assert len(drawn) == 2
    before = [state["weight"].item() for state in states(walked)]
    after = [state["weight"].item() for state in states(result)]
    mean = np.mean([before[id] for id in drawn])
    assert before == [1, 2, 3, 4]
    assert after == [mean if id in drawn else before[id] for id in range(4)]


# Progress


def test_progress_is_shown_as_lines_where_there_is_no_terminal(capsys, monkeypatch):
    monkeypatch.setattr("dynavg.engines.progress.LINE", 0.0)
    run(operator=Periodic(3), progress=True)
    shown = capsys.readouterr()
    assert not shown.out
    lines = shown.err.splitlines()
    assert [line.split()[:2] for line in lines] == [["round", "3/6"], ["round", "6/6"]]
    assert all(word in lines[-1] for word in ("rounds/s", "samples/s", "loss", "kB sent"))


@pytest.mark.parametrize("progress", [False, None])
def test_no_progress_is_shown_unless_asked_for_or_on_a_terminal(capsys, monkeypatch, progress):
    monkeypatch.setattr("dynavg.engines.progress.LINE", 0.0)
    run(operator=Periodic(1), progress=progress)
    assert capsys.readouterr() == ("", "")


def test_a_bar_is_shown_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr("dynavg.engines.progress.REFRESH", 0.0)
    run(operator=Periodic(3), progress=None)
    assert "rounds" in capsys.readouterr().err


# Ctrl-C


def workers_alive():
    return [t for t in threading.enumerate() if t.name.startswith("dynavg-worker")]


def test_ctrl_c_in_a_callback_leaves_no_thread_behind():
    def interrupt(check):
        assert workers_alive()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(operator=Periodic(2), callbacks=[interrupt], workers=3)
    assert not workers_alive()


@pytest.mark.usefixtures("_ctrl_c")
def test_ctrl_c_while_workers_train_ends_the_run_and_its_threads():
    main = threading.main_thread()
    pressed = threading.Event()

    def loss(output, target):
        if threading.current_thread() is not main and not pressed.is_set():
            pressed.set()
            os.kill(os.getpid(), signal.SIGINT)
        return F.mse_loss(output, target)

    with pytest.raises(KeyboardInterrupt):
        run(loss=loss, streams=regression(30, 60), rounds=60, workers=2)
    for thread in workers_alive():  # one that was just being started ends by itself
        thread.join(timeout=10)
    assert not workers_alive()
