"""What a result makes of its numbers: seconds on a link, and notes on a poor threshold."""

import pytest

from dynavg import Dynamic, FedAvg, NoSync, Periodic
from dynavg.protocol.wire import HEADER_BYTES
from tests.engines.problems import regression, run, walking


def test_transfer_time_of_periodic_averaging():
    # A check: 3 replies, then 3 models. 2 phases; 3 checks.
    result = run(operator=Periodic(2))
    bits = 3 * 6 * (HEADER_BYTES + 16) * 8
    expected = bits / 1e6 + 3 * 2 * 0.25
    assert result.transfer_time(link="1 Mbit/s", latency="250 ms") == pytest.approx(expected)


def test_transfer_time_of_federated_averaging():
    # A check: a query, a reply, a model. 3 phases; 2 checks.
    result = run(operator=FedAvg(every=3, fraction=0.1))
    bits = 2 * (3 * HEADER_BYTES + 2 * 16) * 8
    expected = bits / 2e9 + 2 * 3 * 0.001
    assert result.transfer_time(link="2 Gbit/s", latency="1000 us") == pytest.approx(expected)


def test_transfer_time_of_dynamic_averaging():
    # Round 1: nobody. Round 2: learner 0 is 2 away, violates; the mean of it and the one that is
    # asked next, (2 + 0) / 2 = 1, is 1 away: balanced. Violation, query, reply, models: 4 phases.
    # Round 3: all violate: violations, models: 2 phases.
    steps = [[0, 2, 9], [0, 0, 9], [0, 0, 9]]
    result = walking(steps, Dynamic(delta=1.0, augmentation="random_one", counter="off"))
    assert result.history.checks["cause"].to_list() == [None, "balanced", "all violated"]
    bits = 8 * (11 * HEADER_BYTES + 10 * 4)  # 1 + 1 + 1 + 2 messages, then 3 + 3; one a query
    assert result.transfer_time("1 kbit/s", "2 s") == pytest.approx(bits / 1e3 + 6 * 2)


def test_a_run_without_messages_takes_no_time():
    assert run().transfer_time() == 0


@pytest.mark.parametrize("link", ["50", 50, "fast", "50 Mbps", "-5 Mbit/s", "", None, "0 Mbit/s"])
def test_a_link_is_a_number_and_a_known_unit(link):
    with pytest.raises(ValueError, match="link="):
        run().transfer_time(link=link)


def test_a_latency_is_a_time():
    with pytest.raises(ValueError, match=r"latency='40 Mbit/s'.*units: s, ms"):
        run().transfer_time(latency="40 Mbit/s")


def test_a_threshold_that_never_bites_is_noted_with_a_better_range():
    # Learners at 1, 2, 3 after round 1, at 2, 4, 6 after round 2: squared medians 4 and 16.
    result = walking([[1, 1], [2, 2], [3, 3]], Dynamic(delta=100.0))
    (note,) = result.notes
    assert "no check violated delta=100" in note
    assert "between 5.2 and 15 from" in note  # quantiles 0.1 and 0.9 of 4 and 16: 5.2 and 14.8
    assert note in repr(result)


def test_a_threshold_that_always_bites_is_noted():
    (note,) = walking([[1, 1], [2, 2], [3, 3]], Dynamic(delta=0.0)).notes
    assert "every check violated delta=0: a periodic protocol might have done as well" in note


def test_the_note_speaks_in_the_operators_distance():
    (note,) = walking([[1, 1], [2, 2], [3, 3]], Dynamic(delta=100.0, distance="norm")).notes
    assert "between 2.2 and 3.8 from" in note  # of 2 and 4: 2.2 and 3.8


def test_a_threshold_that_bites_now_and_then_is_not_noted():
    assert walking([[1, 1], [1, 1]], Dynamic(delta=2.0)).notes == ()
    assert run(operator=Periodic(2)).notes == ()
    assert run(operator=NoSync()).notes == ()


def test_a_suggested_threshold_bites_now_and_then():
    arguments = {"streams": regression(learners=4, rounds=40), "rounds": 40}
    never = run(operator=Dynamic(delta=1e6), **arguments)
    low, high = (float(word) for word in never.notes[0].split("between ")[1].split()[:3:2])
    checks = run(operator=Dynamic(delta=(low + high) / 2), **arguments).history.checks
    assert 0 < (checks["violations"] > 0).sum() < len(checks)
