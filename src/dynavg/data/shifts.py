"""Drift laid over any streams: inputs that turn, labels that change places.

The concept of segment 0 is the streams' own. A drift comes at the start of a round, for all
learners at once, scripted or by chance, as in `drift_times`.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

from dynavg import seeds
from dynavg.arguments import described, whole
from dynavg.data.drift_times import drift_times
from dynavg.data.streams import Streams, as_streams

__all__ = ["Permuted", "Rotated"]


class Rotated:
    """Pictures that each drift turns to a new angle: by chance in (−180°, 180°), or scripted.

    `angles` are degrees, counter-clockwise, one per drift; the last one stays. x has shape
    (B, channels, height, width). Corners that turn in are zero.

    >>> x = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    >>> turned = Rotated([[(x, torch.tensor([7]))] * 2], drifts=(2,), angles=(90,))
    >>> turned.at(learner=0, round=2)[0]
    tensor([[[[2., 4.],
              [1., 3.]]]])
    """

    def __init__(
        self,
        streams: object,
        *,
        drifts: Sequence[int] | None = None,
        probability: float = 0.001,
        angles: Sequence[float] | None = None,
        drift_seed: int = 0,
    ) -> None:
        self._streams = as_streams(streams)
        self._times = drift_times(drifts, probability, drift_seed)
        if angles is not None and len(angles) == 0:
            raise ValueError(f"angles must be one or more degrees, but is {described(angles)}")
        self._angles = None if angles is None else tuple(float(angle) for angle in angles)

    @property
    def learners(self) -> int:
        """As many as the streams have."""
        return self._streams.learners

    @property
    def uniform(self) -> bool:
        """As the streams."""
        return bool(getattr(self._streams, "uniform", False))

    def rounds(self) -> int | None:
        """As many as the streams have."""
        return self._streams.rounds()

    def angle(self, segment: int) -> float:
        """Degrees, counter-clockwise, by which the pictures of a segment are turned."""
        if segment == 0:
            return 0.0
        if self._angles is not None:
            return self._angles[min(segment, len(self._angles)) - 1]
        rng = seeds.generator(self._times.seed, "drift.angle", round=segment)
        return float(rng.uniform(-180, 180))

    def at(self, learner: int, round: int) -> tuple[Tensor, Tensor]:
        """The streams' batch, its pictures turned."""
        x, y = self._streams.at(learner, round)
        return _turned(x, self.angle(int(self._times.segments(round, round)[0]))), y

    def drift_rounds(self, rounds: int) -> tuple[int, ...]:
        """The rounds up to `rounds` that open with a new angle."""
        return tuple(self._times.until(rounds).tolist())


def _turned(x: Tensor, degrees: float) -> Tensor:
    if x.ndim != 4 or not x.is_floating_point():
        raise ValueError(
            "Rotated needs x as float pictures (batch, channels, height, width), "
            f"but x is {described(x)}"
        )
    square = x.shape[2] == x.shape[3]
    if degrees % 360 == 0:
        return x
    if degrees % 180 == 0 or (degrees % 90 == 0 and square):
        return torch.rot90(x, int(degrees // 90), (2, 3))
    turn = np.deg2rad(degrees)
    cos, sin, ratio = float(np.cos(turn)), float(np.sin(turn)), x.shape[2] / x.shape[3]
    # affine_grid maps output places to input places, in units of half the height and half the
    # width, with y downwards.
    back = torch.tensor([[cos, -sin * ratio, 0.0], [sin / ratio, cos, 0.0]], dtype=x.dtype)
    shape = list(x.shape)
    grid = affine_grid(back.to(x.device).expand(len(x), 2, 3), shape, align_corners=False)
    return grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=False)


class Permuted:
    """Class labels that each drift maps to new ones: by a permutation of 0 … classes − 1.

    >>> streams = Permuted(
    ...     [[(torch.zeros(4, 1), torch.tensor([0, 1, 2, 2]))] * 3],
    ...     classes=3,
    ...     drifts=(3,),
    ...     permutations=[(2, 0, 1)],
    ... )
    >>> [streams.at(learner=0, round=round)[1].tolist() for round in (1, 2, 3)]
    [[0, 1, 2, 2], [0, 1, 2, 2], [2, 0, 1, 1]]
    """

    def __init__(
        self,
        streams: object,
        *,
        classes: int = 10,
        drifts: Sequence[int] | None = None,
        probability: float = 0.001,
        permutations: Sequence[Sequence[int]] | None = None,
        drift_seed: int = 0,
    ) -> None:
        self._streams: Streams = as_streams(streams)
        self._classes = whole("classes", classes, least=2)
        self._times = drift_times(drifts, probability, drift_seed)
        if permutations is not None and len(permutations) == 0:
            raise ValueError("permutations must be one or more permutations, but is empty")
        for place, permutation in enumerate(permutations or ()):
            if sorted(permutation) != list(range(classes)):
                raise ValueError(
                    f"permutations[{place}] must hold each of 0 to {classes - 1} once, "
                    f"but is {list(permutation)}"
                )
        self._permutations = None if permutations is None else tuple(map(tuple, permutations))
        # What label 0, 1, … becomes in a segment (int64).
        self.permutation = lru_cache(maxsize=64)(self._permutation)

    def _permutation(self, segment: int) -> Tensor:
        if segment == 0:
            return torch.arange(self._classes)
        if self._permutations is not None:
            return torch.tensor(self._permutations[min(segment, len(self._permutations)) - 1])
        rng = seeds.generator(self._times.seed, "drift.permutation", round=segment)
        return torch.from_numpy(rng.permutation(self._classes))

    @property
    def learners(self) -> int:
        """As many as the streams have."""
        return self._streams.learners

    @property
    def uniform(self) -> bool:
        """As the streams."""
        return bool(getattr(self._streams, "uniform", False))

    def rounds(self) -> int | None:
        """As many as the streams have."""
        return self._streams.rounds()

    def at(self, learner: int, round: int) -> tuple[Tensor, Tensor]:
        """The streams' batch, its labels mapped."""
        x, y = self._streams.at(learner, round)
        if y.is_floating_point() or y.is_complex() or y.dtype == torch.bool:
            raise ValueError(f"Permuted needs class labels as integers, but y is {described(y)}")
        low, high = int(y.min()), int(y.max())
        if low < 0 or high >= self._classes:
            raise ValueError(
                f"Permuted has classes 0 to {self._classes - 1}, but learner {learner}'s batch "
                f"of round {round} has labels from {low} to {high}"
            )
        segment = int(self._times.segments(round, round)[0])
        return x, self.permutation(segment).to(y.device)[y.to(torch.int64)]

    def drift_rounds(self, rounds: int) -> tuple[int, ...]:
        """The rounds up to `rounds` that open with a new permutation."""
        return tuple(self._times.until(rounds).tolist())
