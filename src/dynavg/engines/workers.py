"""Worker threads with one intra-op thread each: how a simulation uses all cores.

Two threads that train a learner each are faster than one learner trained with two threads. Which
thread does a piece of work changes no bit of it.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch

__all__ = ["Workers", "available_workers"]

Item = TypeVar("Item")
Made = TypeVar("Made")


def available_workers() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Workers:
    """A pool of such threads; open it with `Workers.started`."""

    def __init__(self, pool: ThreadPoolExecutor, count: int) -> None:
        self._pool = pool
        self.count = count

    @classmethod
    @contextmanager
    def started(cls, count: int) -> Iterator["Workers"]:
        """Start `count` threads; afterwards the caller's thread count is what it was."""
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        pool = ThreadPoolExecutor(
            count, "dynavg-worker", initializer=torch.set_num_threads, initargs=(1,)
        )
        try:
            yield cls(pool, count)
        finally:
            pool.shutdown(cancel_futures=True)  # Ctrl-C may leave work that nobody waits for
            torch.set_num_threads(before)

    def map(self, work: Callable[[Item], Made], items: Iterable[Item]) -> list[Made]:
        """`work` on each item, in the items' order; the first failure is raised."""
        futures = [self._pool.submit(work, item) for item in items]
        try:
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()

    def parts(self, length: int, unit: int) -> list[slice]:
        """`length` entries in one slice per worker, cut at multiples of `unit`."""
        step = -(-length // (self.count * unit)) * unit
        return [slice(start, min(start + step, length)) for start in range(0, length, step)]
