"""What a run leaves on disk: one folder, read and written here only.

    spec.json           what was run: the resolved spec, seed, versions, git commit
    summary.json        what it came to: losses, bytes by view, accuracy, seconds, machine
    rounds.parquet      a row per learner and round
    checks.parquet      a row per check
    evaluations.parquet a row per evaluation on held-out data
    ledger.parquet      a row per message
    model.safetensors   the averaged model

`summary.json` is written last, so a folder that has it is a finished run. Frames are read when
asked for: a report over many runs needs few of them.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import polars as pl
from safetensors.torch import save_file
from torch import Tensor

from dynavg.protocol.ledger import Ledger

__all__ = ["Frames", "Record", "is_finished", "ledger_frame", "read", "write", "write_unfinished"]


class Frames(Protocol):
    """The data frames of a run."""

    @property
    def rounds(self) -> pl.DataFrame:
        """round, learner, loss (summed over the batch), samples, correct (if counted)."""
        ...

    @property
    def checks(self) -> pl.DataFrame:
        """A row per check."""
        ...

    @property
    def evaluations(self) -> pl.DataFrame:
        """round, loss, accuracy of the averaged model."""
        ...


@dataclass(frozen=True)
class Record:
    """A finished run on disk."""

    folder: Path
    spec: dict[str, Any]
    summary: dict[str, Any]

    @cached_property
    def rounds(self) -> pl.DataFrame:
        """round, learner, loss (summed over the batch), samples, correct (if counted)."""
        return pl.read_parquet(self.folder / "rounds.parquet")

    @cached_property
    def checks(self) -> pl.DataFrame:
        """A row per check."""
        return pl.read_parquet(self.folder / "checks.parquet")

    @cached_property
    def evaluations(self) -> pl.DataFrame:
        """round, loss, accuracy of the averaged model."""
        return pl.read_parquet(self.folder / "evaluations.parquet")

    @cached_property
    def ledger(self) -> pl.DataFrame:
        """A row per message."""
        return pl.read_parquet(self.folder / "ledger.parquet")


def write(
    folder: Path,
    spec: Mapping[str, Any],
    summary: Mapping[str, Any],
    frames: Frames,
    ledger: pl.DataFrame,
    model: Mapping[str, Tensor],
) -> Record:
    """Write a finished run; what the folder held of an unfinished one is replaced."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "summary.json").unlink(missing_ok=True)
    _write_json(folder / "spec.json", spec)
    frames.rounds.write_parquet(folder / "rounds.parquet")
    frames.checks.write_parquet(folder / "checks.parquet")
    frames.evaluations.write_parquet(folder / "evaluations.parquet")
    ledger.write_parquet(folder / "ledger.parquet")
    save_file(
        {name: tensor.contiguous() for name, tensor in model.items()}, folder / "model.safetensors"
    )
    _write_json(folder / "summary.json", summary)
    return read(folder)


def write_unfinished(folder: Path, spec: Mapping[str, Any], summary: Mapping[str, Any]) -> Record:
    """Write down that a run ended before its time; `summary` says why. It is over, and has no
    frames.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _write_json(folder / "spec.json", spec)
    _write_json(folder / "summary.json", summary)
    return read(folder)


def is_finished(folder: Path) -> bool:
    """Whether the folder holds a whole run."""
    return (folder / "summary.json").is_file()


def read(folder: Path) -> Record:
    """The run in a folder."""
    if not is_finished(folder):
        raise FileNotFoundError(
            f"{folder} holds no finished run: summary.json is missing (dynavg run and dynavg "
            "reproduce write such folders)"
        )
    spec = json.loads((folder / "spec.json").read_text())
    return Record(folder, spec, json.loads((folder / "summary.json").read_text()))


def ledger_frame(ledger: Ledger) -> pl.DataFrame:
    """A row per message: round, type, sender, receiver (−1 is the coordinator), header_bytes,
    payload_bytes and their sum, bytes.
    """
    columns = {
        name: column if isinstance(column, list) else np.asarray(column)
        for name, column in ledger.columns().items()
    }
    total = (pl.col("header_bytes") + pl.col("payload_bytes")).alias("bytes")
    return pl.DataFrame(columns, schema=_LEDGER).with_columns(total)


_LEDGER: dict[str, pl.DataType | type[pl.DataType]] = {
    "round": pl.Int64,
    "type": pl.String,
    "sender": pl.Int64,
    "receiver": pl.Int64,
    "header_bytes": pl.Int64,
    "payload_bytes": pl.Int64,
}


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Whole or not at all."""
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(content, indent=2) + "\n")
    draft.replace(path)
