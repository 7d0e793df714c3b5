"""Tasks that tests name by import path."""

import torch
from torch import nn

from dynavg.engines.fleet.task import ModelTask
from dynavg.operators import Dynamic


def net():
    return nn.Linear(3, 1)


def own_loops(delta=0.05, rounds=1):
    return ModelTask(net, Dynamic(delta), rounds=rounds)


def not_a_task():
    return torch.zeros(1)
