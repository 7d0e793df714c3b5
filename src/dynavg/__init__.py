"""Decentralised deep learning that communicates only when it pays."""

from importlib.metadata import version

from dynavg import data
from dynavg.engines.api import serial, simulate
from dynavg.engines.history import DivergedError
from dynavg.engines.result import Result
from dynavg.engines.simulation import Check
from dynavg.operators import Dynamic, FedAvg, NoSync, Periodic

__all__ = [
    "Check",
    "DivergedError",
    "Dynamic",
    "FedAvg",
    "NoSync",
    "Periodic",
    "Result",
    "data",
    "serial",
    "simulate",
]

__version__ = version("dynavg")
