"""The IDX format, in which MNIST and its relatives are published.

Two zero bytes, a byte for the type of the numbers, a byte for the number of dimensions, each
dimension as a big-endian 32-bit number, then the numbers, big-endian, in row-major order.
"""

import math
import struct

import numpy as np
from numpy.typing import NDArray

__all__ = ["parse_idx"]

_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def parse_idx(content: bytes, where: str) -> NDArray[np.generic]:
    """The array in the bytes of an IDX file; `where` names the file in errors.

    >>> parse_idx(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9]), "the doctest")
    array([7, 8, 9], dtype=uint8)
    """
    if len(content) < 4 or content[:2] != b"\0\0":
        raise ValueError(f"{where} is no IDX file: it begins with {content[:4]!r}")
    kind, dimensions = content[2], content[3]
    if kind not in _TYPES:
        raise ValueError(f"{where}: IDX type 0x{kind:02x} is not one of {_known()}")
    header = 4 + 4 * dimensions
    if len(content) < header:
        raise ValueError(f"{where} ends within its header, after {len(content)} bytes")
    shape = struct.unpack(f">{dimensions}I", content[4:header])
    numbers = np.dtype(_TYPES[kind])
    expected = header + math.prod(shape) * numbers.itemsize
    if len(content) != expected:
        raise ValueError(
            f"{where} must have {expected} bytes for shape {shape}, but has {len(content)}"
        )
    array = np.frombuffer(content, dtype=numbers, offset=header).reshape(shape)
    return array.astype(numbers.newbyteorder("="))


def _known() -> str:
    return ", ".join(f"0x{kind:02x}" for kind in _TYPES)
