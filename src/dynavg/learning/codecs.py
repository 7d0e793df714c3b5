"""Vector to payload bytes and back.

Whatever is sent is used as decoded at both ends, in simulation too, so a codec says three things:
the bytes of a vector, the vector of bytes, and what a vector becomes on the way. Dense codecs lose
nothing; quantised and sparse ones come later and change nothing outside this file.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dynavg.protocol.wire import Codec, WireError

__all__ = ["Dense", "codec_for"]


@dataclass(frozen=True, slots=True)
class Dense:
    """Every entry as it is, little-endian.

    >>> codec = codec_for(torch.float32)
    >>> codec.decode(codec.encode(torch.tensor([1.0, -2.5])), entries=2)
    tensor([ 1.0000, -2.5000])
    """

    id: Codec
    dtype: torch.dtype
    wire: str

    def payload_bytes(self, entries: int) -> int:
        """The size of a payload with so many entries."""
        return entries * np.dtype(self.wire).itemsize

    def through(self, vector: Tensor) -> Tensor:
        """The vector as the other side will decode it."""
        return vector

    def encode(self, vector: Tensor) -> bytes:
        """The payload."""
        return vector.detach().cpu().numpy().astype(self.wire, copy=False).tobytes()

    def decode(self, payload: bytes, entries: int) -> Tensor:
        """The vector in a payload of so many entries."""
        if len(payload) != self.payload_bytes(entries):
            raise WireError(
                f"a payload of {len(payload)} bytes; a model of {entries} parameters as "
                f"{self.id.name.lower()} has {self.payload_bytes(entries)}"
            )
        return torch.from_numpy(np.frombuffer(payload, dtype=self.wire).astype(self.wire[1:]))


_DENSE = {
    torch.float32: Dense(Codec.FLOAT32, torch.float32, "<f4"),
    torch.float64: Dense(Codec.FLOAT64, torch.float64, "<f8"),
}


def codec_for(dtype: torch.dtype) -> Dense:
    """The lossless codec of models of that dtype."""
    if dtype not in _DENSE:
        raise TypeError(f"models of {dtype} cannot be sent; allowed are float32 and float64")
    return _DENSE[dtype]
