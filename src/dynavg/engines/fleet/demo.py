"""A whole fleet on this machine, to see it work."""

from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

from dynavg.engines.fleet import folder as folders
from dynavg.engines.fleet.broker import BROKER_FILE, broker
from dynavg.engines.fleet.office import Office
from dynavg.engines.fleet.processes import ended, start_learners
from dynavg.engines.fleet.running import run_coordinator
from dynavg.engines.fleet.table import table_on

__all__ = ["WATCHED", "DemoResult", "demo"]

WATCHED = {"report_seconds": 0.5, "silence_seconds": 60.0}
"""Settings of a fleet that somebody watches: learners say often how far they are."""


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


def demo(folder: Path, *, table: bool = True) -> DemoResult:
    """Start the broker, the coordinator and every learner of the fleet in `folder`, each learner in
    a process of its own; watch them until they are done, and say what came of it.

    `table` draws a live table on standard error.
    """
    config = folders.load(folder).config
    port = urlsplit(config.url).port
    assert port is not None, "init writes it"
    with (
        broker(folder / BROKER_FILE, port),
        ended([start_learners(folder, range(id, id + 1)) for id in range(config.learners)]),
        table_on(table) as show,
    ):
        return _result(run_coordinator(folder, show), config.learners)


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
