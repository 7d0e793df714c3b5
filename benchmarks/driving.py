"""What deep driving costs here, and whether its roads tell good models from bad ones.

    PYTHONPATH=. python benchmarks/driving.py [recorder camera expert careless little much]

Each figure is printed as one JSON line beside the number it should reach. `little` takes minutes,
`much` as long as two runs of E7 at full scale; both train as E7's serial run does. L_dd compares
the models of one part with each other, the expert among them.
"""

import time
from functools import partial

import cv2
import numpy as np
import torch
from torch.nn.functional import mse_loss

import dynavg
from benchmarks.figures import run, show
from dynavg import driving
from dynavg.driving.ride import Ride
from dynavg.models import driving_net

STARTS = driving.starts(driving.TRACKS, ("noon", "evening"), places=2)
LEARNERS, BATCH, ROUNDS = 10, 10, 2500
ALL = LEARNERS * BATCH * ROUNDS  # samples that the paper's serial learner sees
SECONDS = 15.0
"""In which a car that does not look leaves the road: no straight takes longer."""


def recorder():
    """The paper's amount: drivers drive, then the camera takes their pictures."""
    start = time.perf_counter()
    recording = driving.record()
    driven = time.perf_counter() - start
    pictures = recording.pictures()
    seconds = time.perf_counter() - start
    show(
        "recorder",
        "48,000 pictures, seconds < 120",
        pictures=len(pictures),
        seconds=seconds,
        of_them_driving_s=driven,
        memory_GB=pictures.nbytes / 1e9,
    )


def camera(pictures=2000):
    """Whole pictures and crops per second on one thread, on the plainest and the richest day."""
    cv2.setNumThreads(1)
    road = driving.track("training")
    poses = [road.pose(road.length * k / pictures) for k in range(pictures)]
    for day in ("noon", "rough"):
        taken = driving.Camera(road, driving.day(day))
        rates = {}
        for what, take in (("frames", taken.frame), ("crops", taken.crop)):
            start = time.perf_counter()
            for tick, pose in enumerate(poses):
                take(pose, tick)
            rates[f"{what}_per_s"] = pictures / (time.perf_counter() - start)
        show("camera", "about 2,700 frames/s on one thread", day=day, **rates)


def expert():
    """Two laps on every track, and how much faster than the clock the best driver drives."""
    for name in driving.TRACKS:
        ride = Ride.from_start(driving.track(name), 0.0)
        driver = driving.Driver(driving.habits("expert"), np.random.default_rng(0))
        start = time.perf_counter()
        while not ride.over:
            ride.step(driver.steer(ride))
        seconds = time.perf_counter() - start
        show(
            "expert",
            "finished, no crossings",
            track=name,
            outcome=ride.outcome.value,
            crossings=ride.crossings,
            t=ride.seconds,
            ticks_per_s=ride.ticks / seconds,
        )


def careless():
    """Constant steering, and networks that nobody trained."""
    constants = [k / 10 for k in range(-10, 11)]
    longest = 0.0
    for steering in constants:
        rides = driving.drive_starts(lambda _, own, s=steering: [s] * len(own), STARTS)
        longest = max(longest, *(ride.seconds for ride in rides))
    wanted = f"longest <= {SECONDS} s"
    show("constant steering", wanted, steerings=len(constants), longest_s=longest)
    networks = [untrained(seed) for seed in range(10)]
    rides = [ride for network in networks for ride in driving.drive_starts(network, STARTS)]
    seconds = [ride.seconds for ride in rides]
    show("random networks", wanted, networks=len(networks), longest_s=max(seconds))


def untrained(seed):
    torch.manual_seed(seed)
    return driving_net()


def learning(rounds, seed):
    """What `simulate` and `serial` take; the recordings are those of E7 at full scale."""
    return {
        "model": driving_net,
        "loss": mse_loss,
        "optimizer": lambda parameters: torch.optim.SGD(parameters, lr=0.1),
        "streams": driving.cars(LEARNERS, BATCH, seed),
        "rounds": rounds,
        "seed": seed,
        "shard": "fused",
    }


def trained(rounds, seed=0):
    """One learner that has seen all cars' samples of so many rounds."""
    return dynavg.serial(**learning(rounds, seed)).model()


def judged(models):
    """A line for each of the models, by name, with what is wanted of it and how to make it."""
    rides = {"expert": driving.drive_starts(driving.driver_steers("expert"), STARTS)}
    wanted = {"expert": "finished everywhere"}
    for name, (want, make) in models.items():
        made = make()
        for number, model in enumerate(made if isinstance(made, list) else [made]):
            rides[f"{name}\n{number}"] = driving.drive_starts(model, STARTS)
        wanted[name] = want
    scores = driving.scores(rides)
    for name, want in wanted.items():
        own = [label for label in rides if label.partition("\n")[0] == name]
        score = driving.pooled([scores[label] for label in own])
        driven = [ride for label in own for ride in rides[label]]
        show(
            name,
            want,
            L_dd=score.loss,
            spread=score.spread,
            rides_per_track=len(driven) // len(driving.TRACKS),
            finished={
                track: sum(ride.finished for ride in driven if ride.start.track == track)
                for track in driving.TRACKS
            },
            longest_s=max(ride.seconds for ride in driven),
        )


LITTLE = {
    "untrained": (f"longest <= {SECONDS} s", partial(untrained, 0)),
    **{
        f"5 % of the data, seed {seed}": (
            "L_dd over 0.1 above serial's; none finished on narrow",
            partial(trained, ROUNDS // 20, seed),
        )
        for seed in (2, 1, 0)  # 0 last: its recordings serve what follows
    },
    "a fifth of the data": ("L_dd below 5 %'s", partial(trained, ROUNDS // 5)),
}


def little():
    """From no training to a fifth of what the serial learner sees."""
    judged(LITTLE)


def much():
    """The same beside all of it, and beside ten cars that do not speak, each with a tenth."""
    judged(
        LITTLE
        | {
            f"serial, {ALL:,} samples": (
                "L_dd least but for the expert's",
                partial(trained, ROUNDS),
            ),
            "without synchronisation": ("L_dd over 0.1 above serial's", alone),
        }
    )


def alone():
    result = dynavg.simulate(**learning(ROUNDS, 0), operator=dynavg.NoSync())
    return list(result.models())


if __name__ == "__main__":
    run((recorder, camera, expert, careless, little, much))
