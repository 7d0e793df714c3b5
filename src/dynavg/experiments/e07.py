"""E7: deep driving.

Ten cars learn to steer from a front camera, each from recordings of a driver of its own, 25,000
samples each. Then the models drive: from twelve starts on three tracks, one of them never recorded,
at noon and in the evening. L_dd is the mean over the starts, and its spread the standard deviation
between them. What drives is the average of the cars' models; without synchronisation, each car's
own. Besides the published Δ a wider grid is run. A run's folder holds a film of its first ride,
`drive.gif`, and the average as `model.safetensors`, for `dynavg drive`. The environment stands in
for the paper's simulator.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dynavg import driving
from dynavg.driving.car import TICK
from dynavg.engines.result import Result
from dynavg.experiments.claims import Claim, Finding, Scale, UndecidedError, cheapest
from dynavg.experiments.experiment import Experiment
from dynavg.experiments.problems import sgd
from dynavg.experiments.spec import RunSpec, Settings, Spec
from dynavg.protocol.ledger import readable_bytes
from dynavg.report.charts import Chart, Drawing, Series, causes, over_time, set_sizes
from dynavg.report.points import Point, chosen, curves_of

__all__ = ["EXPERIMENT"]

PUBLISHED = (0.01, 0.05, 0.1, 0.3)
WIDER = (1.0, 0.003, 3.0)
ALIKE = 0.02
"""Of L_dd, which lies between 0 and 1: no worse is at most this much above."""
VISIBLY = 0.1
STARTS = tuple(driving.starts(("training", "narrow", "heldout"), ("noon", "evening"), places=2))
FILMED = 0
"""The start whose ride is filmed."""
SHEET, FILM = "drives.jpg", "drive.gif"
SIZES: dict[Scale, dict[str, int]] = {
    "smoke": {"learners": 2, "rounds": 8},
    "quick": {"learners": 4, "rounds": 300},
    "full": {"learners": 10, "rounds": 2500},
}
RECORDED: dict[Scale, Settings] = {
    "smoke": {"pictures": 20, "tracks": ["narrow"], "days": 1},
    "quick": {"pictures": 600},
    "full": {},
}


def plan(scale: Scale) -> list[Spec]:
    """In the order in which the runs tell most, since at full scale each takes minutes."""
    operators: list[Settings | str] = [
        {"kind": "periodic", "every": 1},
        {"kind": "dynamic", "delta": 0.05, "every": 1},
        "serial",
        {"kind": "periodic", "every": 8},
        {"kind": "dynamic", "delta": 0.1, "every": 1},
        "nosync",
    ]
    if scale == "full":
        operators += [
            {"kind": "dynamic", "delta": [0.3, 0.01], "every": 1},
            {"kind": "periodic", "every": [4, 2]},
            {"kind": "dynamic", "delta": WIDER, "every": 1},
        ]
    return [
        Spec(
            title="deep driving",
            data={
                "kind": "own",
                "factory": "dynavg.driving.cars:cars",
                "arguments": RECORDED[scale],
            },
            model="driving_net",
            loss="mse_loss",
            optimizer=sgd(0.1),
            operators=operators,
            **SIZES[scale],
        )
    ]


def drive(spec: RunSpec, result: Result, folder: Path) -> dict[str, Any]:
    """Let what was learned drive; the facts of every ride, by model, go into the summary."""
    alone = spec.operator["kind"] == "nosync"
    models = list(result.models()) if alone else [result.model()]
    rides = [driving.drive_starts(model, STARTS) for model in models]
    driving.write_picture(folder / SHEET, driving.sheet(rides[0]))
    driving.write_gif(folder / FILM, driving.film(rides[0][FILMED], frames=80), TICK)
    return {"rides": [[ride.facts() for ride in own] for own in rides]}


def scored(points: Sequence[Point]) -> dict[str, driving.Score]:
    """The score of each point that drove, of all its models and seeds; c_max and t_max over all."""
    rides = {
        f"{point.name}\n{seed}.{number}": [driving.Driven.of(facts) for facts in own]
        for point in points
        if not point.diverged
        for seed, run in enumerate(point.runs)
        for number, own in enumerate(run.summary["rides"])
    }
    each = driving.scores(rides) if rides else {}
    names = dict.fromkeys(label.partition("\n")[0] for label in each)
    return {
        name: driving.pooled([own for label, own in each.items() if label.startswith(name + "\n")])
        for name in names
    }


def _told(point: Point, scores: dict[str, driving.Score]) -> str:
    return f"{point.name}: {scores[point.name].loss:.3f}"


def each_is_beaten(points: Sequence[Point]) -> Finding:
    """For each periodic run the dynamic one with the fewest bytes whose L_dd is no worse."""
    scores = scored(points)
    sound = [point for point in points if point.name in scores]
    periodic, dynamic = chosen(sound, kind="periodic"), chosen(sound, kind="dynamic")
    if not periodic or not dynamic:
        raise UndecidedError("there are no periodic or no dynamic runs to compare")
    lines, holds = [], True
    for point in periodic:
        most = scores[point.name].loss + ALIKE
        best = cheapest(other for other in dynamic if scores[other.name].loss <= most)
        holds &= best is not None and best.bytes < point.bytes
        told = "no dynamic as good"
        if best is not None:
            less = f"{readable_bytes(best.bytes)} in place of {readable_bytes(point.bytes)}"
            told = f"{_told(best, scores)} with {less}"
        lines.append(f"L_dd {_told(point, scores)}; {told}")
    return Finding(holds, "; ".join(lines))


def front_loaded(points: Sequence[Point]) -> Finding:
    """The share of bytes sent in the first half, of dynamic runs that do not send all the time."""
    every = max((point.bytes for point in chosen(points, kind="periodic")), default=0.0)
    shares = {}
    for point in chosen(points, kind="dynamic"):
        if not point.diverged and 0 < point.bytes < 0.95 * every:
            sent = curves_of(point.runs[0]).bytes
            shares[point.name] = float(sent[len(sent) // 2 - 1] / sent[-1])
    if not shares:
        raise UndecidedError("no dynamic run sent less than the periodic ones, but something")
    told = ", ".join(f"{name}: {share:.0%}" for name, share in shares.items())
    return Finding(min(shares.values()) > 0.5, f"sent in the first half: {told}")


def neither_is_best(points: Sequence[Point]) -> Finding:
    """The best L_dd of all synchronised runs, against b = 1 and Δ = 0.01."""
    scores = scored(points)
    sound = [point for point in points if point.name in scores]
    synchronised = chosen(sound, kind="periodic") + chosen(sound, kind="dynamic")
    most = chosen(sound, kind="periodic", every=1) + chosen(sound, kind="dynamic", delta=0.01)
    others = [point for point in synchronised if point not in most]
    if len(most) < 2 or not others:
        raise UndecidedError("b = 1, Δ = 0.01 and others are wanted")
    best = min(others, key=lambda point: scores[point.name].loss)
    told = ", ".join(_told(point, scores) for point in [best, *most])
    least = min(scores[point.name].loss for point in most)
    return Finding(scores[best.name].loss < least - ALIKE, f"L_dd {told}")


def alone_is_worse(points: Sequence[Point]) -> Finding:
    """Cars that do not speak, against the serial model."""
    scores = scored(points)
    sound = [point for point in points if point.name in scores]
    pair = chosen(sound, kind="nosync") + chosen(sound, kind="serial")
    if len(pair) != 2:
        raise UndecidedError("a nosync and a serial run are wanted")
    alone, serial = (scores[point.name] for point in pair)
    told = ", ".join(
        f"{_told(point, scores)} (finished {scores[point.name].finished} of "
        f"{len(scores[point.name].per_start)})"
        for point in pair
    )
    return Finding(alone.loss > serial.loss + VISIBLY, f"L_dd {told}")


def driven_front(points: Sequence[Point]) -> Sequence[Drawing]:
    """L_dd against bytes, with the published Δ marked."""
    scores = scored(points)
    sound = [point for point in points if point.name in scores]
    series = []
    for colour, kind in enumerate(dict.fromkeys(point.kind for point in sound)):
        own = sorted(chosen(sound, kind=kind), key=lambda point: point.bytes)
        series.append(_series(kind, own, scores, colour, texts=True))
        theirs = [p for p in own if p.spec["operator"].get("delta") in PUBLISHED]
        if theirs and len(theirs) < len(own):
            series.append(_series("Δ of the paper", theirs, scores, colour, texts=False))
    title = "L_dd against communication (less is better on both axes)"
    chart = Chart("driving", title, "bytes sent", "L_dd", tuple(series), x_unit="bytes")
    return [chart] if series else []


def _series(
    name: str, own: Sequence[Point], scores: dict[str, driving.Score], colour: int, *, texts: bool
) -> Series:
    return Series(
        name,
        np.array([point.bytes for point in own]),
        np.array([scores[point.name].loss for point in own]),
        colour,
        kind="points",
        joined=texts and len(own) > 1,
        hollow=not texts,
        texts=tuple(point.name for point in own) if texts else (),
    )


def album(points: Sequence[Point]) -> Sequence[tuple[str, Path]]:
    """What each model saw last, and where it drove."""
    scores, shown = scored(points), []
    for point in points:
        if (score := scores.get(point.name)) is not None:
            finished = f"finished {score.finished} of {len(score.per_start)}"
            caption = f"{point.name}: L_dd {score.loss:.3f} ± {score.spread:.3f}, {finished}"
            shown.append((caption, point.runs[0].folder / SHEET))
    return shown


EXPERIMENT = Experiment(
    id="E7",
    title="Deep driving",
    shows=__doc__,
    plan=plan,
    claims=(
        Claim("E7.1", "each periodic run is beaten by a dynamic one", f"fewer bytes, and L_dd at "
              f"most {ALIKE} higher", each_is_beaten, decided_at="full"),
        Claim("E7.2", "communication is front-loaded", "over half of the bytes in the first half, "
              "for every dynamic run that sends under 95 % of the busiest periodic one's",
              front_loaded),
        Claim("E7.3", "b = 1 and Δ = 0.01 are not the best", f"another run's L_dd is over {ALIKE} "
              "lower than both", neither_is_best, decided_at="full"),
        Claim("E7.4", "without synchronisation cars drive visibly worse than the serial model",
              f"L_dd over {VISIBLY} higher", alone_is_worse, decided_at="full"),
    ),
    pictures=(driven_front, over_time, set_sizes, causes),
    also=drive,
    album=album,
)  # fmt: skip
