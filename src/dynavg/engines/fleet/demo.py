"""A whole fleet on this machine, over TLS with certificates made on the spot: to see it work."""

import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from dynavg.arguments import check_count
from dynavg.engines.fleet.broker import BROKER_FILE, broker, free_port
from dynavg.engines.fleet.config import FleetConfig
from dynavg.engines.fleet.folder import init
from dynavg.engines.fleet.office import Office
from dynavg.engines.fleet.processes import ended, start_learners
from dynavg.engines.fleet.running import run_coordinator
from dynavg.engines.fleet.table import table_on
from dynavg.engines.fleet.task import TaskSource

__all__ = ["BUILT_IN", "DemoResult", "demo"]

BUILT_IN = "dynavg.engines.fleet.builtin:drift_task"


@dataclass(frozen=True, slots=True)
class DemoResult:
    """What came of it. `bytes` are the ledger's; `wire_bytes` what the kernel counted on the
    coordinator's connection, headers of TCP and IP included (None where it does not count).
    """

    learners: int
    rounds: int | None
    violations: int
    bytes: int
    loss_per_learner: float
    wire_bytes: int | None

    def as_dict(self) -> dict[str, float | int | None]:
        """For JSON."""
        return asdict(self)


def demo(
    learners: int = 4,
    rounds: int | None = 100,
    *,
    task: TaskSource | None = None,
    pace: str = "free",
    table: bool = True,
    folder: Path | None = None,
) -> DemoResult:
    """Start broker, coordinator and learners, watch them, and say what came of it.

    Args:
        learners: How many, each in a process of its own.
        rounds: Batches per learner.
        task: What to learn; None takes the built-in drifting data.
        pace: "free" or "lockstep".
        table: Whether to draw a live table on standard error.
        folder: Where to leave the fleet's files; None throws them away.
    """
    check_count("demo", "learners", learners)
    if task is None:
        task = TaskSource(factory=BUILT_IN, arguments={"learners": learners, "rounds": rounds})
    settings = {"run": "demo", "pace": pace, "report_seconds": 0.5, "silence_seconds": 60.0}
    config = FleetConfig(learners=learners, **settings)
    with tempfile.TemporaryDirectory(prefix="dynavg-fleet-") as temporary:
        place = Path(temporary) / "fleet" if folder is None else folder
        port = free_port()
        init(place, config, task, port=port)
        with (
            broker(place / BROKER_FILE, port),
            ended([start_learners(place, range(id, id + 1)) for id in range(learners)]),
            table_on(table) as show,
        ):
            return _result(run_coordinator(place, show), learners)


def _result(office: Office, learners: int) -> DemoResult:
    book = office.book
    return DemoResult(
        learners=learners,
        rounds=office.task.rounds,
        violations=sum(check.violations for check in book.checks),
        bytes=book.ledger.total(),
        loss_per_learner=book.loss / learners,
        wire_bytes=office.post.wire_bytes,
    )
