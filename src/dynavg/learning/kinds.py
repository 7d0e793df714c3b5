"""Which kind of shard steps the learners, and how they are cut into shards.

Both are decided by what is run, never by how fast it is or how many workers there are: a result
must not depend on the load of a machine.
"""

import threading
from typing import Literal

from torch import Tensor

from dynavg.data.streams import Streams
from dynavg.learning.fused import Fused, can_fuse
from dynavg.learning.looped import Looped
from dynavg.learning.program import Program
from dynavg.learning.shard import Shard
from dynavg.learning.stacked import Stacked, can_stack

__all__ = ["Kind", "make_shards", "shard_kind"]

Kind = Literal["looped", "fused", "stacked"]

LARGEST = 250_000
"""Parameters of a model beyond which a learner's step is arithmetic, not calls."""

FEWEST = 4
"""Learners from which a batched step pays for what it costs (measured)."""

LOOP = 8
"""Learners at most per shard that steps them in turns; fewer where there are few learners, so that
the work can be shared out evenly."""

STACK = 25
"""Learners per stacked shard, where there are enough of them for every worker."""


def shard_kind(wanted: str, program: Program, streams: Streams, on_sync: str) -> Kind:
    """What "auto" means is decided by what is run, never by how fast it is."""
    small = program.layout.parameters <= LARGEST and streams.learners >= FEWEST
    reason: str | None = None
    if wanted == "stacked" or (wanted == "auto" and small):
        reason = can_stack(program, streams, on_sync)
        if reason is None:
            return "stacked"
    if wanted in ("fused", "auto"):
        reason = can_fuse(program, streams)
        if reason is None:
            return "fused"
    if wanted in ("stacked", "fused"):
        raise ValueError(f"simulate(shard={wanted!r}): {reason}")
    return "looped"


def make_shards(
    kind: Kind,
    program: Program,
    streams: Streams,
    rows: Tensor,
    on_sync: Literal["keep", "reset"],
) -> list[Shard]:
    """The learners in shards of that kind, each with its slice of the rows."""
    templates = threading.local()
    most, parts = (STACK, 4) if kind == "stacked" else (LOOP, 48)
    size = min(most, -(-len(rows) // parts))
    starts = range(0, len(rows), size)
    blocks = [range(start, min(start + size, len(rows))) for start in starts]
    if kind == "stacked":
        return [
            Stacked(program, streams, ids, rows[ids.start : ids.stop], templates) for ids in blocks
        ]
    looped = Fused if kind == "fused" else Looped
    return [
        looped(program, streams, ids, rows[ids.start : ids.stop], on_sync, templates)
        for ids in blocks
    ]
