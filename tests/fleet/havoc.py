"""Processes of a small fleet killed at moments that nobody has chosen, and started again."""

import os
import random
import signal
import time

from tests.fleet.fleets import until


def kill(process):
    os.kill(process.pid, signal.SIGKILL)
    process.join()


class Havoc:
    """Keeps a small fleet running, a process for each learner, and kills; `seed` draws whom and
    when.
    """

    def __init__(self, fleet, seed):
        self.fleet = fleet
        self.deaths = {"coordinator": 0, "learner": 0}
        self._draw = random.Random(seed)
        self._coordinator = fleet.coordinator()
        self._learners = fleet.one_each()

    @property
    def processes(self):
        return [self._coordinator, *self._learners]

    def kill_for(self, seconds, longest=1.5):
        """Every third victim is the coordinator; what it has written down before must stay."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(self._draw.uniform(0.0, longest))
            if self._draw.random() < 1 / 3:
                self._kill_coordinator()
            else:
                id = self._draw.randrange(len(self._learners))
                kill(self._learners[id])
                time.sleep(self._draw.uniform(0.0, 0.5))
                self._learners[id : id + 1] = self.fleet.learners(range(id, id + 1))
                self.deaths["learner"] += 1

    def _kill_coordinator(self):
        kill(self._coordinator)
        before = self.fleet.book()
        time.sleep(self._draw.uniform(0.0, 0.5))
        self._coordinator = self.fleet.coordinator()
        self.deaths["coordinator"] += 1
        after = self.fleet.book()
        assert after.checks[: len(before.checks)] == before.checks
        assert after.ledger.rows()[: len(before.ledger)] == before.ledger.rows()
        assert after.state is None or after.state["epoch"] >= (before.state or after.state)["epoch"]

    def calm(self, checks=5, seconds=60.0):
        """Until all learners are in, and so many more checks are closed."""
        everyone = tuple(range(len(self._learners)))
        until(
            lambda: tuple((self.fleet.book().state or {}).get("members", ())) == everyone, seconds
        )
        before = len(self.fleet.book().checks)
        until(lambda: len(self.fleet.book().checks) >= before + checks, seconds)
