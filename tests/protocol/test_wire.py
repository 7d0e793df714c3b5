"""The wire format: what it looks like, what it takes, what it refuses."""

import math
import struct
from dataclasses import replace

import pytest
from hypothesis import given, settings

from dynavg.protocol.messages import COORDINATOR, MessageType
from dynavg.protocol.wire import HEADER_BYTES, Codec, Message, WireError, decode, encode, size
from tests.protocol.frames import HEADER, LAYOUT, field_of, messages, sealed, with_field

MODEL = Message(
    type=MessageType.MODEL,
    sender=COORDINATOR,
    round=800,
    resolution=17,
    epoch=5,
    sequence=42,
    weight=10.0,
    run=0x1122334455667788,
    group=3,
    signature=0xA1B2C3D4E5F60718,
    codec=Codec.FLOAT32,
    as_reference=True,
    payload=struct.pack("<2f", 1.0, -2.0),
)
VIOLATION = Message(MessageType.VIOLATION, sender=6, codec=Codec.FLOAT64, payload=b"12345678")
QUERY = Message(MessageType.QUERY, sender=COORDINATOR, resolution=4)

# Little-endian; the last word of the header is the CRC-32 (IEEE) of all that stands around it,
# worked out bit by bit, without zlib.
GOLDEN = """
64617667 01 04 01 01
8877665544332211 03000000 ffffffff
2003000000000000 1100000000000000 0500000000000000 2a00000000000000
0000000000002440 1807f6e5d4c3b2a1 0800000000000000
cbf54c17
0000803f 000000c0
"""


def test_a_message_has_exactly_these_bytes():
    assert encode(MODEL).hex() == "".join(GOLDEN.split())


def test_these_bytes_are_exactly_that_message():
    assert decode(bytes.fromhex(GOLDEN)) == MODEL


def test_the_header_has_84_bytes_and_its_fields_stand_where_they_stood():
    assert HEADER_BYTES == HEADER
    frame = encode(MODEL)
    expected = {
        "magic": b"davg",
        "version": 1,
        "type": 4,
        "flags": 1,
        "codec": 1,
        "length": 8,
        "run": 0x1122334455667788,
        "group": 3,
        "sender": -1,
        "round": 800,
        "resolution": 17,
        "epoch": 5,
        "sequence": 42,
        "weight": 10.0,
        "signature": 0xA1B2C3D4E5F60718,
    }
    assert {name: field_of(frame, name) for name in LAYOUT} == expected


@settings(deadline=None)
@given(messages())
def test_what_is_encoded_is_decoded_again_and_has_the_announced_size(message):
    frame = encode(message)
    assert decode(frame) == message
    assert decode(bytearray(frame)) == decode(memoryview(frame)) == message
    assert len(frame) == size(len(message.payload)) == 84 + len(message.payload)


def test_the_payload_comes_out_as_bytes_of_its_own():
    frame = bytearray(encode(MODEL))
    message = decode(frame)
    frame[HEADER:] = bytes(8)
    assert message.payload == MODEL.payload


@pytest.mark.parametrize("message", [MODEL, VIOLATION, QUERY], ids=lambda m: m.type.name)
def test_a_changed_byte_anywhere_is_noticed(message):
    frame = encode(message)
    for position in range(len(frame)):
        damaged = bytearray(frame)
        damaged[position] ^= 0x40
        with pytest.raises(WireError):
            decode(bytes(damaged))


@pytest.mark.parametrize("message", [MODEL, VIOLATION, QUERY], ids=lambda m: m.type.name)
def test_a_message_cut_short_or_prolonged_anywhere_is_noticed(message):
    frame = encode(message)
    for length in range(len(frame)):
        with pytest.raises(WireError, match="bytes"):
            decode(frame[:length])
    for length in range(HEADER, len(frame)):
        with pytest.raises(WireError, match="payload bytes announced"):
            decode(sealed(frame[:length]))
    for extra in (b"\0", frame):
        with pytest.raises(WireError, match="payload bytes announced"):
            decode(sealed(frame + extra))


