"""Δ from a few short runs on a small share of the learners and rounds, as the paper advises.

A goal says of each Δ whether it is good enough, against periodic averaging with the same b. Loss
asks for the largest Δ that is, a budget of bytes for the smallest: the search goes that way by
factors until the answer changes, and halves the bracket on a logarithmic scale from there.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dynavg.experiments.running import run_all
from dynavg.experiments.spec import RunSpec, Settings, Spec
from dynavg.experiments.specfile import SpecError
from dynavg.records import Record
from dynavg.report.points import points_of

__all__ = ["Budget", "Goal", "Loss", "Trial", "Tuned", "goal_of", "tune", "tuned_path"]

STEP = 4.0
"""The factor between two Δ until the answer changes."""
CLOSE = 1.3
"""A bracket this narrow is narrow enough: results depend weakly on Δ."""
UNITS = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


@dataclass(frozen=True, slots=True)
class Trial:
    """A short run: its loss per learner, and the bytes that the whole run would come to."""

    delta: float
    loss: float
    bytes: float
    record: Record


@dataclass(frozen=True, slots=True)
class Loss:
    """The loss may be this share above that of periodic averaging; larger Δ are better."""

    above: float
    larger_is_better = True

    def met(self, trial: Trial, periodic: Trial) -> bool:
        """Whether it is good enough."""
        return trial.loss <= (1 + self.above) * periodic.loss

    def exhausted(self, trial: Trial, periodic: Trial) -> bool:
        """Whether a larger Δ changes nothing: nobody speaks."""
        return not trial.bytes

    def __str__(self) -> str:
        return f"loss at most {self.above:.1%} above periodic averaging's"


@dataclass(frozen=True, slots=True)
class Budget:
    """The whole run may send this many bytes; smaller Δ are better."""

    bytes: float
    larger_is_better = False

    def met(self, trial: Trial, periodic: Trial) -> bool:
        """Whether it is good enough."""
        return trial.bytes <= self.bytes

    def exhausted(self, trial: Trial, periodic: Trial) -> bool:
        """Whether a smaller Δ changes nothing: everybody speaks at every check."""
        return trial.bytes >= periodic.bytes

    def __str__(self) -> str:
        return f"at most {self.bytes:,.0f} bytes"


Goal = Loss | Budget


@dataclass(frozen=True, slots=True)
class Tuned:
    """The value found, the spec with it, and the short runs that led there."""

    delta: float
    spec: Spec
    trials: Sequence[Trial]
    periodic: Trial


def goal_of(target: str | None, budget: str | None) -> Goal:
    """The goal that a user names, by one of the two.

    >>> goal_of("loss=+5%", None), goal_of(None, "2GB")
    (Loss(above=0.05), Budget(bytes=2000000000.0))
    """
    if (target is None) == (budget is None):
        raise ValueError("name one goal: --target loss=+5%, or --budget 2GB")
    if target is not None:
        share = re.fullmatch(r"loss=\+?(\d+(?:\.\d+)?)%", target.replace(" ", ""))
        if share is None or not float(share[1]):
            raise ValueError(f"--target {target}: loss=+5% is wanted, or another share above 0")
        return Loss(float(share[1]) / 100)
    amount = re.fullmatch(r"(\d+(?:\.\d+)?)([kMGT]?B)", (budget or "").replace(" ", ""))
    if amount is None:
        raise ValueError(
            f"--budget {budget}: bytes such as 500MB are wanted, units {', '.join(UNITS)}"
        )
    return Budget(float(amount[1]) * UNITS[amount[2]])


def tuned_path(spec: Path) -> Path:
    """Where the spec with the value found goes: my.toml becomes my.tuned.toml."""
    return spec.with_name(f"{spec.stem}.tuned{spec.suffix}")


def tune(
    spec: Spec,
    goal: Goal,
    store: Path,
    *,
    learners: int | None = None,
    rounds: int | None = None,
    most: int = 12,
    tell: Callable[[Trial], object] = lambda _: None,
) -> Tuned:
    """Find Δ for the spec's dynamic operator, with at most that many short runs of it.

    The short runs have `learners` (default: a fifth of them, at least 4) and `rounds` (default: a
    fifth, at least 100), on a seed that the spec does not use.
    """
    if spec.grid:
        raise SpecError(f"tune wants one setting: the spec has a grid over {', '.join(spec.grid)}")
    dynamic = next((dict(one) for one in spec.operators if one["kind"] == "dynamic"), None)
    dynamic = dynamic or {"kind": "dynamic", "delta": 1.0}
    few = min(spec.learners, learners or max(4, spec.learners // 5))
    short = min(spec.rounds, rounds or max(100, spec.rounds // 5))
    scale = spec.learners * spec.rounds / (few * short)

    def tried(operator: Settings) -> Trial:
        run = _short(spec, operator, few, short)
        [(record, _)] = run_all([run], store, progress=False)
        [point] = points_of([record])
        trial = Trial(float(operator.get("delta", 0)), point.loss, point.bytes * scale, record)
        tell(trial)
        return trial

    every = {"every": dynamic["every"]} if isinstance(dynamic.get("every"), int) else {}
    periodic = tried({"kind": "periodic", **every})
    settings = dynamic | every
    trials: list[Trial] = []

    def good(delta: float) -> bool:
        trials.append(tried(settings | {"delta": delta}))
        return goal.met(trials[-1], periodic)

    def exhausted() -> bool:
        return goal.exhausted(trials[-1], periodic)

    found = _boundary(good, _start(dynamic["delta"]), goal.larger_is_better, most, exhausted)
    if found is None:
        tried_deltas = sorted(trial.delta for trial in trials)
        raise SpecError(
            f"no Δ from {tried_deltas[0]:.3g} to {tried_deltas[-1]:.3g} reaches {goal} in {few} "
            f"learners and {short} rounds; a looser goal, or more --learners and --rounds, may"
        )
    return Tuned(found, _with_delta(spec, dynamic, found), trials, periodic)


def _short(spec: Spec, operator: Settings, learners: int, rounds: int) -> RunSpec:
    shared = {name: getattr(spec, name) for name in RunSpec.model_fields if hasattr(spec, name)}
    sizes = spec.batch_size
    cut: dict[str, Any] = {
        "learners": learners,
        "rounds": rounds,
        "batch_size": sizes if isinstance(sizes, int) else sizes[:learners],
        "evaluate_every": None,
    }
    [run] = Spec(**shared | cut, operators=(operator,), seeds=(max(spec.seeds) + 1,)).runs()
    return run


def _start(deltas: float | Sequence[float]) -> float:
    """Where to begin: the spec's Δ, or the middle of its list."""
    return deltas if isinstance(deltas, float | int) else sorted(deltas)[len(deltas) // 2]


def _boundary(
    good: Callable[[float], bool],
    start: float,
    larger_is_better: bool,
    most: int,
    exhausted: Callable[[], bool] = lambda: False,
) -> float | None:
    """The largest (or smallest) Δ that is good, as far as `most` questions tell; None if none was.
    Where the one last asked about was good and `exhausted`, those beyond are no different.

    >>> _boundary(lambda delta: delta < 10, 1.0, True, 12)
    9.51
    >>> _boundary(lambda delta: delta > 10, 1.0, False, 3) is None
    False
    """
    ahead = STEP if larger_is_better else 1 / STEP
    best: float | None = None
    worst: float | None = None
    delta, asked = start, 0
    while asked < most and not (best and worst and max(best / worst, worst / best) <= CLOSE):
        asked += 1
        if good(delta):
            best = delta
            if worst is None and exhausted():
                break
        else:
            worst = delta
        if best is None:
            delta = _rounded(delta / ahead)
        elif worst is None:
            delta = _rounded(delta * ahead)
        else:
            delta = _rounded(math.sqrt(best * worst))
    return best


def _rounded(delta: float) -> float:
    """Three digits are enough for a Δ."""
    return float(f"{delta:.3g}")


def _with_delta(spec: Spec, dynamic: Settings, delta: float) -> Spec:
    """The spec with that Δ in place of those of its dynamic operators."""
    others = [one for one in spec.operators if one["kind"] != "dynamic"]
    return spec.model_copy(update={"operators": (*others, dynamic | {"delta": delta})})
