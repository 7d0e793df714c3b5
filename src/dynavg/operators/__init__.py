"""The synchronisation operators: whom next, and when it is enough. Pure and tensor-free.

To add one: a file with a frozen dataclass that fulfils `dynavg.protocol.operator.Operator`, and a
line in `OPERATORS`; the contract tests pick it up.
"""

from dynavg.operators.dynamic import Dynamic
from dynavg.operators.fedavg import FedAvg
from dynavg.operators.periodic import NoSync, Periodic
from dynavg.protocol.operator import Operator

__all__ = ["OPERATORS", "Dynamic", "FedAvg", "NoSync", "Operator", "Periodic"]

OPERATORS: dict[str, type[Operator]] = {
    "nosync": NoSync,
    "periodic": Periodic,
    "fedavg": FedAvg,
    "dynamic": Dynamic,
}
