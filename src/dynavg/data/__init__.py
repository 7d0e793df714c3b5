"""Datasets, and streams of batches for learners: iid, skewed, unbalanced, drifting."""

from dynavg.data.fetch import DataUnavailable, cache_folder
from dynavg.data.graphical import GraphicalModel, Segment, drift
from dynavg.data.partition import (
    Dirichlet,
    Exponential,
    Iid,
    Linear,
    Partitioner,
    Pathological,
    Shards,
    Sizes,
    Square,
)
from dynavg.data.pictures import Pictures, fashion_mnist, mnist
from dynavg.data.shifts import Permuted, Rotated
from dynavg.data.splitting import Split, per_learner, split
from dynavg.data.streams import Batch, Streams, as_streams

__all__ = [
    "Batch",
    "DataUnavailable",
    "Dirichlet",
    "Exponential",
    "GraphicalModel",
    "Iid",
    "Linear",
    "Partitioner",
    "Pathological",
    "Permuted",
    "Pictures",
    "Rotated",
    "Segment",
    "Shards",
    "Sizes",
    "Split",
    "Square",
    "Streams",
    "as_streams",
    "cache_folder",
    "drift",
    "fashion_mnist",
    "mnist",
    "per_learner",
    "split",
]
