"""What a model becomes on the wire, and back."""

import re
import struct

import pytest
import torch

from dynavg.learning.codecs import codec_for
from dynavg.protocol.wire import Codec, WireError

VALUES = [1.0, -2.5, 0.0, -0.0, float("inf"), 1e-40, 3.4e38]


@pytest.mark.parametrize(
    ("dtype", "id", "letter"),
    [(torch.float32, Codec.FLOAT32, "f"), (torch.float64, Codec.FLOAT64, "d")],
)
def test_dense_payloads_are_little_endian_numbers_in_order(dtype, id, letter):
    codec, vector = codec_for(dtype), torch.tensor(VALUES, dtype=dtype)
    payload = codec.encode(vector)
    assert codec.id is id
    assert payload == struct.pack(f"<{len(VALUES)}{letter}", *vector.tolist())
    assert len(payload) == codec.payload_bytes(len(VALUES))
    decoded = codec.decode(payload, len(VALUES))
    assert decoded.dtype == dtype
    assert codec.encode(decoded) == payload
    assert torch.equal(codec.through(vector), decoded)


def test_a_row_of_a_matrix_and_a_parameter_can_be_encoded():
    codec = codec_for(torch.float32)
    matrix = torch.arange(12.0).view(3, 4)
    assert codec.encode(matrix[1, :3]) == struct.pack("<3f", 4, 5, 6)
    assert codec.encode(matrix[:, 1]) == struct.pack("<3f", 1, 5, 9)
    assert codec.encode(torch.nn.Parameter(matrix[0])) == struct.pack("<4f", 0, 1, 2, 3)


def test_what_was_decoded_can_be_written_to():
    codec = codec_for(torch.float32)
    codec.decode(bytes(8), 2).add_(1)


@pytest.mark.parametrize("length", [0, 7, 9, 16])
def test_a_payload_of_another_length_is_an_error(length):
    text = f"a payload of {length} bytes; a model of 2 parameters as float32 has 8"
    with pytest.raises(WireError, match=re.escape(text)):
        codec_for(torch.float32).decode(bytes(length), 2)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int32])
def test_models_of_other_dtypes_cannot_be_sent(dtype):
    with pytest.raises(TypeError, match=f"models of {dtype} cannot be sent; allowed are float32"):
        codec_for(dtype)
