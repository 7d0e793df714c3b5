"""Where learners start: at one common model, or around it."""

import torch
from torch import Tensor

from dynavg import seeds
from dynavg.learning.program import Program
from dynavg.models import glorot_limit

__all__ = ["initial_rows"]


def initial_rows(program: Program, learners: int, noise: float) -> Tensor:
    """Every learner's row: the common initial model, plus, per weight tensor, uniform noise on
    `noise` times its Glorot interval (none on biases and buffers).
    """
    row = program.initial_row()
    rows = row.repeat(learners, 1)
    if noise:
        for learner, own in enumerate(rows):
            _disturb(program, own, learner, noise)
    return rows


def _disturb(program: Program, row: Tensor, learner: int, noise: float) -> None:
    pieces = list(program.layout.views(row))[: len(program.layout.shapes)]
    for number, piece in enumerate(pieces):
        if piece.ndim >= 2:
            limit = noise * glorot_limit(piece)
            draw = seeds.generator(program.seed, "init_noise", learner, call=number)
            piece.add_(torch.from_numpy(draw.uniform(-limit, limit, tuple(piece.shape))).to(piece))
