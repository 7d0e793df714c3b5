"""The coordinator's memory on disk: what it did, line by line, and the averages that still matter.

An append-only file of checked JSON lines. A line that must outlive a power cut is flushed to the
disk before anything else happens (`sync`); the others outlive the process. A last line that a crash
tore is cut off, a damaged line before it is an error: nothing is guessed. Why a file and not the
broker's own key-value store: docs/decisions/0010-fleet-recovery.md.
"""

import fcntl
import json
import os
import zlib
from pathlib import Path
from typing import Any

from torch import Tensor

from dynavg import checkpoint

__all__ = ["JOURNAL_FILE", "Journal", "JournalError", "entries_of", "kept_average"]

JOURNAL_FILE = "journal.jsonl"

Entry = dict[str, Any]


class JournalError(ValueError):
    """A journal that cannot be trusted; the files were left as they are."""


class Journal:
    """The journal in a folder; `entries` is what it held when it was opened."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        path = folder / JOURNAL_FILE
        self._file = path.open("ab")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise JournalError(f"{path}: another coordinator is writing it") from None
        self.entries, sound = entries_of(path)
        self._file.truncate(sound)

    def append(self, kind: str, *, sync: bool = False, **facts: Any) -> None:
        """Write one line; with `sync` it is on the disk when this returns."""
        text = json.dumps({"kind": kind, **facts}, separators=(",", ":")).encode()
        self._file.write(b"%08x %s\n" % (zlib.crc32(text), text))
        self._file.flush()
        if sync:
            os.fsync(self._file.fileno())

    def keep(self, resolution: int, average: Tensor) -> None:
        """Write down the average that a resolution ended with; call it before the line about it."""
        checkpoint.write(_file_of(self._folder, resolution), {"average": average}, {})

    def kept(self, resolution: int) -> Tensor:
        """The average of that resolution."""
        return kept_average(self._folder, resolution)

    def forget_all_but(self, resolutions: set[int]) -> None:
        """Remove the averages of other resolutions."""
        for path in self._folder.glob("average-*.safetensors"):
            if int(path.stem.rpartition("-")[2]) not in resolutions:
                path.unlink()

    def close(self) -> None:
        """Flush everything and let go."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()


def kept_average(folder: Path, resolution: int) -> Tensor:
    """The average of a resolution, from a journal's folder."""
    return checkpoint.read(_file_of(folder, resolution))[0]["average"]


def _file_of(folder: Path, resolution: int) -> Path:
    return folder / f"average-{resolution:08d}.safetensors"


def entries_of(path: Path) -> tuple[list[Entry], int]:
    """The sound entries and how many bytes they take."""
    if not path.exists():
        return [], 0
    entries: list[Entry] = []
    sound = 0
    lines = path.read_bytes().splitlines(keepends=True)
    for number, line in enumerate(lines, 1):
        checksum, _, text = line.rstrip(b"\n").partition(b" ")
        whole = line.endswith(b"\n") and checksum == b"%08x" % zlib.crc32(text)
        if not whole and number < len(lines):
            raise JournalError(f"{path}, line {number}: damaged, and it is not the last one")
        if whole:
            entries.append(json.loads(text))
            sound += len(line)
    return entries, sound
