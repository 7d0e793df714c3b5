"""Whatever bytes come: `decode` gives a message or a `WireError`, and nothing else."""

import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dynavg.protocol.messages import MessageType
from dynavg.protocol.wire import Codec, Message, WireError, decode, encode
from tests.protocol.frames import HEADER, LAYOUT, messages, sealed


def decoded(data: bytes) -> Message | None:
    try:
        message = decode(data)
    except WireError:
        return None
    assert isinstance(message.type, MessageType)
    assert isinstance(message.codec, Codec)
    assert encode(message) == data, "what is accepted has one form only"
    return message


@settings(deadline=None)
@given(st.binary(max_size=200))
@example(b"")
@example(b"davg")
def test_random_bytes_are_no_message(data):
    assert decoded(data) is None


@settings(deadline=None)
@given(st.binary(min_size=HEADER, max_size=HEADER + 40))
def test_random_bytes_that_look_like_a_message_are_a_message_or_an_error(data):
    decoded(sealed(b"davg\x01" + data[5:]))


@settings(deadline=None)
@given(messages(), st.data())
def test_a_damaged_message_is_an_error_unless_its_checksum_is_made_to_fit(message, data):
    frame = bytearray(encode(message))
    position = data.draw(st.integers(0, len(frame) - 1))
    frame[position] ^= data.draw(st.integers(1, 255))
    assert decoded(bytes(frame)) is None
    decoded(sealed(bytes(frame)))


def mutated(rng: random.Random, frame: bytes) -> bytes:
    """One to four hits: bytes overwritten, removed, inserted, doubled; a field set at random."""
    data = bytearray(frame)
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(data) + 1)
        match rng.randrange(6):
            case 0:
                data[place : place + 1] = rng.randbytes(1)
            case 1:
                del data[place : place + rng.randint(1, 40)]
            case 2:
                data[place:place] = rng.randbytes(rng.randint(1, 40))
            case 3:
                data += data[place:]
            case 4:
                data[place : place + 8] = rng.choice((b"\0", b"\xff", b"\x7f")) * 8
            case 5:
                offset, code = rng.choice(list(LAYOUT.values()))
                wide = {"4s": 4, "B": 1, "I": 4, "i": 4, "Q": 8, "d": 8}[code]
                data[offset : offset + wide] = rng.randbytes(wide)
    return bytes(data)


@pytest.mark.slow
@settings(deadline=None, max_examples=1500)
@given(messages(), st.integers(0, 2**32))
def test_a_hundred_thousand_mutated_and_random_inputs_give_a_message_or_an_error(message, seed):
    """1,500 examples of 80 mutated inputs and 20 random ones."""
    rng, valid = random.Random(seed), encode(message)
    for _ in range(80):
        data = mutated(rng, valid)
        decoded(data)
        if len(data) >= HEADER:
            decoded(sealed(data))
    for _ in range(20):
        assert decoded(rng.randbytes(rng.randrange(300))) is None


def test_mutations_go_deeper_than_the_first_test_of_the_header():
    rng = random.Random(0)
    valid = encode(Message(MessageType.VIOLATION, 3, codec=Codec.FLOAT32, payload=bytes(40)))
    inputs = [data for data in (mutated(rng, valid) for _ in range(2000)) if len(data) >= HEADER]
    assert sum(decoded(sealed(data)) is not None for data in inputs) > 20
