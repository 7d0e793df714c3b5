"""The fleet's figures on this machine's loopback, over TLS.

    PYTHONPATH=. python benchmarks/fleet.py [averaging resolution query thousand quiet]

Each figure is printed as one JSON line beside the number it should reach, with the load of the
machine while it was measured: these are times of many processes, and a busy machine shows.
"""

import asyncio
import multiprocessing
import resource
import statistics
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import nn

from benchmarks.figures import run, show
from dynavg import data
from dynavg.engines.fleet.broker import BROKER_FILE, broker, free_port
from dynavg.engines.fleet.config import FleetConfig
from dynavg.engines.fleet.control import is_note
from dynavg.engines.fleet.folder import init
from dynavg.engines.fleet.holding import Holding
from dynavg.engines.fleet.hook import Learner, LearnerConfig, learner_config
from dynavg.engines.fleet.office import Office
from dynavg.engines.fleet.post import Post
from dynavg.engines.fleet.processes import ended, start_learners
from dynavg.engines.fleet.subjects import down, up
from dynavg.engines.fleet.task import ModelTask, Task, TaskSource
from dynavg.experiments.problems import drift
from dynavg.fleet import init_from_spec
from dynavg.learning.program import Learning
from dynavg.operators import Dynamic
from dynavg.protocol.messages import COORDINATOR, MessageType
from dynavg.protocol.wire import Codec, Message, decode, encode

P = 1_200_000
FORKED = multiprocessing.get_context("forkserver")


def net():
    return nn.Linear(P - 1, 1)


def model_task(delta=1.0):
    return ModelTask(net, Dynamic(delta, counter="off"))


@contextmanager
def fleet_of(learners, factory, arguments=None, hosts=None, **settings):
    with tempfile.TemporaryDirectory() as folder:
        place, port = Path(folder) / "fleet", free_port()
        source = TaskSource(factory=factory, arguments=arguments or {})
        config = FleetConfig(learners=learners, **settings)
        fleet = init(place, config, source, port=port, hosts=hosts)
        with broker(place / BROKER_FILE, port):
            yield place, fleet


def averaging():
    """Bytes read per second by the coordinator's mean, against those of a plain copy."""
    torch.set_num_threads(1)
    holding = Holding(torch.zeros(P))
    holding.models = {id: torch.randn(P) for id in range(32)}
    target = torch.empty(32 * P)
    source = torch.randn(32 * P)
    means, copies = [], []
    for _ in range(5):
        start = time.perf_counter()
        holding.mean(range(32), [1.0] * 32)
        means.append(33 * 4 * P / (time.perf_counter() - start))
        start = time.perf_counter()
        target.copy_(source)
        copies.append(2 * 32 * 4 * P / (time.perf_counter() - start))
    mean, copy = max(means) / 1e9, max(copies) / 1e9
    show("averaging", "share >= 0.5", mean_GB_s=mean, copy_GB_s=copy, share=mean / copy)


def sit(folder, id, rounds, results):
    """A learner that does nothing; number 0 violates `rounds` times and takes the time."""
    torch.set_num_threads(1)
    module = net()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    learner = Learner(learner_config(folder, id), module, optimizer)
    with learner:
        seat = learner.seat
        step = torch.full((P,), (1.5 / P) ** 0.5)
        while id or rounds:
            seat.body.install(seat.reference, None)
            if id == 0:
                time.sleep(0.3)
                seat.body.install(seat.reference + step, None)
                start = time.perf_counter()
                learner._send(seat.trained(0.0, 1, None))
                while seat.machine.waiting:
                    learner._hear(5.0)
                results.send(time.perf_counter() - start)
                rounds -= 1
            else:
                learner._hear(1.0)


def resolution(learners=10, rounds=15):
    """A lone violation of a 4.8 MB model that one partner balances, among idle learners."""
    with fleet_of(learners, "benchmarks.fleet:model_task", chunk_bytes=1 << 20) as (place, fleet):
        office = Office(fleet.config, model_task())
        thread = threading.Thread(target=lambda: asyncio.run(office.run()))
        thread.start()
        ours, theirs = FORKED.Pipe()
        processes = [
            FORKED.Process(target=sit, args=(str(place), id, rounds, theirs), daemon=True)
            for id in range(learners)
        ]
        with ended(processes):
            for process in processes[::-1]:
                process.start()
            times = [ours.recv() if ours.poll(120) else float("nan") for _ in range(rounds)]
            while 0 in office.machine.members:  # its goodbye is counted, too
                time.sleep(0.05)
            office.stop()
            thread.join()
        book, traffic = office.book, office.post.traffic
        crossed = traffic.sent_bytes + traffic.received_bytes
        told = book.ledger.total() + book.handed_out.total() + office.carrier.small_talk
    show(
        "resolution",
        "median <= 0.150 s",
        median_s=statistics.median(times),
        best_s=min(times),
        resolved_by_office_s=statistics.median(office.minutes.resolution_seconds),
        balancing_sets=sorted({check.balancing_set for check in book.checks}),
    )
    show(
        "overhead",
        "application bytes == counted bytes; share <= 0.01",
        application_bytes=crossed,
        counted_bytes=told,
        wire_bytes=office.post.wire_bytes,
        share=office.post.wire_bytes / crossed - 1,
    )


