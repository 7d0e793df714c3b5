"""A run's state in one file, written whole or not at all, and read with suspicion.

One safetensors file: tensors as they are, everything else as JSON in its header; never pickle. The
file is written beside its place, flushed to the disk, and renamed over it, so that a machine that
dies at any moment leaves the last checkpoint or the new one. What belongs into a state is the
engines' affair.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

__all__ = ["CheckpointError", "differences", "read", "write"]

FORMAT = "dynavg-checkpoint-1"


class CheckpointError(ValueError):
    """A checkpoint that cannot be used; the file was left as it is."""


def write(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """Replace the checkpoint at `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(path.name + ".draft")
    own = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    save_file(own, draft, metadata={"format": FORMAT, "facts": json.dumps(facts)})
    _flush(draft)
    draft.replace(path)
    _flush(path.parent)


def read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and facts of a checkpoint."""
    if not path.is_file():
        raise CheckpointError(f"{path}: no checkpoint there; resume=True wants one to go on from")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            if metadata.get("format") != FORMAT:
                raise CheckpointError(
                    f"{path}: not a checkpoint of this version "
                    f"({metadata.get('format', 'no format')!r}, not {FORMAT!r})"
                )
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path}: damaged or not a checkpoint ({error})") from None
    return tensors, json.loads(metadata["facts"])


def differences(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """What changed between the run that wrote a checkpoint and the one that wants to go on.

    >>> differences({"seed": 1, "rounds": 5}, {"seed": 2, "rounds": 5})
    ['seed: 1 in the checkpoint, 2 now']
    """
    return [
        f"{key}: {stored.get(key)!r} in the checkpoint, {wanted.get(key)!r} now"
        for key in sorted(stored.keys() | wanted.keys())
        if stored.get(key) != wanted.get(key)
    ]


def _flush(path: Path) -> None:
    """Make sure that a file's content, or a folder's entries, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
