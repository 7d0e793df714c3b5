"""dynavg's side: the public `simulate` with its default arguments.

python run_dynavg.py WORK.npz
"""

import sys

import torch
import work
from torch.nn import functional as F

import dynavg


def main(path: str) -> None:
    todo, ends = work.Work.load(path), []
    epochs = [
        list(zip(x.split(work.BATCH), y.split(work.BATCH), strict=True)) for x, y in todo.clients
    ]
    steps = len(epochs[0])
    result = dynavg.simulate(
        model=todo.net,
        loss=F.cross_entropy,
        optimizer=lambda parameters: torch.optim.SGD(parameters, lr=work.RATE),
        streams=[epoch * todo.rounds for epoch in epochs],
        operator=dynavg.FedAvg(every=steps, fraction=1.0),
        rounds=steps * todo.rounds,
        callbacks=[lambda _: ends.append(work.now())],
    )
    threads = f"{dynavg.engines.workers.available_workers()} × 1"
    work.tell(
        "dynavg", todo, result.model(), result.samples, ends, threads=threads, shard=result.shard
    )


if __name__ == "__main__":
    main(sys.argv[1])
