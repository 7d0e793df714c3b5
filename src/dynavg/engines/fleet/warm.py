"""Imported once by the server that processes are forked from: pay here for what all would pay.

torch imports a thousand modules at an optimiser's first step. No thread may be running when a
process is forked, so nothing here computes a gradient.
"""

import torch

from dynavg.engines.fleet import running

__all__ = ["running"]


def _first_step() -> None:
    torch.set_num_threads(1)
    parameter = torch.nn.Parameter(torch.zeros(1))
    parameter.grad = torch.zeros(1)
    torch.optim.SGD([parameter], lr=0.1).step()


_first_step()
