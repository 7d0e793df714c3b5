"""The arguments of `simulate` and `serial`, checked before anything runs.

What came, what is allowed, where; what only the model or the data can show is tried out in
`dynavg.learning.program`.
"""

import math
import warnings
from collections.abc import Callable
from numbers import Integral
from os import PathLike
from pathlib import Path

import torch
from torch import Tensor

from dynavg.arguments import check_count, check_number, described
from dynavg.data.samples import Samples, as_samples
from dynavg.data.streams import Streams
from dynavg.engines.persistence import Checkpoints
from dynavg.engines.simulation import Check
from dynavg.engines.workers import available_workers
from dynavg.learning.program import Program
from dynavg.learning.randomness import Randomness
from dynavg.learning.template import Template

__all__ = [
    "check_flags",
    "check_operator",
    "check_rounds",
    "checked_callbacks",
    "checked_checkpoints",
    "checked_device",
    "checked_held_out",
    "checked_workers",
    "try_out",
]


def check_operator(operator: object, seed: object, init_noise: object) -> None:
    """All that can be said before anything of the user's is called."""
    wanted = ("every", "weights", "measures", "unasked", "init", "step")
    if isinstance(operator, type) or not all(hasattr(operator, name) for name in wanted):
        raise TypeError(
            "simulate(operator=…): an operator is wanted, such as dynavg.Dynamic(delta=0.5), "
            "dynavg.Periodic(every=10) or dynavg.NoSync(), not "
            f"{operator if isinstance(operator, type) else described(operator)}"
        )
    if isinstance(seed, bool) or not isinstance(seed, Integral):
        raise TypeError(f"simulate(seed={seed!r:.80}): a whole number is wanted")
    noise = check_number("simulate", "init_noise", init_noise, "a finite number >= 0")
    if not 0 <= noise < math.inf:
        raise ValueError(f"simulate(init_noise={init_noise!r}): a finite number >= 0 is wanted")


def check_flags(**flags: object) -> None:
    """Switches are True or False, nothing that merely looks so."""
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise TypeError(f"simulate({name}={value!r:.80}): True or False is wanted")


def check_rounds(owner: str, rounds: object, streams: Streams) -> None:
    """A number of rounds that the streams have."""
    wanted, there = check_count(owner, "rounds", rounds), streams.rounds()
    if there is not None and there < wanted:
        raise ValueError(
            f"{owner}(rounds={wanted}): the streams have only {there} batches for every learner"
        )


def checked_callbacks(callbacks: object) -> tuple[Callable[[Check], object], ...]:
    """Functions of a check."""
    made = tuple(callbacks) if isinstance(callbacks, list | tuple) else None
    if made is None or not all(map(callable, made)):
        raise TypeError(
            "simulate(callbacks=…): a list of functions (check) -> … is wanted, not "
            f"{described(callbacks)}"
        )
    return made


def checked_device(device: object) -> torch.device:
    """A device that can compute."""
    if not isinstance(device, str | torch.device):
        raise TypeError(
            f"simulate(device=…): a name such as 'cpu' is wanted, not {described(device)}"
        )
    try:
        place = torch.device(device)
        torch.zeros(1, device=place).item()
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"simulate(device={device!r}): cannot compute there: {reason}") from None
    return place


def checked_held_out(owner: str, evaluate: object) -> tuple[Samples, int] | None:
    """A dataset to evaluate on, and after how many rounds each time."""
    if evaluate is None:
        return None
    if not isinstance(evaluate, tuple) or len(evaluate) != 2:
        raise TypeError(
            f"{owner}(evaluate=…): (dataset, every) is wanted, not {described(evaluate)}"
        )
    return as_samples(evaluate[0]), check_count(owner, "evaluate[1]", evaluate[1])


def try_out(samples: Samples, program: Program, row: Tensor) -> None:
    """Evaluate on a few samples now: a mistake there should not show after hundreds of rounds."""
    template = Template(program)
    template.look_at(row)
    try:
        template.score(samples.take(torch.arange(min(len(samples), 8))), part=0, round=0)
    except Exception as error:
        error.add_note("raised by the first samples of simulate(evaluate=(dataset, every))")
        raise


def checked_checkpoints(path: object, every: object, resume: object) -> Checkpoints | None:
    """Where checkpoints go, if anywhere."""
    check_flags(resume=resume)
    if path is None:
        if resume:
            raise ValueError("simulate(resume=True): checkpoint= has to say from which file")
        return None
    if not isinstance(path, str | PathLike):
        raise TypeError(f"simulate(checkpoint={path!r:.80}): the path of a file is wanted")
    return Checkpoints(
        Path(path), check_count("simulate", "checkpoint_every", every), resume is True
    )


def checked_workers(workers: int | None, program: Program) -> int:
    """How many threads train; one, said aloud, where the model draws past what can be keyed."""
    count = available_workers() if workers is None else check_count("simulate", "workers", workers)
    if program.randomness is not Randomness.ESCAPES:
        return count
    warnings.warn(
        "the model draws random numbers that cannot be keyed to a learner (dropout inside a fused "
        "operation, for example): it runs on one worker, reseeded per learner and round",
        stacklevel=3,
    )
    return 1