def thousand(learners=1000, processes=2, rounds=20):
    """Many learners, many per process: what the coordinator needs."""
    blocks = [
        range(learners * i // processes, learners * (i + 1) // processes) for i in range(processes)
    ]
    spec = drift(
        [{"kind": "dynamic", "delta": 0.2, "every": 10}],
        rate=0.1,
        data={"kind": "drift", "d": 8},
        model_settings={"d": 8},
        learners=learners,
        rounds=rounds,
    )
    slow = {"report_seconds": 30.0, "collect_seconds": 120.0, "answer_seconds": 300.0}
    with tempfile.TemporaryDirectory() as folder:
        place, port = Path(folder) / "fleet", free_port()
        config = FleetConfig(learners=learners, **slow)
        fleet = init_from_spec(place, spec, config, port=port, hosts=blocks)
        with broker(place / BROKER_FILE, port):
            before = resource.getrusage(resource.RUSAGE_SELF)
            start = time.monotonic()
            office = Office(fleet.config, fleet.task.make())
            with ended([start_learners(place, block) for block in blocks]):
                asyncio.run(asyncio.wait_for(office.run(), 500))
            seconds = time.monotonic() - start
            after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    show(
        "thousand",
        "cores < 1, memory < 2 GB",
        learners=learners,
        cores=cpu / seconds,
        seconds=seconds,
        memory_GB=after.ru_maxrss / 1e6,
        checks=len(office.book.checks),
        megabytes=office.book.ledger.total() / 1e6,
    )


def quiet(seconds=600):
    """What a learner with nothing to say costs; the idle connection, told by the kernel."""
    with fleet_of(1, "benchmarks.fleet:model_task") as (_, fleet):
        office = Office(fleet.config, ModelTask(lambda: nn.Linear(2, 1), Dynamic(1e9)))
        thread = threading.Thread(target=lambda: asyncio.run(office.run()))
        thread.start()
        module = nn.Linear(2, 1)
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        learner = Learner(LearnerConfig(fleet.config, 0, Dynamic(1e9)), module, optimizer)
        with learner:
            post = learner._line._post
            time.sleep(2)
            post.note_wire_bytes()
            before, start = post.wire_bytes, time.monotonic()
            while time.monotonic() - start < seconds:
                learner._stepped()
                time.sleep(0.05)
            post.note_wire_bytes()
            rate = (post.wire_bytes - before) / (time.monotonic() - start)
        office.stop()
        thread.join()
    show("quiet", "<= 3 B/s", bytes_per_s=rate, seconds=seconds)


def heavy_task(learners=1, rounds=None):
    """Batches that take a while."""

    def make():
        return nn.Sequential(
            nn.Linear(50, 1500), nn.ReLU(), nn.Linear(1500, 600), nn.Linear(600, 1)
        )

    learning = Learning(
        nn.functional.binary_cross_entropy_with_logits, lambda p: torch.optim.SGD(p, lr=0.01)
    )
    return Task(make, learning, data.drift(learners, 200, d=50), Dynamic(1e9), rounds)


def query(asked=40):
    """A busy learner's answer, in seconds, beside the time of a batch."""

    async def ask(fleet, start):
        config, came = fleet.config, asyncio.Queue()
        post = Post(config, "coordinator", 1 << 26, lambda _, d: came.put_nowait(d), lambda: None)
        await post.open([up(config, "*")])
        await asyncio.wait_for(came.get(), 60)
        facts = {"run": config.run_number, "signature": start.layout.signature}
        number, latencies, rounds = time.time_ns(), [], []

        def model(i):
            payload = start.vector.numpy().tobytes()
            return encode(
                Message(
                    MessageType.MODEL,
                    COORDINATOR,
                    sequence=number + i,
                    resolution=i,
                    as_reference=not i,
                    codec=Codec.FLOAT32,
                    payload=payload,
                    **facts,
                )
            )

        await post.send(down(config, 0), model(0))
        await asyncio.sleep(1)
        for i in range(1, asked + 1):
            message = Message(
                MessageType.QUERY, COORDINATOR, sequence=number + 2 * i, resolution=i, **facts
            )
            begun = time.perf_counter()
            await post.send(down(config, 0), encode(message))
            while is_note(data := await asyncio.wait_for(came.get(), 20)):
                pass
            latencies.append(time.perf_counter() - begun)
            rounds.append((time.perf_counter(), decode(data).round))
            await post.send(down(config, 0), model(2 * i + 1))
            await asyncio.sleep(0.11)
        await post.close()
        (t0, r0), (t1, r1) = rounds[0], rounds[-1]
        return latencies, (t1 - t0) / (r1 - r0)

    with (
        fleet_of(1, "benchmarks.fleet:heavy_task", chunk_bytes=1 << 20) as (place, fleet),
        ended([start_learners(place, range(1))]),
    ):
        latencies, batch = asyncio.run(ask(fleet, heavy_task().start()))
    show(
        "query",
        "<= batch + 0.020 s",
        median_s=statistics.median(latencies),
        p90_s=sorted(latencies)[int(0.9 * len(latencies))],
        batch_s=batch,
    )


if __name__ == "__main__":
    run((averaging, resolution, query, thousand, quiet))
