"""Finished runs handed on to TensorBoard and MLflow, from their records."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from dynavg.records import Record
from dynavg.report.points import curves_of

__all__ = ["trackers"]

TAG = "dynavg.run"
"""By which MLflow knows a run that it has already."""
BATCH = 1000
"""Numbers that MLflow takes at once."""

Track = Callable[[Record], None]


def trackers(tensorboard: Path | None, mlflow: bool) -> list[Track]:
    """What is to be called with each run that is over; says so now if something is not there."""
    chosen: list[Track] = []
    if tensorboard is not None:
        chosen.append(_tensorboard(tensorboard))
    if mlflow:
        chosen.append(_mlflow())
    return chosen


def _tensorboard(folder: Path) -> Track:
    try:
        from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415
    except ImportError:
        raise ImportError("--tensorboard wants an extra: pip install 'dynavg[tracking]'") from None

    def track(run: Record) -> None:
        # One folder a run, and the same one when it is logged again.
        place = folder / run.folder.name
        for old in place.glob("events.out.tfevents.*"):
            old.unlink()
        with SummaryWriter(str(place)) as writer:
            writer.add_text("spec", f"```json\n{json.dumps(run.spec, indent=2)}\n```")
            for name, value, round in _series(run):
                writer.add_scalar(name, value, round)

    return track


def _mlflow() -> Track:
    try:
        import mlflow  # noqa: PLC0415
    except ImportError:
        raise ImportError("--mlflow wants an extra: pip install 'dynavg[tracking]'") from None

    def track(run: Record) -> None:
        name = run.folder.name
        known = f"tags.`{TAG}` = '{name}' and attributes.status = 'FINISHED'"
        if mlflow.search_runs(filter_string=known, max_results=1, output_format="list"):
            return
        client, now = mlflow.MlflowClient(), int(time.time() * 1000)
        with mlflow.start_run(run_name=name, tags={TAG: name}) as active:
            mlflow.log_params({key: str(value)[:500] for key, value in run.spec.items()})
            metrics = [mlflow.entities.Metric(of, value, now, at) for of, value, at in _series(run)]
            for first in range(0, len(metrics), BATCH):
                client.log_batch(active.info.run_id, metrics=metrics[first : first + BATCH])
            mlflow.log_artifacts(str(run.folder))

    return track


def _series(run: Record) -> Iterator[tuple[str, float, int]]:
    """(name, value, round) of what a run did over time; nothing of one that diverged. MLflow takes
    letters, digits and `_-. :/` in names.
    """
    if "diverged" in run.summary:
        return
    curves = curves_of(run)
    for round, (loss, sent) in enumerate(zip(curves.loss, curves.bytes, strict=True), start=1):
        yield "cumulative loss per learner", float(loss), round
        yield "cumulative bytes", float(sent), round
    for check in run.checks.iter_rows(named=True):
        yield "violations", float(check["violations"]), int(check["round"])
    for held_out in run.evaluations.iter_rows(named=True):
        yield "held-out loss", float(held_out["loss"]), int(held_out["round"])
