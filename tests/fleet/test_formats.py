"""Notes, pieces, journal: what is damaged is noticed, what is whole comes through."""

import random
from contextlib import suppress

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dynavg.engines.fleet.chunks import CHUNK_HEADER_BYTES, Assembly, pieces
from dynavg.engines.fleet.control import NOTE_BYTES, Kind, Note, decode_note, encode_note
from dynavg.engines.fleet.holding import Holding
from dynavg.engines.fleet.journal import Journal, JournalError, entries_of
from dynavg.learning import vectors
from dynavg.protocol.wire import WireError

MOST = 10_000


@given(st.binary(max_size=3000).map(b"davg".__add__), st.integers(40, 500))
def test_pieces_make_the_message_again_and_none_is_too_large(data, most):
    cut = list(pieces(data, 5, most))
    assert max(map(len, cut)) <= most
    assembly = Assembly(MOST)
    came = [assembly.take(piece) for piece in cut]
    assert came[-1] == data
    assert came[:-1] == [None] * (len(cut) - 1)


def test_a_doubled_piece_changes_nothing():
    cut = list(pieces(bytes(range(200)), 5, 100))
    assembly = Assembly(MOST)
    came = [assembly.take(piece) for piece in cut for _ in range(2)]
    assert [whole for whole in came if whole is not None] == [bytes(range(200))]


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_lost_piece_makes_the_message_void_and_not_the_next_one(lost):
    cut = list(pieces(bytes(200), 5, 100))
    del cut[lost]
    assembly, refused = Assembly(MOST), 0
    for piece in cut:
        try:
            assert assembly.take(piece) is None
        except WireError:
            refused += 1
    assert refused == (lost < 2)
    assert [assembly.take(piece) for piece in pieces(b"y" * 200, 6, 100)][-1] == b"y" * 200


def test_reordered_pieces_never_make_another_message():
    data = bytes(range(250))
    for seed in range(30):
        cut = list(pieces(data, 5, 70))
        random.Random(seed).shuffle(cut)
        assembly = Assembly(MOST)
        for piece in cut:
            with suppress(WireError):
                assert assembly.take(piece) in (None, data)


def test_a_message_too_large_is_refused_at_its_first_piece():
    (first, *_) = pieces(bytes(MOST + 1), 5, 200)
    with pytest.raises(WireError, match="announced; at most 10000"):
        Assembly(MOST).take(first)
    with pytest.raises(WireError, match="at most 10000 allowed"):
        Assembly(MOST).take(bytes(MOST + 1))


def test_a_piece_without_content_is_refused():
    with pytest.raises(WireError, match="nothing in it"):
        Assembly(MOST).take(b"dchk" + bytes(CHUNK_HEADER_BYTES - 4))


def test_notes_come_through():
    note = Note(Kind.DONE, 3, round=7, sequence=9, run=1, distance=0.25, loss=4.0, correct=1.0)
    assert decode_note(encode_note(note)) == note
    assert len(encode_note(note)) == NOTE_BYTES


@given(st.integers(0, NOTE_BYTES - 1), st.integers(1, 255))
def test_a_damaged_note_is_refused(place, change):
    data = bytearray(encode_note(Note(Kind.DONE, 3)))
    data[place] ^= change
    with pytest.raises(WireError):
        decode_note(bytes(data))


def test_learners_cannot_say_what_the_coordinator_says():
    with pytest.raises(WireError, match="GO from sender 3"):
        decode_note(encode_note(Note(Kind.GO, 3)))


def test_a_journal_survives_a_torn_last_line_and_nothing_else(tmp_path):
    journal = Journal(tmp_path)
    journal.append("message", round=1)
    journal.append("sent")
    journal.close()
    path = tmp_path / "journal.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    torn = Journal(tmp_path)
    assert torn.entries == [{"kind": "message", "round": 1}]
    torn.append("after")
    torn.close()
    assert [entry["kind"] for entry in entries_of(path)[0]] == ["message", "after"]
    path.write_bytes(b"x" + whole)
    with pytest.raises(JournalError, match="line 1"):
        entries_of(path)


def test_two_coordinators_cannot_write_one_journal(tmp_path):
    first = Journal(tmp_path)
    with pytest.raises(JournalError, match="another coordinator"):
        Journal(tmp_path)
    first.close()
    Journal(tmp_path).close()


def test_the_coordinators_mean_has_the_bits_of_the_simulations():
    models = [torch.randn(40_000) for _ in range(5)]
    weights = [3.0, 1.0, 2.0, 5.0, 7.0]
    total = torch.zeros(40_000, dtype=torch.float64)
    vectors.accumulate(total, models, weights)
    holding = Holding(torch.zeros(40_000))
    holding.models = dict(enumerate(models))
    assert torch.equal(holding.mean(range(5), weights), vectors.mean(total, 18.0, torch.float32))
