"""A dataset as samples that can be taken by position.

Tensors are kept once, as they came: pictures in uint8 stay uint8 (a quarter of the memory) and
become float32 in [0, 1] when they are taken. Map-style datasets are read when their samples are
taken, so that one larger than memory works.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence, Sized
from itertools import accumulate
from typing import Protocol, TypeGuard

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import IterableDataset, TensorDataset

from dynavg.arguments import described

__all__ = ["Joined", "Samples", "as_samples", "labels_of"]

_SHORT_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32)


class Samples(Protocol):
    """Samples that are taken by position."""

    def __len__(self) -> int: ...

    def take(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """The batch (x, y) of the samples at these positions (int64)."""
        ...

    def targets(self) -> Tensor:
        """All y, samples along the first dimension."""
        ...


def _input(x: Tensor) -> Tensor:
    return x.to(torch.float32).div_(255) if x.dtype == torch.uint8 else x


def _target(y: Tensor) -> Tensor:
    return y.to(torch.int64) if y.dtype in _SHORT_INTEGERS else y


class _Tensors:
    def __init__(self, x: Tensor, y: Tensor) -> None:
        if x.ndim == 0 or y.ndim == 0 or len(x) != len(y):
            raise ValueError(
                "dataset: x and y must have one entry per sample each, "
                f"but x has shape {tuple(x.shape)} and y has shape {tuple(y.shape)}"
            )
        self._x = x
        self._y = _target(y)

    def __len__(self) -> int:
        return len(self._x)

    def take(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        return _input(self._x[positions]), self._y[positions]

    def targets(self) -> Tensor:
        return self._y


class _MapStyle:
    def __init__(self, dataset: Sized) -> None:
        self._dataset = dataset
        if len(dataset) > 0:
            self._sample(0)

    def __len__(self) -> int:
        return len(self._dataset)

    def _sample(self, position: int) -> tuple[Tensor, Tensor]:
        sample: object = self._dataset[position]  # type: ignore[index]
        if not isinstance(sample, list | tuple) or len(sample) != 2:
            raise TypeError(
                f"dataset[{position}] must be a pair (x, y), but is {described(sample)}"
            )
        x, y = (_as_tensor(part, f"dataset[{position}][{i}]") for i, part in enumerate(sample))
        return x, y

    def take(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        pairs = [self._sample(position) for position in positions.tolist()]
        x = torch.stack([x for x, _ in pairs])
        y = torch.stack([y for _, y in pairs])
        return _input(x), _target(y)

    def targets(self) -> Tensor:
        return _target(torch.stack([self._sample(place)[1] for place in range(len(self))]))


class Joined:
    """Several datasets, one behind the other; a batch comes from one of them."""

    def __init__(self, parts: Sequence[Samples]) -> None:
        self._parts = tuple(parts)
        self.starts = tuple(accumulate((len(part) for part in parts), initial=0))

    def __len__(self) -> int:
        """How many samples all of them hold."""
        return self.starts[-1]

    def take(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """The batch at these positions, which lie in one of the datasets."""
        part = bisect_right(self.starts, int(positions[0])) - 1
        return self._parts[part].take(positions - self.starts[part])

    def targets(self) -> Tensor:
        """All y."""
        return torch.cat([part.targets() for part in self._parts])


def _as_tensor(value: object, where: str) -> Tensor:
    if isinstance(value, Tensor):
        return value
    if isinstance(value, np.ndarray | np.generic | int | float):
        return torch.as_tensor(value)
    raise TypeError(
        f"{where} must be a tensor, an array or a number, but is {described(value)}; "
        "give the dataset a transform that makes tensors"
    )


def as_samples(dataset: object) -> Samples:
    """The samples of a pair of tensors, a TensorDataset or a map-style dataset.

    >>> samples = as_samples((torch.tensor([[0], [255]], dtype=torch.uint8), torch.tensor([3, 4])))
    >>> samples.take(torch.tensor([1]))
    (tensor([[1.]]), tensor([4]))
    """
    tensors = dataset.tensors if isinstance(dataset, TensorDataset) else dataset
    if _all_tensors(tensors):
        if len(tensors) != 2:
            raise ValueError(
                f"dataset must be a pair of tensors (x, y), but holds {len(tensors)} tensors"
            )
        return _filled(_Tensors(*tensors))
    is_map = hasattr(dataset, "__getitem__") and isinstance(dataset, Sized)
    if not is_map or isinstance(dataset, IterableDataset | Mapping | str | Tensor | np.ndarray):
        raise TypeError(
            "dataset must be a pair of tensors (x, y), a TensorDataset or a map-style dataset "
            f"with __len__ and __getitem__, but is {described(dataset)}"
        )
    assert isinstance(dataset, Sized)
    return _filled(_MapStyle(dataset))


def _all_tensors(value: object) -> TypeGuard[Sequence[Tensor]]:
    return (
        isinstance(value, list | tuple)
        and len(value) > 0
        and all(isinstance(part, Tensor) for part in value)
    )


def _filled(samples: Samples) -> Samples:
    if len(samples) == 0:
        raise ValueError("dataset must hold at least one sample, but is empty")
    return samples


def labels_of(samples: Samples, why: str) -> NDArray[np.generic]:
    """One label per sample, as numbers.

    >>> labels_of(as_samples((torch.zeros(2, 1), torch.tensor([[3], [4]]))), "for the doctest")
    array([3, 4])
    """
    y = samples.targets()
    if y.numel() != len(samples):
        raise ValueError(
            f"{why}: dataset must have one label per sample, but y has shape {tuple(y.shape)}"
        )
    labels: NDArray[np.generic] = y.detach().reshape(-1).cpu().numpy()
    return labels
