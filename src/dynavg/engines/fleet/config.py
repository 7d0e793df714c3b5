"""What the processes of one fleet must agree on, and where each of them finds its own things.

Nothing here reads a spec: whoever has one makes a `FleetConfig` of it.
"""

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["BUFFERED_MODELS", "CONFIG_FILE", "FleetConfig"]

CONFIG_FILE = "fleet.json"

BUFFERED_MODELS = 4
"""How many models may wait in a connection before it counts as too slow and loses messages."""


class FleetConfig(BaseModel):
    """One fleet. Every wait has its deadline here, in seconds.

    Args:
        learners: m, the learners that the run starts with; more may join later.
        run: The run's name; processes of different runs do not hear each other.
        group: The number of the group of learners within the run.
        url: Where the broker listens.
        folder: Where processes keep their state: the coordinator's journal, learners' models.
        credentials: The folder of certificates that `init` made; None speaks without TLS.
        hosts: Which learner ids each process may speak for.
        pace: "lockstep" waits for all at every check, "free" for nobody.
        while_waiting: What a learner does in free pace while the coordinator resolves.
        chunk_bytes: Messages above that size travel in pieces; at most the broker's max_payload.
        collect_seconds: How long the coordinator waits for models that it asked for.
        answer_seconds: How long a learner waits for the coordinator before it speaks again.
        barrier_seconds: How long the slowest learner may take to a check, in lockstep.
        join_seconds: How long the coordinator waits for the first `learners` learners.
        orphan_seconds: How long a learner goes on hoping when nobody answers.
        connect_seconds: How long a process tries to reach the broker when it starts.
        report_seconds: How often a learner says how far it is.
        silence_seconds: Who says nothing for so long is gone.
        ping_seconds: How often a quiet connection is tested.
        metrics_port: Where the coordinator serves Prometheus metrics on loopback; None does not.
        fail_at: For tests of recovery, by process: {"coordinator": "Send:1"} kills it after its
            first `Send`, {"host-2": "Trained:100"} that process after its 100th batch.

    >>> FleetConfig(learners=3).pace
    'free'
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    learners: int = Field(ge=1)
    run: str = Field(default="run", pattern=r"^[a-zA-Z0-9_-]+$")
    group: int = Field(default=0, ge=0, lt=1 << 32)
    url: str = "nats://127.0.0.1:4222"
    folder: Path = Path("fleet")
    credentials: Path | None = None
    hosts: dict[str, list[int]] = Field(default_factory=dict)
    pace: Literal["lockstep", "free"] = "free"
    while_waiting: Literal["train", "wait"] = "train"
    chunk_bytes: int = Field(default=512 * 1024, ge=1024)
    collect_seconds: float = Field(default=30.0, gt=0)
    answer_seconds: float = Field(default=60.0, gt=0)
    barrier_seconds: float = Field(default=120.0, gt=0)
    join_seconds: float = Field(default=120.0, gt=0)
    orphan_seconds: float = Field(default=900.0, gt=0)
    connect_seconds: float = Field(default=15.0, gt=0)
    report_seconds: float = Field(default=300.0, gt=0)
    silence_seconds: float = Field(default=1000.0, gt=0)
    ping_seconds: float = Field(default=180.0, gt=0)
    metrics_port: int | None = Field(default=None, ge=0, lt=1 << 16)
    fail_at: dict[str, Annotated[str, Field(pattern=r"^[A-Z][A-Za-z]+:[1-9][0-9]*$")]] = Field(
        default_factory=dict
    )

    @property
    def run_number(self) -> int:
        """The run's name as the number that messages carry."""
        return int.from_bytes(blake2b(self.run.encode(), digest_size=8).digest(), "little")

    @property
    def coordinator_folder(self) -> Path:
        """Where the coordinator's journal is."""
        return self.folder / "coordinator"

    def learner_file(self, id: int) -> Path:
        """Where a learner keeps its model."""
        return self.folder / f"learner-{id:05d}.safetensors"

    def host_of(self, ids: range) -> str:
        """The process that may speak for these learners: the one whose certificate lists them."""
        if self.credentials is None:
            return f"host-{ids.start}"
        for name, allowed in self.hosts.items():
            if set(ids) <= set(allowed):
                return name
        who = f"learner {ids.start}"
        if len(ids) > 1:
            who = f"learners {ids.start} to {ids.stop - 1} together"
        raise ValueError(
            f"no certificate speaks for {who}; this fleet has {len(self.hosts)}: "
            + _shortened([f"{name} for {_spans(allowed)}" for name, allowed in self.hosts.items()])
        )


def _spans(ids: Sequence[int]) -> str:
    """Ascending ids in a few characters.

    >>> _spans([0, 1, 2, 5])
    '0–2, 5'
    """
    starts = [id for id in ids if id - 1 not in ids]
    ends = [id for id in ids if id + 1 not in ids]
    return ", ".join(
        f"{start}" if start == end else f"{start}–{end}"
        for start, end in zip(starts, ends, strict=True)
    )


def _shortened(words: Sequence[str], most: int = 6) -> str:
    """Words in a row, those in the middle left out where there are many."""
    if len(words) > most:
        words = [*words[: most - 1], "…", words[-1]]
    return ", ".join(words) or "none"
