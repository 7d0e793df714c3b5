"""The comparison that `make run` makes: four protocols learn MNIST with the paper's network.

Small enough for a first look. The paper's own experiments are larger, with seeds and verdicts.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import torch
from torch.nn.functional import cross_entropy

from dynavg import records
from dynavg.data import mnist, split
from dynavg.engines.api import simulate
from dynavg.experiments.running import keep
from dynavg.models import mnist_cnn
from dynavg.operators import Dynamic, FedAvg, NoSync, Operator, Periodic

__all__ = ["PROTOCOLS", "compare"]

PROTOCOLS: dict[str, Operator] = {
    "no synchronisation": NoSync(),
    "periodic, b = 5": Periodic(every=5),
    "FedAvg, b = 5, C = 0.5": FedAvg(every=5, fraction=0.5),
    "dynamic, b = 5, Δ = 2": Dynamic(delta=2.0, every=5),
    "dynamic, b = 5, Δ = 5": Dynamic(delta=5.0, every=5),
}
BASELINE = "periodic, b = 5"
LEARNERS, BATCH, RATE = 10, 10, 0.1


def compare(
    out: Path, data: Path | None = None, *, rounds: int = 400, seed: int = 0
) -> Iterator[tuple[str, records.Record]]:
    """Run one protocol after the other on the same data; each run's folder lies in `out`."""
    streams = split(mnist(data), learners=LEARNERS, batch_size=BATCH, seed=seed)
    for name, operator in PROTOCOLS.items():
        start = time.perf_counter()
        result = simulate(
            model=mnist_cnn,
            loss=cross_entropy,
            optimizer=lambda parameters: torch.optim.SGD(parameters, lr=RATE),
            streams=streams,
            operator=operator,
            rounds=rounds,
            seed=seed,
        )
        spec = {
            "name": name,
            "data": "mnist",
            "model": "mnist_cnn",
            "learners": LEARNERS,
            "batch_size": BATCH,
            "optimizer": {"name": "SGD", "lr": RATE},
            "operator": str(operator),
            "rounds": rounds,
            "seed": seed,
        }
        folder = out / name.replace(" = ", "").replace(", ", "-").replace(" ", "-")
        yield name, keep(folder, spec, result, time.perf_counter() - start)
