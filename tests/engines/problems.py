"""Small problems, and the hand-written loop that engines are held against."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import dynavg


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1)


def seeded(make, seed=3):
    """A factory whose weights hang on its own seed only, so that a plain loop can start alike."""

    def factory():
        torch.manual_seed(seed)
        return make()

    return factory


def regression(learners=3, rounds=6, batch=4, inputs=3, outputs=1, seed=0, dtype=torch.float32):
    """A list of batches per learner; `batch` may be one size per learner."""
    draw = torch.Generator().manual_seed(seed)
    sizes = [batch] * learners if isinstance(batch, int) else batch
    truth = torch.randn(inputs, outputs, generator=draw, dtype=dtype)

    def one(size):
        x = torch.randn(size, inputs, generator=draw, dtype=dtype)
        return x, x @ truth + 0.1 * torch.randn(size, outputs, generator=draw, dtype=dtype)

    return [[one(sizes[i]) for _ in range(rounds)] for i in range(learners)]


def classification(learners=3, rounds=6, batch=4, inputs=3, classes=3, seed=0):
    streams = regression(learners, rounds, batch, inputs, classes, seed)
    return [[(x, y.argmax(1)) for x, y in stream] for stream in streams]


def run(**changes):
    """`simulate` on the smallest regression, with these changes."""
    arguments = {
        "model": seeded(lambda: nn.Linear(3, 1)),
        "loss": F.mse_loss,
        "optimizer": sgd,
        "operator": dynavg.NoSync(),
        "rounds": 6,
        "progress": False,
        "workers": 1,
        "shard": "looped",
    } | changes
    if "streams" not in arguments:
        arguments["streams"] = regression(rounds=arguments["rounds"])
    return dynavg.simulate(**arguments)


class Walker(nn.Module):
    """A learner's weight moves by its input, until somebody averages."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return -x * self.weight


def walking(steps, operator, sizes=None, **changes):
    """One round a column; learner i's batches have sizes[i] samples."""
    sizes = sizes or [1] * len(steps)
    streams = [
        [(torch.full((n, 1), float(step)), torch.zeros(n, 1)) for step in row]
        for n, row in zip(sizes, steps, strict=True)
    ]
    return run(
        model=Walker,
        loss=lambda output, target: (output + 0 * target).mean(),
        optimizer=lambda p: torch.optim.SGD(p, lr=1.0),
        streams=streams,
        rounds=len(steps[0]),
        operator=operator,
        **changes,
    )


def losses(result):
    """(learners, rounds), summed over the batch."""
    frame = result.history.rounds
    return frame["loss"].to_numpy().reshape(result.rounds, -1).T


def states(result):
    return [module.state_dict() for module in result.models()]


def vector(module):
    return torch.cat([p.detach().reshape(-1) for p in module.parameters()])


def assert_same_bits(one, other):
    """Two runs: losses, models with all buffers, messages, checks."""
    assert np.array_equal(losses(one), losses(other))
    for own, its in zip(states(one), states(other), strict=True):
        assert own.keys() == its.keys()
        for name, tensor in own.items():
            assert torch.equal(tensor, its[name]), name
    assert one.ledger.equals(other.ledger)
    assert one.history.checks.equals(other.history.checks)
    assert one.history.evaluations.equals(other.history.evaluations)


class PlainLearner:
    """One learner as anybody would write it: a module of its own and an optimiser of its own."""

    def __init__(self, make, optimizer, loss, scheduler=None, clip=None, dtype=None):
        with torch.random.fork_rng():
            self.module = make().to(dtype=dtype)
        self.make_optimizer = optimizer
        self.optimizer = optimizer([p for p in self.module.parameters() if p.requires_grad])
        self.scheduler = scheduler(self.optimizer) if scheduler else None
        self.loss = loss
        self.clip = clip

    def train(self, x, y):
        """One round; returns the loss before it."""
        self.module.train()
        self.optimizer.zero_grad()
        loss = self.loss(self.module(x), y)
        loss.backward()
        if self.clip is not None:
            torch.nn.utils.clip_grad_norm_(self.module.parameters(), self.clip)
        self.optimizer.step()
        if self.scheduler is not None:
            self.scheduler.step()
        return loss.item()

    def forget(self):
        self.optimizer = self.make_optimizer(list(self.module.parameters()))


def plain_nosync(streams, *arguments, **named):
    """Every learner alone: losses (learners × rounds, summed over the batch) and learners."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        learners = [PlainLearner(*arguments, **named) for _ in streams]
        sums = [
            [learner.train(x, y) * len(y) for x, y in stream]
            for learner, stream in zip(learners, streams, strict=True)
        ]
    finally:
        torch.set_num_threads(before)
    return sums, learners


def average_plainly(learners, weights=None, buffers=True):
    """Put the weighted mean of parameters (and floating buffers) into every learner."""
    weights = weights or [1.0] * len(learners)
    parts = [dict(learner.module.named_parameters()) for learner in learners]
    if buffers:
        for part, learner in zip(parts, learners, strict=True):
            part |= {k: b for k, b in learner.module.named_buffers() if b.is_floating_point()}
    with torch.no_grad():
        for name in parts[0]:
            mean = sum(w * part[name].double() for w, part in zip(weights, parts, strict=True))
            mean = mean / sum(weights)
            for part in parts:
                part[name].copy_(mean)
