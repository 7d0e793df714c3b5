"""What a spec means for a fleet: a folder with the spec in it, and the task each process makes.

Every process reads the spec for itself, makes the same streams, and takes the batches of its own
learners' ids. What only a simulation can do, which sees all models at once, is refused.
"""

from pathlib import Path
from typing import Any

from dynavg.engines.fleet import folder as folders
from dynavg.engines.fleet.config import FleetConfig
from dynavg.engines.fleet.folder import Fleet
from dynavg.engines.fleet.task import Task, TaskSource
from dynavg.experiments import problems
from dynavg.experiments.assembly import arguments_of
from dynavg.experiments.spec import RunSpec, Spec, operator_of
from dynavg.experiments.specfile import SpecError, load, to_toml
from dynavg.learning.program import Learning

__all__ = ["BUILT_IN", "SPEC_FILE", "init", "one_run", "spec_of", "task", "task_of"]

SPEC_FILE = "spec.toml"

BUILT_IN = problems.drift(
    [{"kind": "dynamic", "delta": 0.2}],
    rate=0.1,
    title="Drifting binary data and the paper's small network, to try a fleet out",
    learners=4,
    rounds=100,
)

_LEARNING = ("loss", "optimizer", "scheduler", "clip", "metric", "reduction")
_RUN = ("rounds", "seed", "device", "dtype", "buffers", "on_sync", "init_noise")


def spec_of(
    file: Path | None = None, learners: int | None = None, rounds: int | None = None
) -> Spec:
    """The spec in a TOML file (None: a small one that comes along), with these numbers in it."""
    spec = BUILT_IN if file is None else load(file)
    given = {"learners": learners, "rounds": rounds}
    changed = spec.model_copy(update={key: value for key, value in given.items() if value})
    one_run(changed, str(file))
    return changed


def task(file: Path) -> Task:
    """The task of the spec in a TOML file; `fleet.json` names this function."""
    return task_of(one_run(load(file), str(file)))


def one_run(spec: Spec, where: str = "the spec") -> RunSpec:
    """The only run of a spec."""
    runs = spec.runs()
    if len(runs) > 1:
        kinds = len({str(run.operator) for run in runs})
        raise SpecError(
            f"{where} means {len(runs)} runs ({kinds} operators, {len(spec.seeds)} seeds, "
            f"{len(spec.grid)} keys in its grid); a fleet is one run: one operator with one value "
            "for each of its settings, one seed, no grid"
        )
    return runs[0]


def task_of(spec: RunSpec) -> Task:
    """The task of one run.

    >>> task_of(one_run(BUILT_IN)).streams.learners
    4
    """
    operator = operator_of(spec.operator)
    if operator is None:
        raise SpecError("operators: serial is a baseline of one learner; a fleet has many")
    for name, wanted in (("evaluate_every", None), ("divergence", False)):
        if getattr(spec, name) != wanted:
            raise SpecError(f"{name}: nobody in a fleet sees all models; leave it out")
    if spec.shard not in ("auto", "looped"):
        raise SpecError("shard: a fleet's learners are 'looped', so 'auto' or 'looped' is wanted")
    given = arguments_of(spec)
    return Task(
        learning=Learning(**{name: given[name] for name in _LEARNING}),
        operator=operator,
        **{name: given[name] for name in ("model", "streams", *_RUN)},
    )


def init(folder: Path, spec: Spec, config: FleetConfig, **others: Any) -> Fleet:
    """Make the folder of a new fleet that learns what the spec says; `others` are those of
    `dynavg.fleet.init`. The spec has as many learners as may ever take part, the configuration as
    many as are waited for at the start.
    """
    if config.learners > spec.learners:
        raise ValueError(
            f"{config.learners} learners at the start, but the spec has {spec.learners} in all"
        )
    task_of(one_run(spec))  # a mistake should not leave a folder behind
    source = TaskSource(factory=f"{__name__}:{task.__name__}", file=Path(SPEC_FILE))
    others.setdefault("hosts", [range(id, id + 1) for id in range(spec.learners)])
    fleet = folders.init(folder, config, source, **others)
    (folder / SPEC_FILE).write_text(to_toml(spec), encoding="utf-8")
    return fleet
