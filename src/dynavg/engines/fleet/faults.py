"""Faults on purpose: a coordinator that dies right after an event or an instruction."""

import os
import signal

__all__ = ["Faults"]


class Faults:
    """`plan` is "Name:n": the n-th time that `passed("Name")` is called is the process's last.

    >>> Faults(None).passed("Send")
    """

    def __init__(self, plan: str | None) -> None:
        self._name, _, count = (plan or ":0").partition(":")
        self._left = int(count)

    def passed(self, name: str) -> None:
        """This has just been done."""
        if name == self._name:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
