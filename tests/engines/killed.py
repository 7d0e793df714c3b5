"""A run in a process of its own, to be killed: `python killed.py CHECKPOINT RESUME DIE_AT OUT`.

DIE_AT is "never", "round N" or "write N": SIGKILL after that check, or at that step of writing the
last checkpoints (each system call that touches the file or its folder is a step).
"""

import os
import signal
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F

import dynavg
from dynavg import checkpoint as module

ROUNDS = 60


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def run(checkpoint=None, callbacks=(), shard="looped", **changes):
    x = torch.randn(200, 4, generator=torch.Generator().manual_seed(0))
    y = x.sum(1, keepdim=True).sin()

    def model():
        norm = [nn.BatchNorm1d(8)] if shard == "looped" else []
        return nn.Sequential(nn.Linear(4, 8), *norm, nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 1))

    return dynavg.simulate(
        model=model,
        loss=F.mse_loss,
        optimizer=lambda p: torch.optim.Adam(p, lr=0.01),
        scheduler=lambda o: torch.optim.lr_scheduler.StepLR(o, 10, 0.9),
        streams=dynavg.data.split((x, y), learners=7, batch_size=4),
        operator=dynavg.Dynamic(delta=0.02, every=2),
        rounds=ROUNDS,
        seed=5,
        evaluate=((x, y), 20),
        shard=shard,
        progress=False,
        checkpoint=checkpoint,
        checkpoint_every=7,
        callbacks=callbacks,
        **changes,
    )


def dying_at_step(steps):
    """Let the process die before its `steps`-th step of writing."""
    left = steps

    def counted(function):
        def call(*args, **named):
            nonlocal left
            left -= 1
            if left == 0:
                die()
            return function(*args, **named)

        return call

    module.save_file = counted(module.save_file)
    module._flush = counted(module._flush)
    Path.replace = counted(Path.replace)


def main(checkpoint, resume, die_at, out):
    kind, _, number = die_at.partition(" ")
    callbacks = []
    if kind == "round":
        callbacks = [lambda check: die() if check.record.round == int(number) else None]
    elif kind == "write":
        dying_at_step(int(number))
    result = run(checkpoint, callbacks, resume=resume == "resume")
    facts = result.history.rounds["loss"].to_numpy()
    save_file({"rows": result.rows, "losses": torch.from_numpy(facts.copy())}, out)


if __name__ == "__main__":
    main(*sys.argv[1:])
