"""Finished runs handed on to TensorBoard and MLflow, from their records."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

from dynavg.records import Record
from dynavg.report.points import curves_of

__all__ = ["trackers"]

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
        with mlflow.start_run(run_name=run.folder.name):
            mlflow.log_params({key: str(value)[:500] for key, value in run.spec.items()})
            for name, value, round in _series(run):
                mlflow.log_metric(name, value, step=round)
            mlflow.log_artifacts(str(run.folder))

    return track


def _series(run: Record) -> Iterator[tuple[str, float, int]]:
    """(name, value, round) of what a run did over time; nothing of one that diverged."""
    if "diverged" in run.summary:
        return
    curves = curves_of(run)
    for round, (loss, sent) in enumerate(zip(curves.loss, curves.bytes, strict=True), start=1):
        yield "loss per learner, cumulative", float(loss), round
        yield "bytes, cumulative", float(sent), round
    for check in run.checks.iter_rows(named=True):
        yield "violations", float(check["violations"]), int(check["round"])
    for held_out in run.evaluations.iter_rows(named=True):
        yield "held-out loss", float(held_out["loss"]), int(held_out["round"])
