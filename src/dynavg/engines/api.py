"""`simulate` and `serial`: arguments checked, parts put together, one run, its result."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from typing import Any, Literal

import torch
from torch import Tensor, nn

from dynavg.arguments import check_choice, check_count
from dynavg.data.streams import Streams, as_streams
from dynavg.engines.checking import (
    check_flags,
    check_operator,
    check_rounds,
    checked_callbacks,
    checked_checkpoints,
    checked_device,
    checked_held_out,
    checked_workers,
    try_out,
)
from dynavg.engines.history import DivergedError
from dynavg.engines.persistence import begin, fingerprint, keep_checkpoints
from dynavg.engines.progress import progress_on
from dynavg.engines.result import Result
from dynavg.engines.serial import SerialStreams
from dynavg.engines.simulation import Check, Plan, Simulation
from dynavg.engines.workers import Workers
from dynavg.learning.initial import initial_rows
from dynavg.learning.kinds import make_shards, shard_kind
from dynavg.learning.program import Learning, prepare
from dynavg.learning.randomness import forked
from dynavg.operators import NoSync
from dynavg.protocol.operator import Operator

__all__ = ["serial", "simulate"]


def simulate(  # noqa: PLR0913
    *,
    model: Callable[[], nn.Module],
    loss: Callable[..., Tensor],
    optimizer: Callable[..., torch.optim.Optimizer],
    streams: Streams | Sequence[Any],
    operator: Operator,
    rounds: int,
    seed: int = 0,
    device: str | torch.device = "cpu",
    dtype: torch.dtype | None = None,
    reduction: Literal["mean", "sum"] = "mean",
    scheduler: Callable[..., Any] | None = None,
    clip: float | None = None,
    step: Callable[..., tuple[Tensor, Any]] | None = None,
    metric: Callable[[Tensor, Tensor], Tensor | float] | None = None,
    init_noise: float = 0.0,
    on_sync: Literal["keep", "reset"] = "keep",
    buffers: Literal["average", "local"] = "average",
    evaluate: tuple[Any, int] | None = None,
    callbacks: Sequence[Callable[[Check], object]] = (),
    divergence: bool = False,
    shard: Literal["auto", "looped", "fused", "stacked"] = "auto",
    workers: int | None = None,
    progress: bool | None = None,
    checkpoint: str | PathLike[str] | None = None,
    checkpoint_every: int = 100,
    resume: bool = False,
) -> Result:
    """Train m learners on their own streams under a synchronisation operator, on this machine.

    Args:
        model: Makes the network; called once, and copied to all learners.
        loss: (output, target) -> mean over the batch (or sum, with `reduction="sum"`).
        optimizer: (parameters) -> any torch optimiser; its state stays with the learner.
        streams: What `dynavg.data.split` returns, or one list (or iterable) of batches per learner.
        operator: `Dynamic`, `Periodic`, `FedAvg` or `NoSync`.
        rounds: Batches per learner.
        seed: All randomness follows from it.
        device: Where the models live.
        dtype: Their type; None keeps the model's own. Floating inputs are cast to it.
        reduction: What `loss` does with the batch.
        scheduler: (optimizer) -> a torch learning-rate scheduler, stepped once a round.
        clip: The largest norm of a learner's gradient.
        step: (module, optimizer, x, y) -> (loss, output), in place of the usual training step.
        metric: (output, target) -> number of correct predictions. Class targets and one logit with
            0/1 targets need none.
        init_noise: ε: each learner starts at the common model plus noise of this relative scale.
        on_sync: Whether a learner keeps its optimiser state when it gets a model.
        buffers: Whether floating buffers (BatchNorm statistics) are averaged too.
        evaluate: (dataset, every): held-out loss and accuracy of the averaged model.
        callbacks: Called with a `Check` after every check.
        divergence: Measure δ before and after every check, and count false alarms.
        shard: How learners are stepped: one after the other, plainly ("looped") or in faster forms
            of the same calls ("fused"), or a block of them at once ("stacked"). "auto" stacks small
            models and fuses others where that is possible; `result.shard` says what it chose.
        workers: Worker threads; None takes all cores. Their number changes no bit of the result.
        progress: True shows it, False does not, None shows it on a terminal.
        checkpoint: A file for the run's whole state; Ctrl-C writes it, too.
        checkpoint_every: Rounds between two checkpoints.
        resume: Go on from the checkpoint; the result is that of an uninterrupted run, bit for bit.

    >>> import dynavg, torch
    >>> x = torch.randn(400, 3, generator=torch.Generator().manual_seed(0))
    >>> result = dynavg.simulate(
    ...     model=lambda: torch.nn.Linear(3, 1),
    ...     loss=torch.nn.functional.mse_loss,
    ...     optimizer=lambda parameters: torch.optim.SGD(parameters, lr=0.1),
    ...     streams=dynavg.data.split((x, x.sum(1, keepdim=True)), learners=4, batch_size=5),
    ...     operator=dynavg.Dynamic(delta=0.1),
    ...     rounds=50,
    ... )
    >>> result.bytes() < 50 * 2 * 4 * (16 + 84), len(result.models())
    (True, 4)
    """
    with _undisturbed():
        choices = {
            "on_sync": (on_sync, ("keep", "reset")),
            "buffers": (buffers, ("average", "local")),
            "reduction": (reduction, ("mean", "sum")),
            "shard": (shard, ("auto", "looped", "fused", "stacked")),
        }
        check_operator(operator, seed, init_noise)
        for name, (value, allowed) in choices.items():
            check_choice("simulate", name, value, allowed)
        check_flags(divergence=divergence, progress=False if progress is None else progress)
        kept = checked_checkpoints(checkpoint, checkpoint_every, resume)
        settings = {
            "on_sync": on_sync,
            "reduction": reduction,
            "clip": clip,
            "dtype": str(dtype),
            "init_noise": init_noise,
            "loss": _name(loss),
            "step": _name(step),
            "scheduler": _name(scheduler),
        }
        learning = Learning(loss, optimizer, scheduler, clip, step, metric, reduction)
        callbacks, held_out = checked_callbacks(callbacks), checked_held_out("simulate", evaluate)
        place = checked_device(device)
        streams = as_streams(streams)
        check_rounds("simulate", rounds, streams)
        program = prepare(model, learning, streams.at(0, 1), seed=seed, device=place, dtype=dtype)
        plan = Plan(
            operator=operator,
            rounds=rounds,
            seed=seed,
            buffers=buffers,
            callbacks=callbacks,
            held_out=held_out,
            measure_divergence=divergence,
            checkpoint_every=kept.every if kept else None,
        )
        if program.schedule is not None:
            program.schedule.extend(rounds)
        rows = initial_rows(program, streams.learners, init_noise)
        if held_out is not None:
            try_out(held_out[0], program, rows[0])
        kind = shard_kind(shard, program, streams, on_sync)
        shards = make_shards(kind, program, streams, rows, on_sync)
        count = checked_workers(workers, program)
        with Workers.started(count) as pool, progress_on(progress, rounds) as show:
            simulation = Simulation(plan, program, streams, rows, shards, pool)
            if kept is None:
                simulation.run(show)
            else:
                mark = fingerprint(simulation, streams, settings | {"shard": kind})
                begin(simulation, kept, mark, streams)
                with keep_checkpoints(kept.path, kept.every, mark) as at_rest:
                    simulation.run(show, at_rest)
            mean_row = simulation.mean_row()
    return Result(
        operator=operator,
        learners=streams.learners,
        losses=simulation.losses,
        checks=simulation.checks,
        evaluations=simulation.evaluations,
        book=simulation.ledger,
        prototype=program.prototype,
        layout=program.layout,
        rows=rows,
        mean_row=mean_row,
        counters=[shard.counters(id) for shard in shards for id in shard.ids],
        shard=kind,
    )


def serial(  # noqa: PLR0913
    *,
    model: Callable[[], nn.Module],
    loss: Callable[..., Tensor],
    optimizer: Callable[..., torch.optim.Optimizer],
    streams: Streams | Sequence[Any],
    rounds: int,
    batch: Literal["sequential", "joint"] = "sequential",
    seed: int = 0,
    evaluate: tuple[Any, int] | None = None,
    checkpoint_every: int = 100,
    operator: Operator | None = None,  # noqa: ARG001
    **others: Any,
) -> Result:
    """The serial baseline: one learner sees all samples of all m streams. Arguments as `simulate`.

    `batch="sequential"` gives it a round's batches one after the other, as in the paper's figures,
    "joint" as one batch of m·B, as in Proposition 3. `operator` is accepted, so that the same
    arguments serve both, and has no effect: one learner talks to nobody.

    >>> import dynavg, torch
    >>> batches = [[(torch.ones(2, 1), torch.ones(2, 1))] * 3] * 4
    >>> baseline = dynavg.serial(
    ...     model=lambda: torch.nn.Linear(1, 1),
    ...     loss=torch.nn.functional.mse_loss,
    ...     optimizer=lambda parameters: torch.optim.SGD(parameters, lr=0.1),
    ...     streams=batches,
    ...     rounds=3,
    ... )
    >>> baseline.samples, baseline.bytes()
    (24, 0)
    """
    check_choice("serial", "batch", batch, ("sequential", "joint"))
    every = check_count("serial", "checkpoint_every", checkpoint_every)
    checked_held_out("serial", evaluate)
    with _undisturbed():
        streams = as_streams(streams)
    check_rounds("serial", rounds, streams)
    one = SerialStreams(streams, batch)
    try:
        result = simulate(
            model=model,
            loss=loss,
            optimizer=optimizer,
            streams=one,
            operator=NoSync(),
            rounds=one.of(rounds),
            seed=seed,
            evaluate=None if evaluate is None else (evaluate[0], one.of(evaluate[1])),
            checkpoint_every=one.of(every),
            **others,
        )
    except DivergedError as error:
        stream, round = one.place(error.learner, error.round)
        raise DivergedError(stream, round, error.what) from None
    return replace(
        result,
        operator=None,
        learners=streams.learners,
        losses=one.by_stream(result.losses),
        evaluations=[replace(row, round=row.round // one.of(1)) for row in result.evaluations],
    )


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Whatever the caller's modes are, learners can learn; the caller's random state stays."""
    with forked(), torch.inference_mode(False), torch.enable_grad():
        yield


def _name(function: object) -> str:
    return str(getattr(function, "__qualname__", type(function).__name__))
