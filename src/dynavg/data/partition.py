"""Ways to divide one dataset among learners, each learner keeping its share.

Every way is data plus one method, `shares`. The names and the meaning follow the partitioners of
flwr-datasets (`IidPartitioner`, `ShardPartitioner`, …), whose papers' experiments they reproduce.
To add one, write a dataclass with that method; `split(by=...)` takes any.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dynavg.arguments import whole
from dynavg.data.samples import Samples, labels_of

__all__ = [
    "BY_NAME",
    "Dirichlet",
    "Exponential",
    "Iid",
    "Linear",
    "Partitioner",
    "Pathological",
    "Shards",
    "Sizes",
    "Square",
]

Positions: TypeAlias = NDArray[np.int64]


class Partitioner(Protocol):
    """A way to divide samples among learners."""

    def shares(self, samples: Samples, learners: int, rng: np.random.Generator) -> list[Positions]:
        """One array of positions per learner, disjoint."""
        ...


def _positive(name: str, value: float) -> None:
    if not 0 < value < float("inf"):
        raise ValueError(f"{name} must be positive and finite, but is {value}")


class _InProportion:
    """Shares at random, of sizes in proportion to weights; each size within one of exact."""

    __slots__ = ()

    def weights(self, learners: int) -> NDArray[np.float64]:
        """The weight of each learner: here, the same for all."""
        return np.ones(learners)

    def shares(self, samples: Samples, learners: int, rng: np.random.Generator) -> list[Positions]:
        """Shuffled positions, cut in proportion to the weights."""
        weights = self.weights(learners)
        cuts = np.rint(np.cumsum(weights) / weights.sum() * len(samples)).astype(np.int64)
        return np.split(rng.permutation(len(samples)), cuts[:-1])


@dataclass(frozen=True, slots=True)
class Iid(_InProportion):
    """Equal shares (within one sample), drawn at random."""


@dataclass(frozen=True, slots=True)
class Linear(_InProportion):
    """Shares at random, of sizes in proportion to 1, 2, 3, …."""

    def weights(self, learners: int) -> NDArray[np.float64]:
        """1, 2, 3, …."""
        return np.arange(1.0, learners + 1)


@dataclass(frozen=True, slots=True)
class Square(_InProportion):
    """Shares at random, of sizes in proportion to 1, 4, 9, …."""

    def weights(self, learners: int) -> NDArray[np.float64]:
        """1, 4, 9, …."""
        return np.arange(1, learners + 1, dtype=np.float64) ** 2


@dataclass(frozen=True, slots=True)
class Exponential(_InProportion):
    """Shares at random, of sizes in proportion to e, e², e³, …."""

    def weights(self, learners: int) -> NDArray[np.float64]:
        """e, e², e³, …, all divided by the last, which could not be represented."""
        weights: NDArray[np.float64] = np.exp(np.arange(1.0 - learners, 1.0))
        return weights


@dataclass(frozen=True, slots=True)
class Sizes:
    """Shares at random of given sizes, one per learner; samples beyond their sum are not used."""

    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        for learner, size in enumerate(self.sizes):
            whole(f"Sizes.sizes[{learner}]", size, least=1)

    def shares(self, samples: Samples, learners: int, rng: np.random.Generator) -> list[Positions]:
        """Shuffled positions, cut by size."""
        if len(self.sizes) != learners:
            raise ValueError(
                f"by=Sizes must give one size per learner, but gives {len(self.sizes)} "
                f"for {learners} learners"
            )
        count = len(samples)
        if sum(self.sizes) > count:
            raise ValueError(
                f"by=Sizes asks for {sum(self.sizes)} samples in all, but dataset has {count}"
            )
        return np.split(rng.permutation(count), np.cumsum(self.sizes))[:-1]


@dataclass(frozen=True, slots=True)
class Shards:
    """Samples sorted by label and cut into shards; each learner gets `per_learner` of them.

    The non-iid setting of McMahan et al. (2017), in which most learners see two labels.
    """

    per_learner: int = 2

    def __post_init__(self) -> None:
        whole("Shards.per_learner", self.per_learner, least=1)

    def shares(self, samples: Samples, learners: int, rng: np.random.Generator) -> list[Positions]:
        """Shuffled, sorted by label, cut into shards, shards dealt out at random."""
        # Shuffled before the stable sort: which samples of a label share a shard is chance.
        labels = labels_of(samples, f"by={self}")
        shuffled = rng.permutation(len(samples))
        by_label = shuffled[np.argsort(labels[shuffled], kind="stable")]
        shards = np.array_split(by_label, learners * self.per_learner)
        dealt = rng.permutation(len(shards)).reshape(learners, self.per_learner)
        return [np.concatenate([shards[shard] for shard in own]) for own in dealt]


@dataclass(frozen=True, slots=True)
class Dirichlet:
    """Each label's samples are divided in proportions drawn from a Dirichlet distribution.

    Small `alpha` gives each label to few learners, large `alpha` comes close to iid. Proportions
    are drawn anew, up to 100 times, until every learner has `at_least` samples.
    """

    alpha: float = 0.5
    at_least: int = 1

    def __post_init__(self) -> None:
        _positive("Dirichlet.alpha", self.alpha)
        whole("Dirichlet.at_least", self.at_least, least=1)

    def shares(self, samples: Samples, learners: int, rng: np.random.Generator) -> list[Positions]:
        """Label by label, cut in proportions drawn for that label."""
        of_label = _positions_by_label(labels_of(samples, f"by={self}"), rng)
        smallest = 0
        for _ in range(100):
            drawn = rng.dirichlet(np.full(learners, self.alpha), size=len(of_label))
            sizes = np.array([len(own) for own in of_label])
            cuts = np.rint(np.cumsum(drawn, axis=1) * sizes[:, None]).astype(np.int64)
            totals = np.diff(cuts, axis=1, prepend=0).sum(axis=0)
            smallest = max(smallest, int(totals.min()))
            if totals.min() >= self.at_least:
                parts = [np.split(own, cut[:-1]) for own, cut in zip(of_label, cuts, strict=True)]
                return [np.concatenate(own) for own in zip(*parts, strict=True)]
        raise ValueError(
            f"by=Dirichlet(alpha={self.alpha}, at_least={self.at_least}): in 100 draws over "
            f"{learners} learners and {len(of_label)} labels the poorest learner never had more "
            f"than {smallest} samples; choose a larger alpha or fewer learners"
        )


@dataclass(frozen=True, slots=True)
class Pathological:
    """Each learner sees exactly `classes` labels, each divided equally among those who see it.

    A learner's first label goes round (learner i starts with label i mod the number of labels),
    so that no label is left out once there are as many learners as labels; the others are random.
    """

    classes: int = 2

    def __post_init__(self) -> None:
        whole("Pathological.classes", self.classes, least=1)

    def shares(self, samples: Samples, learners: int, rng: np.random.Generator) -> list[Positions]:
        """Labels to learners first, then each label's samples to its learners."""
        of_label = _positions_by_label(labels_of(samples, f"by={self}"), rng)
        kinds = len(of_label)
        if self.classes > kinds:
            raise ValueError(
                f"by=Pathological(classes={self.classes}): dataset has only {kinds} labels"
            )
        seen_by: list[list[int]] = [[] for _ in range(kinds)]
        for learner in range(learners):
            first = learner % kinds
            others = np.delete(np.arange(kinds), first)
            for label in (first, *rng.choice(others, self.classes - 1, replace=False)):
                seen_by[label].append(learner)
        parts: list[list[Positions]] = [[] for _ in range(learners)]
        for own, seers in zip(of_label, seen_by, strict=True):
            for learner, part in zip(seers, np.array_split(own, max(1, len(seers))), strict=False):
                parts[learner].append(part)
        return [np.concatenate(own) for own in parts]


def _positions_by_label(labels: NDArray[np.generic], rng: np.random.Generator) -> list[Positions]:
    """Per label, ascending, the shuffled positions of its samples."""
    if not np.array_equal(labels, np.rint(labels.astype(np.float64))):
        raise ValueError("a partition by label needs labels that are whole numbers (classes)")
    shuffled = rng.permutation(len(labels))
    by_label = shuffled[np.argsort(labels[shuffled], kind="stable")]
    _, sizes = np.unique(labels, return_counts=True)
    return np.split(by_label, np.cumsum(sizes)[:-1])


BY_NAME: dict[str, Callable[[], Partitioner]] = {
    "iid": Iid,
    "shards": Shards,
    "dirichlet": Dirichlet,
    "pathological": Pathological,
    "linear": Linear,
    "square": Square,
    "exponential": Exponential,
}
