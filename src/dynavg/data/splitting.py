"""One dataset, divided over learners: `split` checks what came and composes samples and order."""

from collections.abc import Sequence
from itertools import pairwise
from os import PathLike
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dynavg import seeds
from dynavg.arguments import described, whole
from dynavg.data.order import Dealt, Fixed, Order
from dynavg.data.partition import BY_NAME, Iid, Partitioner
from dynavg.data.samples import Joined, Samples, as_samples, labels_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Split", "per_learner", "split"]


class Split:
    """A dataset's samples in an order; made by `split`. Endless: epoch follows epoch."""

    def __init__(self, samples: Samples, order: Order, learners: int, title: str) -> None:
        self._samples = samples
        self._order = order
        self._learners = learners
        self._title = title

    @property
    def learners(self) -> int:
        """How many learners share the dataset."""
        return self._learners

    @property
    def uniform(self) -> bool:
        """Whether all learners have batches of one size."""
        return len(set(self._order.batch_sizes)) == 1

    def rounds(self) -> int | None:
        """None: endless."""
        return None

    def positions(self, learner: int, round: int) -> Tensor:
        """Positions (int64) in the dataset of the samples in that batch."""
        if not 0 <= learner < self._learners:
            raise ValueError(
                f"there are learners 0 to {self._learners - 1}, but learner {learner} was asked for"
            )
        if round < 1:
            raise ValueError(f"rounds count from 1, but round {round} was asked for")
        return self._order.positions(learner, round)

    def at(self, learner: int, round: int) -> tuple[Tensor, Tensor]:
        """The batch of learner 0, 1, … in round 1, 2, …."""
        return self._samples.take(self.positions(learner, round))

    def share(self, learner: int) -> Tensor:
        """Positions of the learner's samples; when all are dealt anew every epoch, the first's."""
        return self._order.share(learner)

    def counts(self) -> tuple[NDArray[np.generic], NDArray[np.int64]]:
        """The labels, ascending, and how many samples of each (rows) each learner has (columns)."""
        labels, of_sample = np.unique(labels_of(self._samples, "Split.counts"), return_inverse=True)
        counts = [
            np.bincount(of_sample[self.share(learner).numpy()], minlength=len(labels))
            for learner in range(self._learners)
        ]
        return labels, np.stack(counts, axis=1).astype(np.int64)

    def picture(self, path: str | PathLike[str] | None = None) -> "Figure":
        """Who has how many samples of which label; written to `path` too, if that is given."""
        # Imported when wanted: matplotlib takes longer to load than the rest of dynavg.data.
        from dynavg.data.picture import partition_picture  # noqa: PLC0415

        labels, counts = self.counts()
        figure = partition_picture(labels, counts, self._title)
        if path is not None:
            figure.savefig(path)
        return figure


