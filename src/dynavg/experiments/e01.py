"""E1, Figure 1a: averaging models that found different minima can be worse than each of them.

Four learners of one parameter descend a curve with four local minima, each from a start of its own,
and nobody speaks. The average of what they found lies on a hill between.
"""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from dynavg.experiments.claims import Claim, Finding, Scale, UndecidedError
from dynavg.experiments.experiment import Experiment
from dynavg.experiments.spec import Spec
from dynavg.report.charts import Chart, Drawing, Series
from dynavg.report.points import Point

__all__ = ["EXPERIMENT"]

STARTS = (-2.6, -1.2, 0.7, 3.3)


def error(place: Tensor) -> Tensor:
    """A bowl with ripples: four local minima, near −3, −1, 1 and 3.

    >>> float(error(torch.tensor(0.0)))
    2.0
    """
    return 1 + torch.cos(math.pi * place) + 0.05 * place.square() + 0.06 * torch.sin(2 * place)


class Place(nn.Module):
    """One parameter, whose error is that of the curve there."""

    def __init__(self, start: float) -> None:
        super().__init__()
        self.place = nn.Parameter(torch.tensor([start]))

    def forward(self, x: Tensor) -> Tensor:
        """The error, for each sample."""
        return error(self.place).expand(x.shape)


def mean_error(output: Tensor, _target: Tensor) -> Tensor:
    """The curve's error, whatever the data."""
    return output.mean()


def nothing(learners: int, batch_size: int, _seed: int) -> list[list[tuple[Tensor, Tensor]]]:
    """Data without content: the curve is the problem."""
    empty = torch.full((batch_size, 1), math.nan)  # no class either: nothing is counted as correct
    return [[(empty, empty)] * 200] * learners


def plan(_scale: Scale) -> list[Spec]:
    """A run for each start; every scale is the same, since it takes a second."""
    return [
        Spec(
            title="one parameter, four minima",
            data={"kind": "own", "factory": f"{__name__}:nothing"},
            model=f"{__name__}:Place",
            model_settings={"start": 0.0},
            loss=f"{__name__}:mean_error",
            optimizer={"kind": "SGD", "lr": 0.02},
            learners=1,
            batch_size=1,
            rounds=200,
            operators=["nosync"],
            grid={"model_settings.start": STARTS},
        )
    ]


def found(points: Sequence[Point]) -> list[float]:
    """Where each learner ended."""
    folders = [run.folder for point in points for run in point.runs]
    return [float(load_file(Path(folder) / "model.safetensors")["place"]) for folder in folders]


def worse_than_each(points: Sequence[Point]) -> Finding:
    """The error of the average against the largest error of a learner."""
    places = found(points)
    if len(places) < len(STARTS):
        raise UndecidedError(f"{len(STARTS)} runs are wanted, there are {len(places)}")
    each = [float(error(torch.tensor(place))) for place in places]
    average = float(error(torch.tensor(sum(places) / len(places))))
    told = ", ".join(f"{value:.3f}" for value in each)
    return Finding(average > max(each), f"average {average:.3f}; the models {told}")


def picture(points: Sequence[Point]) -> list[Drawing]:
    """The curve, the four models, and their average."""
    across = np.linspace(-4, 4, 401)
    places = np.array(found(points))
    mean = places.mean(keepdims=True)

    def height(x: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> Series | object:
        return error(torch.from_numpy(x)).numpy()

    series = (
        Series("error", across, np.asarray(height(across)), 0),
        Series("the four models", places, np.asarray(height(places)), 2, kind="points"),
        Series("their average", mean, np.asarray(height(mean)), 1, kind="points"),
    )
    title = "The average of four models that found different minima"
    return [Chart("average-of-minima", title, "parameter", "error", series)]


EXPERIMENT = Experiment(
    id="E1",
    title="Averaging different minima (Figure 1a)",
    shows=__doc__,
    plan=plan,
    claims=(
        Claim(
            "E1.1",
            "the average of the four models has a larger error than each of them",
            "error of the average > every model's",
            worse_than_each,
            decided_at="smoke",
        ),
    ),
    pictures=(picture,),
)
