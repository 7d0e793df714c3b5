"""Faults on purpose: a process that dies right after an event, an instruction, a batch, a message.

The coordinator passes the names of its events and instructions, a learner "Trained" after a batch
and its words about it, and "Heard" after a message and its answer.
"""

import os
import signal
from collections.abc import Mapping

__all__ = ["Faults"]


class Faults:
    """With the plan "Name:n" for this process, the n-th `passed("Name")` is its last.

    >>> Faults({"host-2": "Trained:100"}, "host-1").passed("Trained")
    """

    def __init__(self, plans: Mapping[str, str], process: str) -> None:
        self._name, _, count = plans.get(process, ":0").partition(":")
        self._left = int(count)

    def passed(self, name: str) -> None:
        """This has just been done."""
        if name == self._name:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