def split(
    dataset: object,
    learners: int,
    batch_size: int | Sequence[int],
    seed: int = 0,
    by: str | Partitioner = "iid",
    share: Literal["dealt", "fixed"] | None = None,
) -> Split:
    """Divide `dataset` over `learners`, in batches of `batch_size` (one number, or one each).

    `dataset` is a pair of tensors (x, y), a TensorDataset or a map-style dataset. x in uint8 is
    handed out as float32 in [0, 1].

    `by` is "iid", "shards", "dirichlet", "pathological", "linear", "square", "exponential", or a
    partitioner such as `Dirichlet(alpha=0.1)` or `Sizes((100, 50))`. With "iid", by default
    (`share="dealt"`), every epoch shuffles the dataset and deals it out over all learners; with
    `share="fixed"`, and with any other `by`, a learner keeps its share and reshuffles it in every
    epoch of its own.

    >>> import torch
    >>> x, y = torch.arange(12.0).reshape(12, 1), torch.arange(12) % 3
    >>> streams = split((x, y), learners=3, batch_size=2, seed=1)
    >>> epoch = [streams.at(learner, round)[0] for round in (1, 2) for learner in range(3)]
    >>> torch.cat(epoch).flatten().sort().values.tolist() == list(range(12))
    True
    >>> from dynavg.data import Pathological
    >>> split((x, y), 3, 2, by=Pathological(classes=1)).counts()[1].tolist()
    [[4, 0, 0], [0, 4, 0], [0, 0, 4]]
    """
    samples = as_samples(dataset)
    m = whole("learners", learners, least=1)
    sizes = _batch_sizes(batch_size, m)
    seed = whole("seed", seed, least=0)
    partitioner = _partitioner(by)
    if share not in (None, "dealt", "fixed"):
        raise ValueError(f'share must be "dealt" or "fixed", but is {described(share)}')
    is_iid = isinstance(partitioner, Iid)
    if share == "dealt" and not is_iid:
        raise ValueError(
            f'share="dealt" shuffles all samples over all learners, which by={partitioner} '
            'excludes; it goes with by="iid" only'
        )
    title = f"{len(samples):,} samples over {m} learners by {partitioner}"
    if is_iid and share != "fixed":
        return Split(samples, Dealt(len(samples), sizes, seed), m, f"{title}, first epoch")
    shares = partitioner.shares(samples, m, seeds.generator(seed, "data.partition"))
    _check_shares(shares, m, len(samples), partitioner)
    own = [torch.from_numpy(np.asarray(positions, dtype=np.int64)) for positions in shares]
    return Split(samples, Fixed(own, sizes, seed), m, title)


def per_learner(
    datasets: Sequence[object], batch_size: int | Sequence[int], seed: int = 0
) -> Split:
    """A dataset of its own for every learner, in batches of `batch_size` (one number, or one each).

    Each of `datasets` is what `split` takes. A learner shuffles its dataset anew in every epoch of
    its own; the streams are endless.

    >>> import torch
    >>> streams = per_learner(
    ...     [(torch.zeros(9, 2), torch.zeros(9)), (torch.ones(4, 2), torch.ones(4))], 3
    ... )
    >>> streams.learners, streams.at(1, round=2)[1].tolist()
    (2, [1.0, 1.0, 1.0])
    """
    if not isinstance(datasets, list | tuple) or not datasets:
        raise TypeError(f"datasets must be a list, one per learner, but is {described(datasets)}")
    joined = Joined([as_samples(dataset) for dataset in datasets])
    own = [torch.arange(*ends) for ends in pairwise(joined.starts)]
    sizes = _batch_sizes(batch_size, len(own))
    order = Fixed(own, sizes, whole("seed", seed, least=0))
    return Split(joined, order, len(own), f"{len(joined):,} samples of {len(own)} learners")


def _batch_sizes(batch_size: int | Sequence[int], learners: int) -> tuple[int, ...]:
    if isinstance(batch_size, list | tuple):
        if len(batch_size) != learners:
            raise ValueError(
                "batch_size must be one number or one per learner, "
                f"but has {len(batch_size)} for {learners} learners"
            )
        return tuple(whole(f"batch_size[{i}]", size, 1) for i, size in enumerate(batch_size))
    return (whole("batch_size", batch_size, least=1),) * learners


def _partitioner(by: object) -> Partitioner:
    if isinstance(by, str) and by in BY_NAME:
        return BY_NAME[by]()
    if isinstance(by, str | type) or not hasattr(by, "shares"):
        names = ", ".join(f'"{name}"' for name in BY_NAME)
        raise ValueError(
            f"by must be one of {names} or a partitioner such as Shards(per_learner=2) or "
            f"Sizes((100, 50)), but is {described(by)}"
        )
    partitioner: Partitioner = by
    return partitioner


def _check_shares(
    shares: Sequence[NDArray[np.int64]], learners: int, count: int, partitioner: Partitioner
) -> None:
    if len(shares) != learners:
        raise ValueError(f"by={partitioner} made {len(shares)} shares for {learners} learners")
    poor = [learner for learner, positions in enumerate(shares) if len(positions) == 0]
    if poor:
        raise ValueError(
            f"by={partitioner} leaves {len(poor)} of {learners} learners without a sample "
            f"(learner {poor[0]} first); dataset has {count} samples: "
            "use fewer learners or another partition"
        )
