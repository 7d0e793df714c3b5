"""fluke's side: `FedAVG` in memory, as its defaults have it; clients are trained one after another.

    python run_fluke.py WORK.npz

The torchvision of the package index is built for torch with CUDA. Beside a CPU build of torch its
compiled operators do not load, and its import fails unless two of them are at least declared. fluke
imports it for datasets that are not used here.
"""

import importlib
import sys

import torch

try:
    importlib.import_module("torchvision")
except RuntimeError:
    for name in ("nms", "qnms"):
        torch.library.define(f"torchvision::{name}", "(Tensor a, Tensor b, float c) -> Tensor")

import work
from fluke import DDict
from fluke.algorithms.fedavg import FedAVG
from fluke.client import Client
from fluke.config import OptimizerConfigurator
from fluke.data import FastDataLoader
from fluke.server import Server
from fluke.utils import FederationObserver


class Clock(FederationObserver):
    def __init__(self) -> None:
        self.ends: list[float] = []

    def end_round(self, round: int) -> None:
        self.ends.append(work.now())


def main(path: str) -> None:
    todo, clock = work.Work.load(path), Clock()
    net = todo.net()
    seen = work.count_samples(net)
    optimizer = OptimizerConfigurator(DDict(name="SGD", lr=work.RATE))
    clients = [
        Client(
            index=index,
            train_set=FastDataLoader(x, y, num_labels=10, batch_size=work.BATCH),
            test_set=None,
            optimizer_cfg=optimizer,
            loss_fn=torch.nn.CrossEntropyLoss(),
            local_epochs=1,
        )
        for index, (x, y) in enumerate(todo.clients)
    ]
    server = Server(model=net, test_set=None, clients=clients)
    algorithm = FedAVG(len(clients), None, DDict(), clients=clients, server=server)
    algorithm.set_callbacks(clock)
    algorithm.run(n_rounds=todo.rounds, eligible_perc=1.0)
    work.tell("fluke-fl", todo, server.model, seen[0], clock.ends)


if __name__ == "__main__":
    main(sys.argv[1])
