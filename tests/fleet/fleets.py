"""Small fleets of real processes on loopback, for tests."""

import json
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

from dynavg.engines.fleet.broker import BROKER_FILE, broker, free_port
from dynavg.engines.fleet.config import FleetConfig
from dynavg.engines.fleet.gathering import gather, read_book
from dynavg.engines.fleet.processes import ended, start_coordinator, start_learners
from dynavg.experiments import problems
from dynavg.experiments.fleet_task import init, one_run, task_of

SWIFT = {
    "collect_seconds": 2.0,
    "answer_seconds": 3.0,
    "barrier_seconds": 5.0,
    "join_seconds": 20.0,
    "orphan_seconds": 20.0,
    "connect_seconds": 10.0,
    "report_seconds": 1.0,
    "silence_seconds": 6.0,
}


def small_spec(learners, rounds, seed=0, **operator):
    """Drifting data for a network of a few hundred numbers."""
    settings = {"kind": "dynamic", **operator}
    return problems.drift(
        [settings],
        rate=0.1,
        data={"kind": "drift", "d": 8},
        model_settings={"d": 8},
        learners=learners,
        rounds=rounds,
        seeds=(seed,),
    )


class SmallFleet:
    """A fleet in a folder: a broker, and processes that a test may start and kill."""

    def __init__(self, folder, stack, learners, task, tls, **settings):
        self.folder = folder
        self.port = free_port()
        self.spec = small_spec(**({"learners": learners} | task))
        config = FleetConfig(learners=learners, **(SWIFT | settings))
        self.fleet = init(folder, self.spec, config, port=self.port, tls=tls)
        self.config = self.fleet.config
        self.task = task_of(one_run(self.spec))
        self.processes = []
        self._read, self._lines = {}, []
        self._stack = stack
        self._broker = stack.enter_context(ExitStack())
        self._broker.enter_context(broker(folder / BROKER_FILE, self.port))
        stack.enter_context(ended(self.processes))

    def restart_broker(self, pause):
        self._broker.close()
        time.sleep(pause)
        self._broker.enter_context(broker(self.folder / BROKER_FILE, self.port))

    def set(self, **settings):
        """Change fleet.json for the processes that start from now on."""
        path = self.folder / "fleet.json"
        content = json.loads(path.read_text())
        content["config"] |= settings
        path.write_text(json.dumps(content))

    def coordinator(self):
        self.processes.append(start_coordinator(self.folder))
        return self.processes[-1]

    def learners(self, *blocks):
        started = [start_learners(self.folder, block) for block in blocks]
        self.processes += started
        return started

    def one_each(self):
        return self.learners(*(range(id, id + 1) for id in range(self.config.learners)))

    def book(self):
        return read_book(self.config)

    def result(self):
        return gather(self.config, self.task)

    def log(self):
        """All lines so far, each read once."""
        for path in self.folder.glob("*.log"):
            if path.stem == "broker":
                continue
            with path.open() as file:
                file.seek(self._read.get(path, 0))
                while (line := file.readline()).endswith("\n"):
                    self._read[path] = file.tell()
                    if line[0] == "{":
                        self._lines.append(json.loads(line))
        return self._lines

    def saw(self, name, learner=None, why=""):
        """The lines of all logs about this event, and this learner, with these words."""
        return [
            line
            for line in self.log()
            if line["event"] == name
            and learner in (None, line.get("learner"))
            and why in line.get("why", "")
        ]


@contextmanager
def small_fleet(folder, learners, task, tls=False, **settings):
    with ExitStack() as stack:
        yield SmallFleet(Path(folder) / "fleet", stack, learners, task, tls, **settings)


def join_all(processes, seconds=60.0):
    """All of them end by themselves; their exit codes."""
    deadline = time.monotonic() + seconds
    for process in processes:
        process.join(max(0.1, deadline - time.monotonic()))
    return [process.exitcode for process in processes]


def until(holds, seconds=20.0):
    """Wait until `holds()`; it looks at files that other processes write, so it must look often."""
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)
    return found
