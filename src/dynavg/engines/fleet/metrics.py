"""The coordinator's figures for Prometheus, on loopback.

The names and meanings are an interface: dashboards are built on them.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from dynavg.engines.fleet.logs import event
from dynavg.engines.fleet.office import Office

__all__ = ["Metrics", "metrics_served"]

log = logging.getLogger(__name__)

SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
SECONDS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100)


class Metrics:
    """A registry of its own, brought up to date by `observe`."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self._checks = Counter("dynavg_checks", "Checks written down", registry=registry)
        self._violations = Counter("dynavg_violations", "Violations resolved", registry=registry)
        self._refused = Counter("dynavg_refused", "Messages refused", registry=registry)
        self._live = Gauge("dynavg_live_learners", "Members now", registry=registry)
        self._epoch = Gauge("dynavg_reference_epoch", "The reference's epoch", registry=registry)
        self._bytes = Counter(
            "dynavg_bytes", "Bytes of the protocol's messages", ["type"], registry=registry
        )
        self._sets = Histogram(
            "dynavg_balancing_set_size", "Learners averaged", buckets=SIZES, registry=registry
        )
        self._seconds = Histogram(
            "dynavg_resolution_seconds", "Time to resolve", buckets=SECONDS, registry=registry
        )
        self._seen = (0, 0, 0)

    def observe(self, office: Office) -> None:
        """Take in what has happened since the last time."""
        book = office.book
        checks, refused, resolved = self._seen
        for record in book.checks[checks:]:
            self._checks.inc()
            self._violations.inc(record.violations)
            if record.balancing_set:
                self._sets.observe(record.balancing_set)
            for kind in ("violation", "query", "reply", "model"):
                self._bytes.labels(kind).inc(getattr(record, f"{kind}_bytes"))
        for seconds in office.minutes.resolution_seconds[resolved:]:
            self._seconds.observe(seconds)
        self._refused.inc(len(book.refused) - refused)
        self._live.set(len(office.machine.members))
        self._epoch.set(office.machine.epoch)
        self._seen = (len(book.checks), len(book.refused), len(office.minutes.resolution_seconds))


@contextmanager
def metrics_served(port: int | None) -> Iterator[Callable[[Office], None]]:
    """Serve metrics at http://127.0.0.1:port/metrics; 0 takes a free port, None serves nothing."""
    if port is None:
        yield lambda _: None
        return
    metrics = Metrics()
    server, thread = start_http_server(port, addr="127.0.0.1", registry=metrics.registry)
    event(log, logging.INFO, "metrics", url=f"http://127.0.0.1:{server.server_port}/metrics")
    try:
        yield metrics.observe
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
