"""Dealing one dataset out: who gets which sample when, by which partition."""

import itertools
import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import Dataset, TensorDataset

from dynavg import data, seeds
from dynavg.data import Dirichlet, Pathological, Shards, Sizes, split


def numbered(count, kinds=10):
    """A dataset in which x is the sample's own position and y its label."""
    positions = torch.arange(count)
    return positions[:, None].double(), positions % kinds


def seen(streams, learner, rounds):
    return [int(x) for t in rounds for x in streams.at(learner, t)[0].flatten()]


def every_share(streams):
    return [streams.share(learner).tolist() for learner in range(streams.learners)]


class Lettered(Dataset):
    """A map-style dataset that makes its samples when asked."""

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, position):
        return np.full((1, 2, 2), position, dtype=np.float32), position % 3


@given(
    count=st.integers(1, 40),
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=5),
    seed=st.integers(0, 5),
)
def test_dealing_reads_the_epochs_permutations_one_after_the_other(count, sizes, seed):
    streams = split(numbered(count), len(sizes), sizes, seed)
    rounds = 3
    needed = rounds * sum(sizes)
    # Slow and independent: write all epochs out, then take sample after sample.
    sequence = []
    while len(sequence) < needed:
        epoch = len(sequence) // count
        rng = seeds.generator(seed, "data.epoch", round=epoch)
        sequence += rng.permutation(count).tolist()
    dealt = iter(sequence)
    for t in range(1, rounds + 1):
        for learner, size in enumerate(sizes):
            assert seen(streams, learner, [t]) == [next(dealt) for _ in range(size)]


@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    batch_size=st.integers(1, 12),
)
def test_a_fixed_share_is_seen_whole_in_every_epoch_of_its_own(sizes, batch_size):
    streams = split(numbered(40), len(sizes), batch_size, by=Sizes(tuple(sizes)))
    for learner, size in enumerate(sizes):
        own = set(streams.share(learner).tolist())
        order = seen(streams, learner, range(1, 3 * size + 1))
        epochs = [order[start : start + size] for start in range(0, 3 * size, size)]
        assert all(set(epoch) == own for epoch in epochs)


def test_a_fixed_share_is_reshuffled_every_epoch():
    streams = split(numbered(200), 2, 100, share="fixed")
    first, second = seen(streams, 1, [1]), seen(streams, 1, [2])
    assert sorted(first) == sorted(second)
    assert first != second


def test_learners_shuffle_their_shares_independently():
    streams = split(numbered(200), 2, 100, share="fixed")
    ranks = []
    for learner in range(2):
        share = streams.share(learner).tolist()
        ranks.append([share.index(position) for position in seen(streams, learner, [1])])
    assert ranks[0] != ranks[1]


def test_a_batch_is_the_same_whenever_and_from_whichever_thread_it_is_asked():
    places = [(learner, t) for t in range(1, 60) for learner in range(5)]
    alone = split(numbered(37), 5, 3, seed=4)
    expected = [seen(alone, learner, [t]) for learner, t in places]
    together = split(numbered(37), 5, 3, seed=4)
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda place: seen(together, place[0], [place[1]]), places[::-1]))
    assert found[::-1] == expected


def test_another_seed_deals_differently():
    assert seen(split(numbered(50), 1, 50, 0), 0, [1]) != seen(
        split(numbered(50), 1, 50, 1), 0, [1]
    )


PARTITIONS = [
    "iid", "shards", "dirichlet", "pathological", "linear", "square",
    Shards(3), Dirichlet(10.0), Pathological(1), Pathological(10),
]  # fmt: skip


@pytest.mark.parametrize("by", PARTITIONS, ids=str)
def test_a_partition_gives_every_sample_to_one_learner(by):
    streams = split(numbered(500), 12, 5, by=by, share="fixed")
    assert sorted(itertools.chain(*every_share(streams))) == list(range(500))
    assert all(every_share(streams))


@pytest.mark.parametrize("by", PARTITIONS, ids=str)
def test_a_partition_depends_on_the_seed_alone(by):
    shares = [
        every_share(split(numbered(500), 12, 5, seed, by=by, share="fixed")) for seed in (3, 3, 4)
    ]
    assert shares[0] == shares[1] != shares[2]


def lengths(by, learners, count=600):
    return [len(share) for share in every_share(split(numbered(count), learners, 1, by=by))]


def test_unequal_sizes_are_in_the_proportions_of_their_names():
    assert lengths("linear", 3) == [100, 200, 300]
    assert lengths("square", 3, count=1400) == [100, 400, 900]
    assert lengths(Sizes((7, 1, 20)), 3) == [7, 1, 20]
    e = np.exp([1.0, 2.0, 3.0])
    assert np.abs(np.array(lengths("exponential", 3)) - 600 * e / e.sum()).max() <= 1


def labels_seen(by, learners=20, count=1000):
    streams = split(numbered(count), learners, 1, by=by)
    return [{position % 10 for position in share} for share in every_share(streams)]


