"""What a coordinator says about its work: a line per check in the journal and in the log, and the
figures of this life of its for whoever watches.
"""

import logging
import time
from collections import Counter
from collections.abc import Sequence

from dynavg.engines.fleet.book import Book
from dynavg.engines.fleet.logs import event
from dynavg.engines.fleet.post import Post
from dynavg.protocol.messages import Outcome

__all__ = ["Minutes"]

log = logging.getLogger(__name__)


class Minutes:
    """`resolution_seconds` by resolution, `violations` by learner, since this coordinator began."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.begun_at = time.monotonic()
        self.resolution_seconds: list[float] = []
        self.violations: Counter[int] = Counter()
        self._since: float | None = None

    def open(self) -> None:
        """A check is being resolved."""
        self._since = time.monotonic()

    def conclude(
        self,
        round: int,
        outcome: Outcome | None,
        distances: Sequence[float] | None,
        members: int,
    ) -> None:
        """It is over."""
        record = self.book.check(round, outcome, distances)
        seconds = 0.0
        if outcome is not None:
            self.violations.update(outcome.violators)
            if self._since is not None:
                seconds = time.monotonic() - self._since
                self.resolution_seconds.append(seconds)
        event(
            log,
            logging.INFO,
            "check",
            round=round,
            cause=record.cause,
            violations=record.violations,
            balancing_set=record.balancing_set,
            missing=() if outcome is None else outcome.missing,
            refused=() if outcome is None else outcome.refused,
            members=members,
            bytes=record.bytes,
            seconds=seconds,
        )

    def end(self, post: Post, small_talk: int) -> None:
        """What this life of the coordinator's cost."""
        traffic, book = post.traffic, self.book
        facts = {
            "seconds": time.monotonic() - self.begun_at,
            "small_talk": small_talk,
            "crossed_bytes": traffic.sent_bytes + traffic.received_bytes,
            "wire_bytes": post.wire_bytes,
            "lost": traffic.lost,
        }
        book.ended(**facts)
        event(
            log,
            logging.INFO,
            "finished",
            checks=len(book.checks),
            loss=book.loss,
            bytes=book.ledger.total(),
            handed_out=book.handed_out.total(),
            **facts,
        )
