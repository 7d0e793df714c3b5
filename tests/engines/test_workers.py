"""Worker threads: results in order, the first failure raised, the caller's threads restored."""

import threading
import time

import pytest
import torch

from dynavg.engines.averaging import Averaging
from dynavg.engines.workers import Workers


@pytest.mark.parametrize("count", [1, 2, 4])
def test_results_come_in_the_items_order(count):
    def late_first(item):
        time.sleep(0.02 if item == 0 else 0)
        return item * item

    with Workers.started(count) as workers:
        assert workers.map(late_first, range(9)) == [item * item for item in range(9)]
        assert workers.map(late_first, []) == []


def test_the_first_failing_item_is_raised_even_if_another_failed_earlier():
    second_failed = threading.Event()

    def fail(item):
        if item == 0:
            assert second_failed.wait(5)
            raise KeyError("first")
        second_failed.set()
        raise ValueError("second")

    with Workers.started(2) as workers, pytest.raises(KeyError, match="first"):
        workers.map(fail, range(2))


def test_what_has_not_begun_when_an_item_fails_is_left_out():
    begun = []

    def fail(item):
        begun.append(item)
        time.sleep(0.01)
        raise ValueError(item)

    with Workers.started(1) as workers, pytest.raises(ValueError, match="0"):
        workers.map(fail, range(100))
    assert len(begun) < 5


def test_a_pool_serves_on_after_a_failure():
    with Workers.started(2) as workers:
        with pytest.raises(ZeroDivisionError):
            workers.map(lambda item: 1 // item, [1, 0, 1])
        assert workers.map(lambda item: item, [1, 2]) == [1, 2]


def test_workers_have_one_thread_each_and_the_callers_count_comes_back():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with Workers.started(2) as workers:
            assert workers.map(lambda _: torch.get_num_threads(), range(4)) == [1] * 4
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
        with pytest.raises(ZeroDivisionError), Workers.started(2) as workers:
            workers.map(lambda item: 1 // item, [0])
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("length", [1, 4, 5, 8, 9, 100])
@pytest.mark.parametrize("count", [1, 3])
def test_parts_cover_every_entry_once_and_are_cut_at_whole_units(count, length):
    parts = Workers(None, count).parts(length, unit=4)
    assert [i for part in parts for i in range(length)[part]] == list(range(length))
    assert len(parts) <= count
    assert all(part.start % 4 == 0 for part in parts)


@pytest.mark.parametrize("count", [1, 2])
def test_an_average_that_grows_equals_the_average_of_all(count):
    models = list(torch.randn(5, 40_000, generator=torch.Generator().manual_seed(0)))
    weights = [1.0, 2.0, 3.0, 4.0, 5.0]
    with Workers.started(count) as workers:
        growing = Averaging(workers)
        for size in (2, 3, 5):
            average = growing.extend(1, tuple(range(size)), models[:size], weights[:size])
        assert torch.equal(average, Averaging(workers).mean(models, weights))
        # Another resolution, and other members: nothing of the old sum is left.
        assert torch.equal(growing.extend(2, (3,), models[3:4], [4.0]), models[3])
        assert torch.equal(growing.extend(2, (4,), models[4:], [5.0]), models[4])
    expected = sum(w * m.double() for w, m in zip(weights, models, strict=True)) / 15
    torch.testing.assert_close(average.double(), expected, rtol=0, atol=1e-6)
