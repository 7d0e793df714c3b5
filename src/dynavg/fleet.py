"""Learners and a coordinator as real processes, over a NATS broker: `pip install dynavg[fleet]`.

The commands `dynavg fleet …` call what is here; `Learner` is for training loops of one's own.
"""

from dynavg.engines.fleet.broker import free_port
from dynavg.engines.fleet.config import FleetConfig
from dynavg.engines.fleet.demo import WATCHED, DemoResult, demo
from dynavg.engines.fleet.folder import Fleet, folder_of, init, load
from dynavg.engines.fleet.gathering import gather
from dynavg.engines.fleet.hook import Learner, LearnerConfig, learner_config
from dynavg.engines.fleet.logs import log_to
from dynavg.engines.fleet.running import run_broker, run_coordinator, run_learners
from dynavg.engines.fleet.status import Status, status
from dynavg.engines.fleet.task import ModelTask, Task, TaskSource
from dynavg.experiments.fleet_record import record
from dynavg.experiments.fleet_task import init as init_from_spec
from dynavg.experiments.fleet_task import spec_of

__all__ = [
    "WATCHED",
    "DemoResult",
    "Fleet",
    "FleetConfig",
    "Learner",
    "LearnerConfig",
    "ModelTask",
    "Status",
    "Task",
    "TaskSource",
    "demo",
    "folder_of",
    "free_port",
    "gather",
    "init",
    "init_from_spec",
    "learner_config",
    "load",
    "log_to",
    "record",
    "run_broker",
    "run_coordinator",
    "run_learners",
    "spec_of",
    "status",
]
