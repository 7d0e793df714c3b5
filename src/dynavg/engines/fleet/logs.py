"""Structured logs: one JSON object per line, for people with `grep` and for machines."""

import json
import logging
import sys
from typing import Any, TextIO

__all__ = ["event", "log_to"]


def event(log: logging.Logger, level: int, what: str, **facts: Any) -> None:
    """Log that something happened, and its facts."""
    if log.isEnabledFor(level):
        log.log(level, what, extra={"facts": facts})


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S") + f".{record.msecs:03.0f}",
            "level": record.levelname.lower(),
            "process": record.process,
            "event": record.getMessage(),
            **getattr(record, "facts", {}),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def log_to(stream: TextIO = sys.stderr, level: int = logging.INFO) -> None:
    """Send this process's fleet log there; once per process."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_JsonLines())
    for name in ("dynavg.engines.fleet", "asyncio", "nats"):
        log = logging.getLogger(name)
        log.addHandler(handler)
        log.setLevel(level)
        log.propagate = False
