"""What a run remembers: a record per check and per evaluation, and losses per learner and round.

Kept as plain columns while the run goes on; `History` makes data frames of them when asked.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
import torch
from torch import Tensor

from dynavg.learning.shard import Trace
from dynavg.protocol.messages import MessageType, Outcome

__all__ = ["CheckRecord", "DivergedError", "Evaluation", "History", "Losses"]


class DivergedError(ArithmeticError):
    """A learner's model is not finite any more."""

    def __init__(self, learner: int, round: int, what: str) -> None:
        super().__init__(
            f"learner {learner} diverged in round {round}: {what} is not finite. Likely causes: a "
            "learning rate that is too large, inputs that are not normalised, a loss that takes "
            "the logarithm of zero; clip=1.0 limits the gradient's norm"
        )
        self.learner = learner
        self.round = round
        self.what = what


@dataclass(frozen=True, slots=True)
class CheckRecord:
    """One check. Where nobody spoke, `cause` is None and all counts are 0.

    The distances are the learners' squared distances to the reference before the check (None where
    the operator does not measure them); `divergence_*` and `false_alarm` only on request.
    """

    round: int
    violations: int = 0
    balancing_set: int = 0
    full: bool = False
    cause: str | None = None
    stages: tuple[tuple[int, ...], ...] = ()
    receivers: int = 0
    violation_bytes: int = 0
    query_bytes: int = 0
    reply_bytes: int = 0
    model_bytes: int = 0
    distance_min: float | None = None
    distance_median: float | None = None
    distance_max: float | None = None
    divergence_before: float | None = None
    divergence_after: float | None = None
    false_alarm: bool | None = None

    @property
    def bytes(self) -> int:
        """All bytes of the check, headers included."""
        return self.violation_bytes + self.query_bytes + self.reply_bytes + self.model_bytes

    @property
    def phases(self) -> int:
        """How many times messages crossed the network one after the other: what latency costs."""
        queried = len(self.stages) - bool(self.violation_bytes)
        unasked = bool(self.reply_bytes) and not self.query_bytes
        return 0 if self.cause is None else bool(self.violation_bytes) + 2 * queried - unasked + 1

    @classmethod
    def of(
        cls,
        round: int,
        outcome: Outcome | None,
        sizes: dict[MessageType, int],
        distances: Sequence[float] | None,
    ) -> "CheckRecord":
        """The record of a check that came to this outcome."""
        measured: dict[str, Any] = {}
        if distances is not None:
            measured |= {
                "distance_min": min(distances),
                "distance_median": float(np.median(distances)),
                "distance_max": max(distances),
            }
        if outcome is None:
            return cls(round, **measured)
        return cls(
            round=round,
            violations=len(outcome.violators),
            balancing_set=len(outcome.balancing_set),
            full=outcome.as_reference,
            cause=outcome.cause.value,
            stages=outcome.stages,
            receivers=len(outcome.receivers),
            violation_bytes=sizes.get(MessageType.VIOLATION, 0),
            query_bytes=sizes.get(MessageType.QUERY, 0),
            reply_bytes=sizes.get(MessageType.REPLY, 0),
            model_bytes=sizes.get(MessageType.MODEL, 0),
            **measured,
        )


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The averaged model on held-out data; `accuracy` is None where nothing counts as correct."""

    round: int
    loss: float
    accuracy: float | None


class Losses:
    """Loss sums, samples and correct predictions of every learner (rows) in every round."""

    def __init__(self, learners: int, rounds: int, dtype: torch.dtype) -> None:
        self.losses = torch.zeros(learners, rounds, dtype=dtype)
        self.samples = torch.zeros(learners, rounds, dtype=torch.int32)
        self.correct: Tensor | None = torch.zeros(learners, rounds)
        self.rounds = 0

    def add(self, ids: range, first: int, trace: Trace) -> None:
        """Note what a shard did from round `first` on."""
        rows = slice(ids.start, ids.stop)
        columns = slice(first - 1, first - 1 + trace.losses.shape[1])
        self.losses[rows, columns] = trace.losses.cpu()
        self.samples[rows, columns] = trace.samples
        if trace.correct is None:
            self.correct = None
        elif self.correct is not None:
            self.correct[rows, columns] = trace.correct.cpu()

    def demand_finite(self, first: int, last: int) -> None:
        """A loss that is not finite ends the run; the earliest is named."""
        unsound = ~self.losses[:, first - 1 : last].T.isfinite()
        if bool(unsound.any()):
            column, learner = unsound.nonzero()[0].tolist()
            raise DivergedError(learner, first + column, "its loss")

    def frame(self) -> pl.DataFrame:
        """A row per learner and round."""
        learners = len(self.losses)
        part = slice(0, self.rounds)
        columns = {
            "round": np.repeat(np.arange(1, self.rounds + 1), learners),
            "learner": np.tile(np.arange(learners), self.rounds),
            "loss": self.losses[:, part].T.reshape(-1).numpy(),
            "samples": self.samples[:, part].T.reshape(-1).numpy(),
        }
        if self.correct is not None:
            columns["correct"] = self.correct[:, part].T.reshape(-1).numpy()
        return pl.DataFrame(columns)


class History:
    """The records of a run as data frames: `rounds`, `checks`, `evaluations`."""

    def __init__(
        self, losses: Losses, checks: list[CheckRecord], evaluations: list[Evaluation]
    ) -> None:
        self._losses = losses
        self._checks = checks
        self._evaluations = evaluations

    @cached_property
    def rounds(self) -> pl.DataFrame:
        """round, learner, loss (summed over the batch), samples, correct (if counted)."""
        return self._losses.frame()

    @cached_property
    def checks(self) -> pl.DataFrame:
        """A row per check; the columns are those of `CheckRecord`, and `bytes`."""
        rows = [asdict(check) | {"bytes": check.bytes} for check in self._checks]
        return pl.DataFrame(rows, schema=_CHECKS)

    @cached_property
    def evaluations(self) -> pl.DataFrame:
        """round, loss, accuracy of the averaged model on held-out data."""
        schema = {"round": pl.Int64, "loss": pl.Float64, "accuracy": pl.Float64}
        return pl.DataFrame([asdict(row) for row in self._evaluations], schema=schema)


_CHECKS: dict[str, pl.DataType | type[pl.DataType]] = {
    "round": pl.Int64,
    "violations": pl.Int64,
    "balancing_set": pl.Int64,
    "full": pl.Boolean,
    "cause": pl.String,
    "stages": pl.List(pl.List(pl.Int64)),
    "receivers": pl.Int64,
    "violation_bytes": pl.Int64,
    "query_bytes": pl.Int64,
    "reply_bytes": pl.Int64,
    "model_bytes": pl.Int64,
    "distance_min": pl.Float64,
    "distance_median": pl.Float64,
    "distance_max": pl.Float64,
    "divergence_before": pl.Float64,
    "divergence_after": pl.Float64,
    "false_alarm": pl.Boolean,
    "bytes": pl.Int64,
}
