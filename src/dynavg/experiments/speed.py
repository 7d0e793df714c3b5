"""How fast the simulator is, as ratios: each against a baseline measured in the same run.

Ours and the baseline take turns, and medians are compared, so that a busy machine slows both. The
baseline is what a user would write: a module and an optimiser per learner, torch's default threads.
"""

import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dynavg import data
from dynavg.engines.api import simulate
from dynavg.engines.averaging import Averaging
from dynavg.engines.workers import Workers, available_workers
from dynavg.learning import vectors
from dynavg.models import drift_mlp, driving_net, logistic, mnist_cnn
from dynavg.operators import Dynamic, NoSync

__all__ = ["Measured", "measure"]

Batches = list[list[tuple[Tensor, Tensor]]]


@dataclass(frozen=True, slots=True)
class Measured:
    """One ratio. `holds` compares it with `reach`, which is a least or a most."""

    name: str
    ratio: float
    reach: str
    holds: bool

    @classmethod
    def at_least(cls, name: str, ratio: float, reach: float) -> "Measured":
        """More is better."""
        return cls(name, ratio, f"≥ {reach:g}", ratio >= reach)

    @classmethod
    def at_most(cls, name: str, ratio: float, reach: float) -> "Measured":
        """Less is better."""
        return cls(name, ratio, f"≤ {reach:g}", ratio <= reach)


@dataclass(frozen=True, slots=True)
class Workload:
    """Something to train: `make` a model, on inputs of `shape` and targets of that kind."""

    make: Callable[[], nn.Module]
    shape: tuple[int, ...]
    loss: Callable[[Tensor, Tensor], Tensor]
    classes: int | None = None

    def batches(self, learners: int, rounds: int, batch: int = 10) -> Batches:
        """Random data: how fast it is does not depend on what it is."""
        draw = torch.Generator().manual_seed(0)

        def one() -> tuple[Tensor, Tensor]:
            x = torch.randn(batch, *self.shape, generator=draw)
            if self.classes is not None:
                return x, torch.randint(self.classes, (batch,), generator=draw)
            return x, torch.randint(2, (batch, 1), generator=draw).float()

        return [[one() for _ in range(rounds)] for _ in range(learners)]


def _bce(output: Tensor, target: Tensor) -> Tensor:
    return F.binary_cross_entropy_with_logits(output, target)


CNN = Workload(mnist_cnn, (1, 28, 28), F.cross_entropy, classes=10)
MLP = Workload(drift_mlp, (50,), _bce)
DRIVING = Workload(driving_net, (3, 68, 320), F.mse_loss)
LOGISTIC = Workload(lambda: logistic(50), (50,), _bce)
NORMED = Workload(
    lambda: nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 26 * 26, 10)
    ),
    (1, 28, 28),
    F.cross_entropy,
    classes=10,
)


class Recurrent(nn.Module):
    """An LSTM's last state, classified."""

    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.LSTM(16, 32, batch_first=True)
        self.head = nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        """(B, time, 16) to logits (B, 10)."""
        logits: Tensor = self.head(self.cells(x)[0][:, -1])
        return logits


RECURRENT = Workload(Recurrent, (12, 16), F.cross_entropy, classes=10)


def plain_loop(work: Workload, batches: Batches) -> float:
    """Seconds that a loop over learners needs for the second half of its rounds."""
    models = [work.make() for _ in batches]
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.01) for model in models]
    half, start = len(batches[0]) // 2, 0.0
    for round in range(2 * half):
        if round == half:
            start = time.perf_counter()
        for model, optimizer, stream in zip(models, optimizers, batches, strict=True):
            x, y = stream[round]
            optimizer.zero_grad()
            work.loss(model(x), y).backward()
            optimizer.step()
    return time.perf_counter() - start


