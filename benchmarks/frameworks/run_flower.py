"""Flower's side: `FedAvg` on the simulation runtime, as many clients at once as there are cores.

    python run_flower.py WORK.npz

The client is that of Flower's PyTorch tutorial; it finds its samples in the file, which each Ray
process reads once. `flwr run` would do the same through a local server process; `run_simulation` is
its runtime without that.
"""

import os
import sys
from functools import cache

import torch
import work
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation
from torch.nn import functional as F

client_app, server_app = ClientApp(), ServerApp()


@cache
def todo() -> work.Work:
    return work.Work.load(os.environ["WORK"])


@client_app.train()
def train(message: Message, context: Context) -> Message:
    x, y = todo().clients[context.node_config["partition-id"]]
    net = work.Net()
    net.load_state_dict(message.content["arrays"].to_torch_state_dict())
    net.train()
    seen = work.count_samples(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=work.RATE)
    for xs, ys in zip(x.split(work.BATCH), y.split(work.BATCH), strict=True):
        optimizer.zero_grad()
        F.cross_entropy(net(xs), ys).backward()
        optimizer.step()
    metrics = {"num-examples": len(y), "seen": seen[0], "threads": torch.get_num_threads()}
    content = RecordDict(
        {"arrays": ArrayRecord(net.state_dict()), "metrics": MetricRecord(metrics)}
    )
    return Message(content=content, reply_to=message)


ends: list[float] = []
seen_per_round: list[int] = []
threads: set[int] = set()


def end_of_round(number: int, _: ArrayRecord) -> None:
    if number:
        ends.append(work.now())


def total(records: list[RecordDict], _: str) -> MetricRecord:
    metrics = [record["metrics"] for record in records]
    seen_per_round.append(sum(one["seen"] for one in metrics))
    threads.update(one["threads"] for one in metrics)
    return MetricRecord({"seen": seen_per_round[-1]})


@server_app.main()
def serve(grid: Grid, _: Context) -> None:
    strategy = FedAvg(
        fraction_train=1.0,
        fraction_evaluate=0.0,
        min_available_nodes=len(todo().clients),
        train_metrics_aggr_fn=total,
    )
    result = strategy.start(
        grid,
        ArrayRecord(todo().net().state_dict()),
        num_rounds=todo().rounds,
        evaluate_fn=end_of_round,
    )
    net = work.Net()
    net.load_state_dict(result.arrays.to_torch_state_dict())
    each = "/".join(map(str, sorted(threads)))
    at_once = f"{os.cpu_count()} × {each}"
    work.tell("flwr", todo(), net, sum(seen_per_round), ends, threads=at_once)


def main(path: str) -> None:
    os.environ["WORK"] = path
    run_simulation(
        server_app,
        client_app,
        num_supernodes=len(todo().clients),
        backend_config={
            "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
            "init_args": {"_node_ip_address": "127.0.0.1", "include_dashboard": False},
        },
    )


if __name__ == "__main__":
    # By its module's name, so that Ray sends a reference to the client and not its code each time.
    import run_flower

    run_flower.main(sys.argv[1])