# A sealed frame, so the checksum is right: what stands in the field itself must be refused.
REFUSED = {
    "magic": (MODEL, "magic", b"gvad", "no message of this protocol"),
    "version": (MODEL, "version", 2, "format version 2; this side speaks 1"),
    "type 0": (MODEL, "type", 0, "MessageType"),
    "type 5": (MODEL, "type", 5, "MessageType"),
    "codec 3": (MODEL, "codec", 3, "Codec"),
    "flags": (MODEL, "flags", 3, "unknown flags 0x03"),
    "high flag": (MODEL, "flags", 0x80, "unknown flags 0x80"),
    "reference up": (VIOLATION, "flags", 1, "VIOLATION cannot carry a reference"),
    "reference in a query": (QUERY, "flags", 1, "QUERY cannot carry a reference"),
    "model from a learner": (MODEL, "sender", 0, "MODEL from sender 0"),
    "query from a learner": (QUERY, "sender", 2, "QUERY from sender 2"),
    "violation from the coordinator": (VIOLATION, "sender", -1, "VIOLATION from sender -1"),
    "sender below all": (VIOLATION, "sender", -2, "sender -2"),
    "model from below all": (MODEL, "sender", -2, "sender -2"),
    "reply that was a model": (MODEL, "type", 3, "REPLY from sender -1"),
    "weight 0": (MODEL, "weight", 0.0, "weight 0.0"),
    "weight negative": (MODEL, "weight", -1.0, "weight -1.0"),
    "weight infinite": (MODEL, "weight", math.inf, "weight inf"),
    "weight NaN": (MODEL, "weight", math.nan, "weight nan"),
    "model without codec": (MODEL, "codec", 0, "MODEL with codec NONE and 8 payload bytes"),
    "query with codec": (QUERY, "codec", 1, "QUERY with codec FLOAT32 and 0 payload bytes"),
    "query with payload": (MODEL, "type", 2, "QUERY"),
    "length too small": (MODEL, "length", 7, "7 payload bytes announced, 8 came"),
    "length too large": (MODEL, "length", 2**63, "9223372036854775808 payload bytes announced"),
}


@pytest.mark.parametrize(("message", "field", "value", "why"), REFUSED.values(), ids=REFUSED)
def test_a_field_that_makes_no_sense_is_refused_with_its_value(message, field, value, why):
    with pytest.raises(WireError, match=why):
        decode(with_field(encode(message), field, value))


def test_a_query_with_payload_and_a_model_without_are_refused():
    full = Message(MessageType.QUERY, COORDINATOR, codec=Codec.FLOAT32, payload=b"1234")
    for message in (full, replace(full, codec=Codec.NONE), replace(MODEL, payload=b"")):
        with pytest.raises(WireError, match="a query carries nothing, every other message a model"):
            encode(message)


def test_a_payload_may_be_as_large_as_allowed_and_no_larger():
    frame = encode(MODEL)
    assert decode(frame, max_payload=8) == MODEL
    with pytest.raises(WireError, match="a payload of 8 bytes is announced; at most 7 allowed"):
        decode(frame, max_payload=7)
    with pytest.raises(WireError, match="announced; at most 7 allowed"):
        decode(with_field(frame, "length", 2**64 - 1), max_payload=7)


UNSENDABLE = {
    "round": -1,
    "resolution": 2**64,
    "epoch": -1,
    "sequence": 2**64,
    "run": -1,
    "group": 2**32,
    "signature": 2**64,
}


@pytest.mark.parametrize(("field", "value"), UNSENDABLE.items())
def test_a_number_that_does_not_fit_its_field_is_refused_before_it_is_sent(field, value):
    with pytest.raises(WireError, match="a field of MODEL does not fit the header"):
        encode(replace(MODEL, **{field: value}))


def test_a_sender_that_does_not_fit_is_refused_before_it_is_sent():
    with pytest.raises(WireError, match="a field of VIOLATION does not fit the header"):
        encode(replace(VIOLATION, sender=2**31))


@pytest.mark.parametrize("weight", [0.0, -1.0, math.inf, math.nan])
def test_a_weight_that_is_none_is_refused_before_it_is_sent(weight):
    with pytest.raises(WireError, match="a positive finite number is wanted"):
        encode(replace(VIOLATION, weight=weight))
