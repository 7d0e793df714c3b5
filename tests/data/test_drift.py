"""Drifting streams: when they drift, what they draw, and how well anyone could do."""

import itertools

import numpy as np
import pytest
import torch

from dynavg.data import Permuted, Rotated, as_streams, drift
from dynavg.data.drift_times import drift_times


def all_samples(streams, learner, rounds):
    batches = [streams.at(learner, t) for t in rounds]
    return torch.cat([x for x, _ in batches]), torch.cat([y for _, y in batches])


def test_a_batch_fits_one_logit_and_binary_cross_entropy():
    x, y = drift(2, batch_size=10).at(1, 1)
    assert (x.shape, y.shape) == ((10, 50), (10, 1))
    assert x.dtype == y.dtype == torch.float32
    assert set(x.unique().tolist()) == {-1, 1}
    assert set(y.unique().tolist()) <= {0, 1}


@pytest.mark.parametrize("batch_size", [1, 10, 200])
def test_a_batch_is_the_same_in_whatever_order_batches_are_asked(batch_size):
    places = [(learner, t) for learner in range(3) for t in (1, 2, 17, 40)]
    forward, backward = (
        drift(3, batch_size, probability=0.01),
        drift(3, batch_size, probability=0.01),
    )
    expected = [forward.at(*place) for place in places]
    found = [backward.at(*place) for place in reversed(places)][::-1]
    for (x, y), (other_x, other_y) in zip(expected, found, strict=True):
        assert torch.equal(x, other_x)
        assert torch.equal(y, other_y)


def test_learners_rounds_and_seeds_all_differ_in_their_samples():
    batches = [
        drift(2, seed=seed, drift_seed=0).at(learner, t)[0]
        for seed, learner, t in itertools.product((0, 1), (0, 1), (1, 2))
    ]
    assert len({batch.numpy().tobytes() for batch in batches}) == 8


def test_writing_into_a_batch_changes_nothing():
    streams = drift(1)
    before = streams.at(0, 1)[0].clone()
    streams.at(0, 1)[0].zero_()
    assert torch.equal(streams.at(0, 1)[0], before)


def test_samples_follow_the_concepts_probabilities():
    """All pairs (y, x_i): P(x_i = 1 | y) = Σ_b P(b | y) P(x_i = 1 | b)."""
    streams = drift(1, batch_size=500, d=10, drifts=(101,), seed=3)
    for segment, rounds in [(0, range(1, 101)), (1, range(101, 201))]:
        x, y = all_samples(streams, 0, rounds)
        assert y.mean().item() == pytest.approx(0.5, abs=0.01)
        concept = streams.concept(segment)
        for label, i in itertools.product((0, 1), range(10)):
            p_bit = concept.hidden[label][i % 3]  # h = ⌊log2 10⌋ = 3
            expected = p_bit * concept.observed[1][i] + (1 - p_bit) * concept.observed[0][i]
            found = (x[y[:, 0] == label][:, i] == 1).float().mean().item()
            assert found == pytest.approx(expected, abs=0.015)  # five standard errors


def test_observables_of_the_same_hidden_bit_move_together_and_of_others_do_not():
    """Given y, on the same bit: Cov(x_i, x_k) = 4 p (1 − p) (o_i1 − o_i0) (o_k1 − o_k0)."""
    streams = drift(1, batch_size=100_000, d=4, drifts=(), seed=1)  # hang on bits 0, 1, 0, 1
    x, y = streams.at(0, 1)
    concept = streams.concept(0)
    wide = concept.observed[1] - concept.observed[0]
    for label in (0, 1):
        found = np.cov(x[y[:, 0] == label].numpy().T)
        p = concept.hidden[label]
        for i, k in itertools.combinations(range(4), 2):
            expected = 4 * p[i % 2] * (1 - p[i % 2]) * wide[i] * wide[k] if (k - i) == 2 else 0
            assert found[i, k] == pytest.approx(expected, abs=5 / np.sqrt(50_000))