def ours(work: Workload, batches: Batches) -> float:
    """The same of a simulation, with the check at its end, in which nobody violates."""
    marks: list[float] = []
    simulate(
        model=work.make,
        loss=work.loss,
        optimizer=lambda parameters: torch.optim.SGD(parameters, lr=0.01),
        streams=batches,
        operator=Dynamic(delta=float("inf"), every=len(batches[0]) // 2),
        rounds=len(batches[0]) // 2 * 2,
        progress=False,
        callbacks=[lambda _: marks.append(time.perf_counter())],
    )
    return marks[1] - marks[0]


def in_turns(first: Callable[[], float], second: Callable[[], float], turns: int) -> float:
    """The median of the first's seconds over the median of the second's."""
    pairs = [(first(), second()) for _ in range(turns)]
    return statistics.median(a for a, _ in pairs) / statistics.median(b for _, b in pairs)


def against_plain(work: Workload, learners: int, rounds: int, turns: int) -> float:
    """How many times faster than the plain loop."""
    batches = work.batches(learners, 2 * rounds)
    return in_turns(lambda: plain_loop(work, batches), lambda: ours(work, batches), turns)


def quiet_check(every: int, turns: int, learners: int) -> float:
    """What a check without violations costs, as a share of the training that it follows."""
    batches = CNN.batches(learners, 2 * every)
    rows = torch.randn(learners, sum(p.numel() for p in mnist_cnn().parameters()))
    return in_turns(lambda: _sweep(rows, "distances"), lambda: ours(CNN, batches), turns)


def against_copy(what: str, learners: int, turns: int) -> float:
    """A copy's seconds over the operation's, on a matrix of as many CNNs."""
    rows = torch.randn(learners, sum(p.numel() for p in mnist_cnn().parameters()))
    return in_turns(lambda: _sweep(rows, "copy"), lambda: _sweep(rows, what), turns)


def _sweep(rows: Tensor, what: str) -> float:
    """Seconds of one operation on a whole matrix of models, with all workers."""
    with Workers.started(available_workers()) as workers:
        halves = rows.tensor_split(workers.count)
        target, reference = torch.empty_like(rows), rows[0].clone()
        averaging = Averaging(workers)
        work: dict[str, Callable[[], object]] = {
            "copy": lambda: workers.map(
                lambda pair: pair[0].copy_(pair[1]),
                zip(target.tensor_split(workers.count), halves, strict=True),
            ),
            "distances": lambda: workers.map(
                lambda half: vectors.squared_distances(list(half), reference), halves
            ),
            "average": lambda: averaging.mean(list(rows), [1.0] * len(rows)),
            "install": lambda: workers.map(
                lambda half: [row.copy_(reference) for row in half],
                target.tensor_split(workers.count),
            ),
        }
        target.zero_()
        work[what]()
        start = time.perf_counter()
        work[what]()
        return time.perf_counter() - start


def memory_per_learner(few: int, many: int) -> float:
    """Peak memory that more learners add, over the size of their models."""
    parameters = sum(p.numel() for p in drift_mlp().parameters())
    return (_peak_bytes(many) - _peak_bytes(few)) / ((many - few) * parameters * 4)


def _peak_bytes(learners: int) -> int:
    """Of a process of its own, which runs nothing else."""
    code = f"from dynavg.experiments.speed import print_peak; print_peak({learners})"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(ran.stdout)


def print_peak(learners: int) -> None:
    """Train so many small learners for a few rounds; print the process's peak memory."""
    simulate(
        model=drift_mlp,
        loss=_bce,
        optimizer=lambda parameters: torch.optim.SGD(parameters, lr=0.01),
        streams=data.drift(learners),
        operator=NoSync(),
        rounds=2,
        progress=False,
    )
    sys.stdout.write(str(_peak()))


def _peak() -> int:
    """This process's peak memory in bytes. Linux's ru_maxrss begins with that of the parent."""
    status = Path("/proc/self/status")
    if status.exists():
        told = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(told["VmHWM"].split()[0]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def measure(quick: bool = False) -> Iterator[Measured]:
    """All ratios, one after the other; `quick` with fewer learners, rounds and turns."""
    turns, m = (3, 20) if quick else (7, 100)
    cnn = against_plain(CNN, m, 2 if quick else 5, turns)
    yield Measured.at_least("MNIST CNN against a plain loop", cnn, 2.5)
    mlp = against_plain(MLP, 100, 5 if quick else 20, turns)
    yield Measured.at_least("drift MLP, 100 learners, against a plain loop", mlp, 12)
    driving = against_plain(DRIVING, 10, 1 if quick else 4, turns)
    yield Measured.at_least("driving network, 10 learners, against a plain loop", driving, 1.5)
    for name, work in (("logistic", LOGISTIC), ("BatchNorm", NORMED), ("LSTM", RECURRENT)):
        ratio = against_plain(work, 2, 10 if quick else 100, turns)
        yield Measured.at_least(f"{name}, 2 learners, against a plain loop", ratio, 0.95)
    for every in (5, 1):
        check = quiet_check(every, turns, m // 2 if quick else m)
        yield Measured.at_most(f"a quiet check, b = {every}, of its training", check, 0.03)
    for what in ("distances", "average", "install"):
        yield Measured.at_least(f"{what}, in the time of a copy", against_copy(what, m, turns), 0.6)
    few, many = (100, 2_000) if quick else (100, 10_000)
    sparse, crowded = MLP.batches(few, 10), MLP.batches(many, 10)
    growth = in_turns(
        lambda: ours(MLP, crowded) / many, lambda: ours(MLP, sparse) / few, 1 if quick else 3
    )
    yield Measured.at_most(f"time per sample, {many} learners against {few}", growth, 1.25)
    memory = memory_per_learner(few, many)
    yield Measured.at_most("memory per further learner, of its model's size", memory, 1.15)
