"""The book of messages: its order, its columns, its views."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynavg.protocol.ledger import Ledger, View, readable_bytes
from dynavg.protocol.messages import COORDINATOR, MessageType
from dynavg.protocol.wire import HEADER_BYTES

P = 400
"""Payload bytes of a model."""

# One dynamic check in round 7: V = {4, 1}, 0 is queried, all three get the mean; 2|𝓑| models and
# |𝓑∖V| queries.
CHECK = [
    (7, MessageType.VIOLATION, 4, P),
    (7, MessageType.VIOLATION, 1, P),
    (7, MessageType.QUERY, 0, 0),
    (7, MessageType.REPLY, 0, P),
    (7, MessageType.MODEL, 4, P),
    (7, MessageType.MODEL, 0, P),
    (7, MessageType.MODEL, 1, P),
]


def book(messages):
    ledger = Ledger()
    for round, type, learner, payload in messages:
        ledger.add(round, type, [learner], payload)
    ledger.settle()
    return ledger


def columns(ledger):
    return {name: list(column) for name, column in ledger.columns().items()}


def test_a_check_is_in_canonical_order_column_by_column():
    up, down = COORDINATOR, COORDINATOR
    assert columns(book(CHECK)) == {
        "round": [7] * 7,
        "type": ["violation", "violation", "query", "reply", "model", "model", "model"],
        "sender": [1, 4, down, 0, down, down, down],
        "receiver": [up, up, 0, up, 0, 1, 4],
        "header_bytes": [HEADER_BYTES] * 7,
        "payload_bytes": [P, P, 0, P, P, P, P],
    }


@settings(deadline=None)
@given(st.permutations(CHECK))
def test_the_order_of_arrival_leaves_no_trace(messages):
    assert columns(book(messages)) == columns(book(CHECK))


def test_checks_stay_in_the_order_in_which_they_were_settled():
    ledger = Ledger()
    for round in (1, 2):
        ledger.add(round, MessageType.MODEL, [3, 0], P)
        ledger.add(round, MessageType.VIOLATION, [3, 0], P)
        ledger.settle()
    assert columns(ledger)["round"] == [1, 1, 1, 1, 2, 2, 2, 2]
    assert columns(ledger)["type"] == ["violation", "violation", "model", "model"] * 2


def test_rows_are_the_columns_message_by_message():
    assert book(CHECK[2:4]).rows() == [
        {
            "round": 7,
            "type": "query",
            "sender": COORDINATOR,
            "receiver": 0,
            "header_bytes": HEADER_BYTES,
            "payload_bytes": 0,
        },
        {
            "round": 7,
            "type": "reply",
            "sender": 0,
            "receiver": COORDINATOR,
            "header_bytes": HEADER_BYTES,
            "payload_bytes": P,
        },
    ]


VIEWS = {
    "total": 6 * P + 7 * HEADER_BYTES,
    "models_only": 6 * P,
    "uplink": 3 * (P + HEADER_BYTES),
    "messages": 7,
}


def test_every_view_has_an_expectation():
    assert VIEWS.keys() == set(View)


@pytest.mark.parametrize(("view", "expected"), VIEWS.items())
def test_a_view_counts(view, expected):
    assert book(CHECK).total(view) == expected


def test_the_default_view_is_the_total():
    assert book(CHECK).total() == VIEWS["total"]


def test_an_unknown_view_names_the_known_ones():
    with pytest.raises(
        ValueError, match="'bytes' is unknown; allowed: total, models_only, uplink, messages"
    ):
        Ledger().total("bytes")


@pytest.mark.parametrize("view", View)
def test_what_is_not_settled_is_not_counted(view):
    ledger = Ledger()
    ledger.add(1, MessageType.REPLY, range(3), P)
    assert (ledger.total(view), len(ledger), ledger.rows()) == (0, 0, [])
    ledger.settle()
    assert len(ledger) == 3
    ledger.settle()
    assert len(ledger) == 3


def test_a_book_goes_on_from_what_was_written_down_and_forgets_its_own_pages():
    first, again = book(CHECK[:3]), book(CHECK[5:])
    again.load(json.loads(json.dumps({k: list(v) for k, v in first.state().items()})))
    assert again.rows() == first.rows()
    for ledger in (first, again):
        ledger.add(8, MessageType.MODEL, [2], P)
        ledger.settle()
    assert again.rows() == first.rows()
    assert len(again) == 4


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (999.4, "999 B"),
        (999.5, "1 kB"),
        (1000, "1 kB"),
        (12_345, "12.3 kB"),
        (1_500_000, "1.5 MB"),
        (2e9, "2 GB"),
        (12_345e12, "1.234e+04 TB"),
        (-2_000, "-2 kB"),
    ],
)
def test_bytes_are_read_in_a_unit_that_suits_them(number, text):
    assert readable_bytes(number) == text
