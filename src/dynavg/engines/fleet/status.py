"""How a fleet is doing, as its coordinator's journal tells it: nobody is asked, nothing is sent."""

from dataclasses import asdict, dataclass
from typing import Any

from dynavg.engines.fleet.config import FleetConfig
from dynavg.engines.fleet.gathering import read_book
from dynavg.engines.history import CheckRecord

__all__ = ["Status", "status"]


@dataclass(frozen=True, slots=True)
class Status:
    """`rounds` and `losses` (per sample) are by learner, as last heard; `last` is a check."""

    run: str
    members: tuple[int, ...]
    epoch: int
    checks: int
    bytes: int
    refused: int
    rounds: dict[int, int]
    losses: dict[int, float]
    last: CheckRecord | None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def status(config: FleetConfig) -> Status:
    """The state of a fleet, on the coordinator's machine, while it runs or afterwards."""
    book = read_book(config)
    state = book.state or {"members": (), "epoch": 0}
    heard = {id: progress for id, progress in book.rows() if progress.all_samples}
    return Status(
        run=config.run,
        members=tuple(state["members"]),
        epoch=state["epoch"],
        checks=len(book.checks),
        bytes=book.ledger.total(),
        refused=len(book.refused),
        rounds={id: progress.round for id, progress in heard.items()},
        losses={id: progress.all_loss / progress.all_samples for id, progress in heard.items()},
        last=book.checks[-1] if book.checks else None,
    )