def test_shards_hold_one_label_each_when_they_divide_the_labels_evenly():
    # 1,000 samples of 10 labels in 40 shards of 25: no shard straddles two labels.
    assert max(map(len, labels_seen(Shards(2)))) == 2
    assert all(len(labels) == 1 for labels in labels_seen(Shards(1)))


def test_pathological_gives_each_learner_exactly_its_number_of_labels():
    assert all(len(labels) == 3 for labels in labels_seen(Pathological(3)))
    assert set().union(*labels_seen(Pathological(1), learners=10)) == set(range(10))


def test_a_small_alpha_concentrates_labels_and_a_large_one_spreads_them():
    def largest_part(alpha):
        _, counts = split(numbered(5000), 5, 1, by=Dirichlet(alpha)).counts()
        return (counts.max(axis=1) / counts.sum(axis=1)).mean()

    assert largest_part(1000.0) < 0.25
    assert largest_part(0.1) > 0.6


def test_dirichlet_proportions_have_the_distributions_variance():
    alpha, m = 2.0, 4
    parts = np.concatenate(
        [
            (counts / counts.sum(axis=1, keepdims=True)).ravel()
            for seed in range(40)
            for _, counts in [split(numbered(10_000), m, 1, seed, by=Dirichlet(alpha)).counts()]
        ]
    )
    expected = (1 / m) * (1 - 1 / m) / (m * alpha + 1)
    assert parts.var() == pytest.approx(expected, rel=0.1)


def test_counts_say_who_has_how_many_of_which_label():
    x = torch.zeros(6, 1)
    y = torch.tensor([5, 5, 5, 7, 7, 9])
    streams = split((x, y), 2, 1, share="fixed")
    labels, counts = streams.counts()
    assert labels.tolist() == [5, 7, 9]
    for learner in range(2):
        own = y[streams.share(learner)].tolist()
        assert counts[:, learner].tolist() == [own.count(5), own.count(7), own.count(9)]


def test_the_first_epochs_share_is_what_the_first_epoch_deals():
    streams = split(numbered(24), 3, [1, 2, 1])
    for learner, size in enumerate([1, 2, 1]):
        assert sorted(streams.share(learner).tolist()) == sorted(
            seen(streams, learner, range(1, 7))
        )
        assert len(streams.share(learner)) == 6 * size


def test_pictures_in_uint8_come_out_as_floats_up_to_one_and_stay_uint8_in_store():
    x = torch.tensor([[0], [51], [255]], dtype=torch.uint8)
    streams = split((x, torch.tensor([0, 1, 2], dtype=torch.uint8)), 1, 3)
    taken, labels = streams.at(0, 1)
    assert taken.dtype == torch.float32
    assert labels.dtype == torch.int64
    expected = torch.tensor([0.0, 0.2, 1.0])[labels]
    assert torch.allclose(taken.flatten(), expected)
    assert x.tolist() == [[0], [51], [255]]


def test_writing_into_a_batch_changes_no_later_batch():
    streams = split((torch.ones(4, 2), torch.zeros(4)), 1, 4)
    streams.at(0, 1)[0].zero_()
    assert streams.at(0, 1)[0].all()


@pytest.mark.parametrize("by", ["iid", "shards"])
def test_map_style_datasets_are_read_when_their_samples_are_taken(by):
    streams = split(Lettered(30), 3, 5, by=by)
    x, y = streams.at(2, 1)
    assert x.shape == (5, 1, 2, 2)
    assert y.dtype == torch.int64
    assert torch.equal(x[:, 0, 0, 0].long() % 3, y)


def test_tensor_datasets_and_regression_targets_are_divided_too():
    streams = split(TensorDataset(torch.rand(9, 2), torch.rand(9, 1)), 3, 2, by="linear")
    assert streams.at(0, 1)[1].shape == (2, 1)


def test_each_learner_may_have_its_own_batch_size():
    streams = split(numbered(30), 3, [1, 4, 2], by="linear")
    assert [len(streams.at(learner, 1)[0]) for learner in range(3)] == [1, 4, 2]


def test_a_partitioner_of_ones_own_is_taken():
    class EvenAndOdd:
        def shares(self, samples, learners, rng):
            return [np.arange(first, len(samples), 2) for first in range(2)]

    assert every_share(split(numbered(6), 2, 1, by=EvenAndOdd())) == [[0, 2, 4], [1, 3, 5]]


