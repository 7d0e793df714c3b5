"""Learners and a coordinator as real processes, over a NATS broker: `pip install dynavg[fleet]`.

The commands `dynavg fleet …` call what is here; `Learner` is for training loops of one's own.
"""

from dynavg.engines.fleet.config import FleetConfig
from dynavg.engines.fleet.demo import DemoResult, demo
from dynavg.engines.fleet.folder import Fleet, init, load
from dynavg.engines.fleet.gathering import gather
from dynavg.engines.fleet.hook import Learner
from dynavg.engines.fleet.running import broker_command, run_coordinator, run_learners
from dynavg.engines.fleet.status import Status, status
from dynavg.engines.fleet.task import ModelTask, Task, TaskSource

__all__ = [
    "DemoResult",
    "Fleet",
    "FleetConfig",
    "Learner",
    "ModelTask",
    "Status",
    "Task",
    "TaskSource",
    "broker_command",
    "demo",
    "gather",
    "init",
    "load",
    "run_coordinator",
    "run_learners",
    "status",
]