def test_concepts_have_the_distribution_of_the_paper():
    streams = drift(1, probability=1.0)
    concepts = [streams.concept(segment) for segment in range(400)]
    assert concepts[0].hidden.shape == (2, 5)
    assert concepts[0].observed.shape == (2, 50)
    hidden = np.array([concept.hidden for concept in concepts])
    observed = np.array([concept.observed for concept in concepts])
    assert ((hidden >= 0) & (hidden <= 1)).all()
    gap, wide = hidden[:, 1] - hidden[:, 0], observed[:, 1] - observed[:, 0]
    assert np.abs(wide).min() >= 0.9
    assert np.abs(wide).mean() == pytest.approx(0.95, abs=0.001)
    assert np.abs(gap).mean() == pytest.approx(0.5, abs=0.03)
    assert (gap > 0).mean() == pytest.approx(0.5, abs=0.05)
    assert (wide > 0).mean() == pytest.approx(0.5, abs=0.02)
    # The smaller p is uniform on [0, 1 − ρ]: its mean is E[(1 − ρ)/2] = 1/4.
    assert hidden.min(axis=1).mean() == pytest.approx(0.25, abs=0.02)


def test_the_bayes_error_is_the_sum_over_all_hidden_states():
    streams = drift(1, d=50, probability=1.0, seed=5)
    for segment in range(5):
        p = streams.concept(segment).hidden
        error = 0.0
        for state in itertools.product((0, 1), repeat=5):
            likelihoods = [1.0, 1.0]
            for label in (0, 1):
                for j, bit in enumerate(state):
                    likelihoods[label] *= p[label][j] if bit else 1 - p[label][j]
            error += 0.5 * min(likelihoods)
        assert streams.bayes_error(segment) == pytest.approx(error, rel=1e-12)


def test_the_concept_is_shared_by_all_learners():
    streams = drift(2, batch_size=5000, drifts=(2,), seed=2)
    for t in (1, 2):
        means = [streams.at(learner, t)[0].mean(dim=0) for learner in (0, 1)]
        assert torch.allclose(*means, atol=0.1)
    assert not torch.allclose(streams.at(0, 1)[0].mean(dim=0), means[0], atol=0.1)


def test_drifts_depend_on_the_drift_seed_alone():
    one, two = drift(1, seed=1, drift_seed=9), drift(5, batch_size=10, seed=2, drift_seed=9)
    assert one.segments(3000) == two.segments(3000)
    assert one.segments(3000) != drift(1, seed=1, drift_seed=8).segments(3000)


def test_segments_are_the_same_however_far_they_were_computed_before():
    near_first, at_once = drift(1, probability=0.05), drift(1, probability=0.05)
    near = near_first.segments(10)
    assert near_first.segments(5000) == at_once.segments(5000)
    assert near_first.segments(5000)[: len(near)] == near


@pytest.mark.parametrize(("per", "ticks"), [("sample_round", 50_000), ("batch_round", 5000)])
def test_the_number_of_drifts_is_the_probability_times_what_it_counts(per, ticks):
    found = len(drift(1, 10, probability=0.01, drift_per=per).segments(5000)) - 1
    expected = 0.01 * (ticks - 1)
    assert abs(found - expected) < 5 * np.sqrt(expected)


def test_a_drift_per_sample_comes_within_a_batch_and_per_batch_only_at_its_start():
    per_sample = drift(1, 10, probability=0.01, drift_per="sample_round").segments(2000)
    per_batch = drift(1, 10, probability=0.01, drift_per="batch_round").segments(2000)
    assert {(segment.sample - 1) % 10 for segment in per_sample} == set(range(10))
    assert {(segment.sample - 1) % 10 for segment in per_batch} == {0}
    for segment in per_sample + per_batch:
        assert (segment.round - 1) * 10 < segment.sample <= segment.round * 10