D = numbered(20)
REFUSED = {
    "no learners": ({"learners": 0}, ValueError, "learners must be at least 1, but is 0"),
    "half a learner": ({"learners": 2.5}, TypeError, "learners must be a whole number"),
    "a yes as number": ({"learners": True}, TypeError, "but is the bool True"),
    "no batch": ({"batch_size": 0}, ValueError, "batch_size must be at least 1"),
    "a zero among sizes": ({"batch_size": [1, 0]}, ValueError, "batch_size[1] must be"),
    "too many sizes": ({"batch_size": [1, 2, 3]}, ValueError, "has 3 for 2 learners"),
    "a negative seed": ({"seed": -1}, ValueError, "seed must be at least 0"),
    "an unknown partition": ({"by": "random"}, ValueError, "but is the str 'random'"),
    "a partition's class": ({"by": Shards}, ValueError, "Shards(per_learner=2)"),
    "an unknown share": ({"share": "own"}, ValueError, 'share must be "dealt" or "fixed"'),
    "dealing by shards": ({"by": "shards", "share": "dealt"}, ValueError, 'with by="iid" only'),
    "no dataset": ({"dataset": None}, TypeError, "but is None"),
    "an iterable": ({"dataset": iter([])}, TypeError, "__len__ and __getitem__"),
    "x alone": ({"dataset": D[0]}, TypeError, "but is a tensor of shape (20, 1)"),
    "three tensors": ({"dataset": (*D, D[0])}, ValueError, "holds 3 tensors"),
    "lengths that differ": ({"dataset": (D[0], D[1][:3])}, ValueError, "y has shape (3,)"),
    "an empty dataset": ({"dataset": (D[0][:0], D[1][:0])}, ValueError, "but is empty"),
    "an empty map": ({"dataset": Lettered(0)}, ValueError, "but is empty"),
    "samples of one part": ({"dataset": [1, 2]}, TypeError, "dataset[0] must be a pair"),
    "samples as texts": ({"dataset": [("a", 1)]}, TypeError, "dataset[0][0] must be a tensor"),
    "more learners than samples": (
        {"learners": 30, "share": "fixed"},
        ValueError,
        "10 of 30 learners without a sample",
    ),
    "too few sizes": ({"by": Sizes((3,))}, ValueError, "gives 1 for 2 learners"),
    "sizes beyond the data": ({"by": Sizes((30, 1))}, ValueError, "31 samples in all, but"),
    "more labels than there are": ({"by": Pathological(11)}, ValueError, "only 10 labels"),
    "labels that are no classes": (
        {"dataset": (D[0], D[0] / 7), "by": "dirichlet"},
        ValueError,
        "whole numbers (classes)",
    ),
    "several labels a sample": (
        {"dataset": (D[0], torch.zeros(20, 2)), "by": "shards"},
        ValueError,
        "y has shape (20, 2)",
    ),
    "an alpha too small": (
        {"learners": 20, "by": Dirichlet(0.01)},
        ValueError,
        "choose a larger alpha or fewer learners",
    ),
}


@pytest.mark.parametrize(("changed", "error", "text"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_divided_is_refused_with_what_came(changed, error, text):
    with pytest.raises(error, match=re.escape(text)):
        split(**({"dataset": D, "learners": 2, "batch_size": 2} | changed))


def test_a_partitioner_that_makes_too_few_shares_is_named():
    class Nothing:
        def shares(self, samples, learners, rng):
            return []

    with pytest.raises(ValueError, match="made 0 shares for 2 learners"):
        split(D, 2, 1, by=Nothing())


@pytest.mark.parametrize("make", [lambda: Shards(0), lambda: Dirichlet(0.0), lambda: Sizes((0,))])
def test_partitions_refuse_parameters_that_make_no_sense(make):
    with pytest.raises(ValueError, match="must be"):
        make()


@pytest.mark.parametrize(("learner", "round", "text"), [(2, 1, "learner 2"), (0, 0, "round 0")])
def test_places_that_do_not_exist_are_errors(learner, round, text):
    with pytest.raises(ValueError, match=text):
        split(D, 2, 1).at(learner, round)


@pytest.mark.parametrize(("learners", "by"), [(10, "dirichlet"), (100, "shards"), (4, "iid")])
def test_the_picture_shows_all_samples_and_is_written(tmp_path, learners, by):
    streams = split(numbered(2000), learners, 1, by=by)
    figure = streams.picture(tmp_path / "partition.png")
    assert (tmp_path / "partition.png").stat().st_size > 5000
    shown = sum(bar.get_height() for bar in figure.axes[0].patches)
    assert shown == 2000


def test_public_names_are_there():
    assert all(hasattr(data, name) for name in data.__all__)


def test_each_learner_can_bring_a_dataset_of_its_own():
    first = torch.arange(6.0).reshape(6, 1), torch.zeros(6, dtype=torch.int64)
    second = TensorDataset(torch.arange(10.0, 14.0).reshape(4, 1), torch.ones(4, dtype=torch.int64))
    streams = data.per_learner([first, second], batch_size=[3, 2], seed=1)
    epochs = [
        torch.cat([streams.at(learner, round)[0] for round in (1, 2)]).flatten().sort().values
        for learner in range(2)
    ]
    assert [epoch.tolist() for epoch in epochs] == [[0, 1, 2, 3, 4, 5], [10, 11, 12, 13]]
    assert streams.counts()[1].tolist() == [[6, 0], [0, 4]]


@pytest.mark.parametrize("datasets", [[], None, torch.zeros(3)])
def test_per_learner_wants_a_list_of_datasets(datasets):
    with pytest.raises(TypeError, match="datasets must be a list, one per learner, but is"):
        data.per_learner(datasets, batch_size=2)
