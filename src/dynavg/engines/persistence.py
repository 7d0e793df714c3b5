"""A simulation's state: what goes into a checkpoint, when, and how a run goes on from one.

Streams and all randomness are functions of the round, so their positions are one number. Users'
iterators are the exception: they are read again from the start up to that round.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dynavg import checkpoint
from dynavg.data.streams import Streams
from dynavg.engines.history import CheckRecord, Evaluation
from dynavg.engines.simulation import Simulation
from dynavg.protocol import learner as local
from dynavg.protocol.coordinator import Coordinator

__all__ = ["Checkpoints", "begin", "fingerprint", "keep_checkpoints"]


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """Where checkpoints go, after how many rounds each, and whether to start from the one there."""

    path: Path
    every: int
    resume: bool


def fingerprint(
    simulation: Simulation, streams: Streams, settings: dict[str, Any]
) -> dict[str, Any]:
    """What has to be the same for a run to go on: the caller's settings, model, optimiser, data."""
    program, plan = simulation.program, simulation.plan
    return {
        **settings,
        "operator": str(plan.operator),
        "rounds": plan.rounds,
        "seed": plan.seed,
        "learners": streams.learners,
        "buffers": plan.buffers,
        "evaluate_every": plan.evaluate_every,
        "divergence": plan.measure_divergence,
        "model": f"{program.layout.parameters} parameters, {program.layout.signature:016x}",
        "initial weights": _digest(program.initial_row()),
        "optimizer": program.optimizer_settings(),
        "data": "-".join(_digest(part) for part in streams.at(0, 1)),
    }


def save(simulation: Simulation, path: Path, mark: dict[str, Any]) -> None:
    """Write the simulation, which stands still, to `path`."""
    losses, done = simulation.losses, slice(0, simulation.round)
    tensors = {
        "rows": simulation.rows,
        "reference": simulation.reference,
        "losses": losses.losses[:, done],
        "samples": losses.samples[:, done],
    }
    if losses.correct is not None:
        tensors["correct"] = losses.correct[:, done]
    for name, column in simulation.ledger.state().items():
        tensors[f"ledger/{name}"] = torch.from_numpy(np.array(column))
    for shard in simulation.shards:
        tensors |= {f"shard/{name}": tensor for name, tensor in shard.tensors().items()}
    facts = {
        "fingerprint": mark,
        "round": simulation.round,
        "last_check": simulation.last_check,
        "sent_bytes": simulation.sent_bytes,
        "coordinator": simulation.coordinator.snapshot(),
        "epochs": [learner.epoch for learner in simulation.learners],
        "checks": [asdict(check) for check in simulation.checks],
        "evaluations": [asdict(evaluation) for evaluation in simulation.evaluations],
    }
    checkpoint.write(path, tensors, facts)


def restore(simulation: Simulation, path: Path, mark: dict[str, Any], streams: Streams) -> None:
    """Put the simulation where the checkpoint at `path` left it."""
    tensors, facts = checkpoint.read(path)
    changed = checkpoint.differences(facts["fingerprint"], mark)
    if changed:
        raise checkpoint.CheckpointError(
            f"{path} is of another run, so this one cannot go on from it. " + "; ".join(changed)
        )
    plan, losses = simulation.plan, simulation.losses
    simulation.round = losses.rounds = facts["round"]
    simulation.last_check = facts["last_check"]
    simulation.sent_bytes = facts["sent_bytes"]
    simulation.coordinator = Coordinator.restore(
        plan.operator, facts["coordinator"], seed=plan.seed
    )
    simulation.learners = [local.Learner(plan.operator.unasked, n) for n in facts["epochs"]]
    simulation.checks = [_check(entry) for entry in facts["checks"]]
    simulation.evaluations = [Evaluation(**entry) for entry in facts["evaluations"]]
    simulation.rows.copy_(tensors["rows"])
    simulation.reference = tensors["reference"].to(simulation.rows.device)
    done = slice(0, simulation.round)
    losses.losses[:, done], losses.samples[:, done] = tensors["losses"], tensors["samples"]
    if "correct" not in tensors:
        losses.correct = None
    elif losses.correct is not None:
        losses.correct[:, done] = tensors["correct"]
    simulation.ledger.load(
        {name: tensors[f"ledger/{name}"].tolist() for name in simulation.ledger.state()}
    )
    own = {name: tensor for name, tensor in tensors.items() if name.startswith("shard/")}
    for shard in simulation.shards:
        shard.load({name.removeprefix("shard/"): tensor for name, tensor in own.items()})
    _read_up_to(streams, simulation.round)


def begin(
    simulation: Simulation, place: Checkpoints, mark: dict[str, Any], streams: Streams
) -> None:
    """Go on from the checkpoint, or write the first one: a place that cannot be written is known
    before anything has run, and a crash finds a checkpoint whenever it comes.
    """
    if place.resume:
        restore(simulation, place.path, mark, streams)
    elif place.path.exists():
        raise checkpoint.CheckpointError(
            f"{place.path} exists already: pass resume=True to go on from it, or remove it"
        )
    else:
        save(simulation, place.path, mark)


@contextmanager
def keep_checkpoints(
    path: Path, every: int, mark: dict[str, Any]
) -> Iterator[Callable[[Simulation], None]]:
    """What to call whenever the learners stand still: it saves when that is due, and on Ctrl-C,
    which it holds back until then; a second Ctrl-C is not held back.
    """
    asked_to_stop = threading.Event()

    def hold(_number: int, _frame: FrameType | None) -> None:
        if asked_to_stop.is_set():
            raise KeyboardInterrupt
        asked_to_stop.set()

    def at_rest(simulation: Simulation) -> None:
        stop = asked_to_stop.is_set()
        if stop or simulation.round % every == 0 or simulation.round == simulation.plan.rounds:
            save(simulation, path, mark)
        if stop:
            raise KeyboardInterrupt(
                f"stopped after round {simulation.round} of {simulation.plan.rounds}; the same "
                f"call with resume=True goes on from {path}"
            )

    if threading.current_thread() is not threading.main_thread():
        yield at_rest  # signals are the main thread's
        return
    before = signal.signal(signal.SIGINT, hold)
    try:
        yield at_rest
    finally:
        signal.signal(signal.SIGINT, before)


def _check(entry: dict[str, Any]) -> CheckRecord:
    return CheckRecord(**entry | {"stages": tuple(map(tuple, entry["stages"]))})


def _digest(tensor: Tensor) -> str:
    return blake2b(tensor.detach().cpu().numpy().tobytes(), digest_size=8).hexdigest()


def _read_up_to(streams: Streams, round: int) -> None:
    """Streams that can only be read in order are read up to the round; others need no reading."""
    if getattr(streams, "in_order", False):
        for learner in range(streams.learners):
            for past in range(1, round + 1):
                streams.at(learner, past)