def test_the_samples_of_each_segment_follow_its_own_concept():
    streams = drift(1, batch_size=20_000, probability=0.0003, drift_seed=6)
    x, y = streams.at(0, 1)
    segments = streams.segments(1)
    ends = [segment.sample - 1 for segment in segments[1:]] + [20_000]
    assert len(segments) > 3
    for segment, end in zip(segments, ends, strict=True):
        own = slice(segment.sample - 1, end)
        concept = streams.concept(segment.index)
        for label in (0, 1):
            chosen = x[own][y[own][:, 0] == label]
            p_bit = concept.hidden[label][np.arange(50) % 5]
            expected = p_bit * concept.observed[1] + (1 - p_bit) * concept.observed[0]
            found = (chosen == 1).double().mean(dim=0).numpy()
            assert np.abs(found - expected).max() < 5 * np.sqrt(0.25 / len(chosen))


@pytest.mark.parametrize("batch_size", [7, 10, 300])
def test_a_drift_changes_samples_from_its_own_on_and_none_before(batch_size):
    drifting = drift(1, batch_size, probability=0.002, seed=4)
    steady = drift(1, batch_size, drifts=(), seed=4)
    rounds = range(1, 6000 // batch_size + 1)
    (x, y), (steady_x, steady_y) = (
        all_samples(streams, 0, rounds) for streams in (drifting, steady)
    )
    assert torch.equal(y, steady_y)
    first = drifting.segments(rounds[-1])[1].sample - 1
    assert torch.equal(x[:first], steady_x[:first])
    # The same chances under another concept: about half of the observables turn.
    assert (x[first] != steady_x[first]).sum() > 5


def test_scripted_drifts_come_at_their_rounds_and_none_means_none():
    for per in ("sample_round", "batch_round"):
        streams = drift(1, 10, drifts=(5, 9), drift_per=per)
        assert streams.drift_rounds(100) == (5, 9)
        assert streams.drift_rounds(8) == (5,)
        assert [segment.sample for segment in streams.segments(100)] == [1, 41, 81]
        assert drift(1, drifts=(), drift_per=per).drift_rounds(10**6) == ()
    assert drift(1, probability=0.0).drift_rounds(10**6) == ()


def test_a_certain_drift_comes_at_every_sample():
    streams = drift(1, batch_size=2, probability=1.0)
    assert streams.drift_rounds(3) == (1, 2, 2, 3, 3)
    assert streams.at(0, 3)[0].shape == (2, 50)


def test_gaps_between_drifts_are_geometric():
    starts = drift_times(probability=0.02, seed=1).until(1_000_000)
    gaps = np.diff(starts)
    assert gaps.min() == 1
    assert gaps.mean() == pytest.approx(50, rel=0.05)
    assert gaps.std() == pytest.approx(np.sqrt(0.98) / 0.02, rel=0.05)


@pytest.mark.parametrize(
    ("changed", "error", "text"),
    [
        ({"learners": 0}, ValueError, "learners must be at least 1"),
        ({"d": 1}, ValueError, "d must be at least 2"),
        ({"probability": 1.5}, ValueError, r"must lie in \[0, 1\], but is 1.5"),
        ({"probability": "often"}, TypeError, "but is the str 'often'"),
        ({"drift_per": "epoch"}, ValueError, "drift_per must be"),
        ({"drifts": (1,)}, ValueError, r"drifts\[0\] must be at least 2"),
        ({"drifts": (5, 5)}, ValueError, "must ascend"),
        ({"drifts": 7}, TypeError, "must be rounds"),
        ({"drift_seed": -1}, ValueError, "drift_seed must be at least 0"),
    ],
)
def test_drift_refuses_what_makes_no_sense(changed, error, text):
    with pytest.raises(error, match=text):
        drift(**({"learners": 1} | changed))


@pytest.mark.parametrize(("learner", "round"), [(1, 1), (-1, 1), (0, 0)])
def test_places_that_do_not_exist_are_errors(learner, round):
    with pytest.raises(ValueError, match=f"learner {learner}, round {round} was asked for"):
        drift(1).at(learner, round)


def pictures(x):
    return as_streams([[(x, torch.arange(len(x)))] * 9])


@pytest.mark.parametrize("angle", [90, 180, -90, 270])
@pytest.mark.parametrize("near", [0, 1e-4])
def test_quarter_turns_are_numpys_and_angles_next_to_them_nearly_so(angle, near):
    x = torch.rand(2, 1, 6, 6)
    turned = Rotated(pictures(x), drifts=(2,), angles=(angle + near,))
    expected = np.rot90(x.numpy(), angle // 90, axes=(2, 3))
    assert np.abs(turned.at(0, 2)[0].numpy() - expected).max() <= 1e-4 * (near > 0)
    assert torch.equal(turned.at(0, 1)[0], x)


def test_a_turn_moves_a_point_along_its_circle_in_wide_pictures_too():
    height, width, degrees = 41, 81, 30.0
    x = torch.zeros(1, 1, height, width)
    x[0, 0, 20, 40 + 16] = 1.0  # 16 to the right of the centre
    turned = Rotated(pictures(x), drifts=(2,), angles=(degrees,)).at(0, 2)[0][0, 0]
    rows, columns = np.mgrid[:height, :width]
    weights = turned.numpy() / turned.sum().item()
    right, up = (weights * (columns - 40)).sum(), (weights * (20 - rows)).sum()
    assert right == pytest.approx(16 * np.cos(np.deg2rad(degrees)), abs=0.3)
    assert up == pytest.approx(16 * np.sin(np.deg2rad(degrees)), abs=0.3)


def test_angles_follow_the_script_and_the_last_one_stays():
    turned = Rotated(pictures(torch.rand(1, 1, 4, 4)), drifts=(2, 4, 6), angles=(10, 20))
    assert [turned.angle(segment) for segment in range(4)] == [0, 10, 20, 20]
    assert turned.drift_rounds(5) == (2, 4)
    assert (turned.learners, turned.rounds()) == (1, 9)


def test_chance_angles_depend_on_the_drift_seed():
    one, same, other = (
        Rotated(pictures(torch.rand(1, 1, 4, 4)), drift_seed=seed) for seed in (1, 1, 2)
    )
    assert one.angle(3) == same.angle(3) != other.angle(3)
    assert one.drift_rounds(5000) == same.drift_rounds(5000) != other.drift_rounds(5000)


@pytest.mark.parametrize("x", [torch.rand(2, 4, 4), torch.zeros(2, 1, 4, 4, dtype=torch.uint8)])
def test_what_is_no_float_picture_cannot_be_turned(x):
    with pytest.raises(ValueError, match="needs x as float pictures"):
        Rotated(pictures(x)).at(0, 1)


def test_chance_permutations_map_labels_one_to_one_and_leave_x_alone():
    y = torch.arange(10)
    x = torch.rand(10, 3)
    mapped = Permuted([[(x, y)] * 9], drifts=(3, 5))
    assert mapped.at(0, 2)[1].tolist() == list(range(10))
    first, second = mapped.at(0, 3)[1], mapped.at(0, 9)[1]
    assert sorted(first.tolist()) == sorted(second.tolist()) == list(range(10))
    assert first.tolist() != second.tolist()
    assert torch.equal(mapped.at(0, 3)[0], x)
    assert mapped.drift_rounds(9) == (3, 5)
    assert (mapped.learners, mapped.rounds()) == (1, 9)


@pytest.mark.parametrize(
    ("y", "text"),
    [(torch.rand(2), "labels as integers"), (torch.tensor([0, 3]), "labels from 0 to 3")],
)
def test_labels_that_cannot_be_permuted_are_errors(y, text):
    with pytest.raises(ValueError, match=text):
        Permuted([[(torch.rand(2, 1), y)]], classes=3).at(0, 1)


def test_scripts_that_make_no_sense_are_refused():
    streams = pictures(torch.rand(2, 1, 4, 4))
    with pytest.raises(ValueError, match="angles must be one or more"):
        Rotated(streams, angles=())
    with pytest.raises(ValueError, match="permutations must be one or more"):
        Permuted(streams, permutations=[])
    with pytest.raises(ValueError, match=r"permutations\[1\] must hold each of 0 to 1 once"):
        Permuted(streams, classes=2, permutations=[(1, 0), (1, 1)])
