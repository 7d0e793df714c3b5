"""The picture in docs/howto.md: `.venv/bin/python docs/figures/partition.py`, a second."""

from pathlib import Path

import torch

import dynavg

x = torch.randn(3_000, 8, generator=torch.Generator().manual_seed(0))
streams = dynavg.data.split(
    (x, x[:, :4].argmax(1)), learners=6, batch_size=10, by=dynavg.data.Dirichlet(alpha=0.3), seed=3
)
streams.picture().savefig(Path(__file__).with_suffix(".png"), dpi=90)
