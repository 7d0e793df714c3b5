"""Every message counted, and the views on the count.

A row per message, in the canonical order: check by check, then violations, queries, replies,
models, ids ascending; the order of arrival leaves no trace, so a simulation and a fleet that take
the same decisions keep the same book. Sizes are handed in: they come from the wire format and the
codec, never from a formula here.
"""

from array import array
from collections.abc import Iterable, Mapping
from enum import StrEnum

from dynavg.protocol.messages import COORDINATOR, MessageType
from dynavg.protocol.wire import HEADER_BYTES

__all__ = ["Ledger", "View", "readable_bytes"]

_UPWARD = (MessageType.VIOLATION, MessageType.REPLY)


class View(StrEnum):
    """What is counted: whole messages, their payloads, only those to the coordinator, or rows."""

    TOTAL = "total"
    MODELS_ONLY = "models_only"
    UPLINK = "uplink"
    MESSAGES = "messages"


class Ledger:
    """The book of one run.

    >>> ledger = Ledger()
    >>> ledger.add(1, MessageType.REPLY, [2, 0], payload_bytes=400)
    >>> ledger.add(1, MessageType.QUERY, [2, 0], payload_bytes=0)
    >>> ledger.settle()
    >>> [(row["type"], row["sender"], row["receiver"]) for row in ledger.rows()]
    [('query', -1, 0), ('query', -1, 2), ('reply', 0, -1), ('reply', 2, -1)]
    >>> ledger.total("models_only"), ledger.total("messages")
    (800, 4)
    """

    def __init__(self) -> None:
        self._round = array("q")
        self._type = array("b")
        self._learner = array("q")
        self._header = array("q")
        self._payload = array("q")
        self._open: list[tuple[int, int, int, int]] = []  # type, learner, payload bytes, round

    def __len__(self) -> int:
        """How many messages are in the book; those of an unsettled check are not."""
        return len(self._round)

    def add(
        self, round: int, type: MessageType, learners: Iterable[int], payload_bytes: int
    ) -> None:
        """Note one message of that type from, or to, each of these learners."""
        self._open.extend((int(type), learner, payload_bytes, round) for learner in learners)

    def settle(self) -> None:
        """Close the check: its messages enter the book in canonical order."""
        self._open.sort()
        for type_, learner, payload, round_ in self._open:
            self._round.append(round_)
            self._type.append(type_)
            self._learner.append(learner)
            self._header.append(HEADER_BYTES)
            self._payload.append(payload)
        self._open.clear()

    def total(self, view: str = View.TOTAL) -> int:
        """The settled messages under one view, in bytes (`messages`: their number)."""
        match _view(view):
            case View.MESSAGES:
                return len(self)
            case View.MODELS_ONLY:
                return sum(self._payload)
            case View.UPLINK:
                return sum(
                    header + payload
                    for kind, header, payload in zip(
                        self._type, self._header, self._payload, strict=True
                    )
                    if kind in _UPWARD
                )
            case View.TOTAL:  # pragma: no branch
                return sum(self._header) + sum(self._payload)

    def columns(self) -> dict[str, "array[int] | list[str]"]:
        """The book column by column, for a data frame or a file."""
        pairs = list(zip(self._type, self._learner, strict=True))
        return {
            "round": self._round,
            "type": [_NAMES[kind] for kind in self._type],
            "sender": array("q", (id if kind in _UPWARD else COORDINATOR for kind, id in pairs)),
            "receiver": array("q", (COORDINATOR if kind in _UPWARD else id for kind, id in pairs)),
            "header_bytes": self._header,
            "payload_bytes": self._payload,
        }

    def state(self) -> dict[str, "array[int]"]:
        """The settled messages in the form that `load` takes; cheap to write down."""
        return {
            "round": self._round,
            "type": self._type,
            "learner": self._learner,
            "header": self._header,
            "payload": self._payload,
        }

    def load(self, state: Mapping[str, Iterable[int]]) -> None:
        """The inverse of `state`: continue that book."""
        for name, column in self.state().items():
            column[:] = array(column.typecode, state[name])

    def rows(self) -> list[dict[str, int | str]]:
        """The book message by message."""
        columns = self.columns()
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def readable_bytes(number: float) -> str:
    """A number of bytes in a unit that suits it.

    >>> readable_bytes(0), readable_bytes(1_919_844_800)
    ('0 B', '1.92 GB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if abs(number) < 999.5:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.4g} TB"


_NAMES = {int(kind): kind.name.lower() for kind in MessageType}


def _view(name: str) -> View:
    try:
        return View(name)
    except ValueError:
        allowed = ", ".join(View)
        raise ValueError(f"view {name!r} is unknown; allowed: {allowed}") from None
