"""The work that every framework does, written once: model, data, start, and what a run tells.

Runners import this in environments without dynavg, so it needs torch and numpy only. Clients have
their samples in one fixed order, nothing is random during training, and all start from the weights
in the file: whoever does federated averaging right ends at the same model, up to rounding.
"""

import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

BATCH = 10
RATE = 0.1
HELD_OUT = 2_000
NOISE = 1.0
"""Standard deviation of a pixel around its class's picture, whose pixels are standard normal."""


class Net(nn.Module):
    """Two convolutions and two dense layers, as a user writes them: 46,154 parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 8, 5)
        self.second = nn.Conv2d(8, 16, 5)
        self.dense = nn.Linear(256, 160)
        self.out = nn.Linear(160, 10)

    def forward(self, x: Tensor) -> Tensor:
        """(B, 1, 28, 28) to logits (B, 10)."""
        x = F.max_pool2d(F.relu(self.first(x)), 2)
        x = F.max_pool2d(F.relu(self.second(x)), 2)
        return self.out(F.relu(self.dense(x.flatten(1))))


@dataclass(frozen=True)
class Work:
    """What is in the file: x (clients, samples, 1, 28, 28), y (clients, samples), held-out x and y,
    the weights to start from, and for how many rounds to train.
    """

    arrays: dict[str, np.ndarray]

    @classmethod
    def load(cls, path: str) -> "Work":
        with np.load(path, allow_pickle=False) as file:
            return cls(dict(file))

    @cached_property
    def rounds(self) -> int:
        return int(self.arrays["rounds"])

    @cached_property
    def clients(self) -> list[tuple[Tensor, Tensor]]:
        """Each one's samples (x, y), in the order in which it trains on them in every round."""
        pairs = zip(self.arrays["x"], self.arrays["y"], strict=True)
        return [(torch.from_numpy(x), torch.from_numpy(y)) for x, y in pairs]

    def net(self) -> Net:
        """The model, with the weights to start from."""
        net = Net()
        names = net.state_dict()
        net.load_state_dict({name: torch.from_numpy(self.arrays[name].copy()) for name in names})
        return net

    @torch.no_grad()
    def held_out(self, net: nn.Module) -> tuple[float, float]:
        """Mean loss and accuracy of the averaged model on samples that nobody trained on."""
        logits = net.eval()(torch.from_numpy(self.arrays["held_x"]))
        y = torch.from_numpy(self.arrays["held_y"])
        return float(F.cross_entropy(logits, y)), float((logits.argmax(1) == y).float().mean())


def make(path: str, clients: int, samples: int, rounds: int) -> None:
    """Draw the data and the weights to start from, and write them to `path`."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((10, 1, 28, 28), dtype=np.float32)

    def draw(*shape: int) -> tuple[np.ndarray, np.ndarray]:
        y = rng.integers(10, size=shape)
        noise = rng.standard_normal((*shape, 1, 28, 28), dtype=np.float32)
        return centres[y] + np.float32(NOISE) * noise, y

    (x, y), (held_x, held_y) = draw(clients, samples), draw(HELD_OUT)
    torch.manual_seed(0)
    start = {name: tensor.numpy() for name, tensor in Net().state_dict().items()}
    np.savez(path, x=x, y=y, held_x=held_x, held_y=held_y, rounds=np.array(rounds), **start)


def count_samples(net: nn.Module) -> list[int]:
    """A list of one number: the samples that went through `net`, and copies of it, in training."""
    seen = [0]

    def note(module: nn.Module, args: tuple[Tensor]) -> None:
        if module.training:
            seen[0] += len(args[0])

    net.register_forward_pre_hook(note)
    return seen


def tell(
    package: str, work: Work, net: nn.Module, samples: int, ends: Sequence[float], **more: object
) -> None:
    """Print what a run came to. `ends` are the times at which its rounds ended; the first round's
    time is left out, and with it all start-up.
    """
    if len(ends) != work.rounds:
        raise SystemExit(f"{package}: {work.rounds} rounds were wanted, but {len(ends)} ended")
    loss, accuracy = work.held_out(net)
    line = {
        "package": package,
        "version": version(package),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "parameters": sum(p.numel() for p in net.parameters()),
        "samples": samples,
        "loss": loss,
        "accuracy": accuracy,
        "seconds": ends[-1] - ends[0],
        "threads": f"1 × {torch.get_num_threads()}",
        "load": os.getloadavg()[0],
    }
    sys.stdout.write("\n" + json.dumps(line | more) + "\n")


now = time.perf_counter
