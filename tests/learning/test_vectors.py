"""The only arithmetic on whole models, against NumPy in float64."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from dynavg.learning.vectors import (
    BLOCK,
    accumulate,
    first_unsound,
    is_finite,
    mean,
    squared_distance,
    squared_distances,
)

SUMMED = 4096  # squares in one float32 sum, at most
LENGTHS = [1, 7, 100, SUMMED - 1, SUMMED, SUMMED + 1, 3 * SUMMED + 5, BLOCK, BLOCK + SUMMED + 1]


def vectors(length, count=2, seed=0, dtype=torch.float32):
    return torch.randn(count, length, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def exact(a, b):
    return float(((a.double().numpy() - b.double().numpy()) ** 2).sum())


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize(("dtype", "rtol"), [(torch.float32, 1e-5), (torch.float64, 1e-13)])
def test_squared_distance_is_the_sum_of_squared_differences(length, dtype, rtol):
    a, b = vectors(length, dtype=dtype)
    assert squared_distance(a, b) == pytest.approx(exact(a, b), rel=rtol)


@pytest.mark.parametrize("length", LENGTHS)
def test_small_differences_of_large_vectors_do_not_cancel(length):
    a = vectors(length)[0] * 1000
    b = a + 0.001 * torch.ones_like(a)
    assert squared_distance(a, b) == pytest.approx(exact(a, b), rel=1e-5)
    assert squared_distance(a, a.clone()) == 0


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_row_of_a_matrix_has_the_bits_of_the_vector_alone(length, dtype):
    width = length + 3  # rows that start at no multiple of a cache line
    matrix, reference = vectors(width, 5, dtype=dtype), vectors(length, 1, 1, dtype)[0]
    alone = [squared_distance(row[:length].clone(), reference) for row in matrix]
    assert [squared_distance(row[:length], reference) for row in matrix] == alone
    shifted = torch.cat([torch.zeros(1, dtype=dtype), reference])[1:]
    assert [squared_distance(row[:length], shifted) for row in matrix] == alone


def test_threads_change_no_bit():
    matrix, reference = vectors(BLOCK + 5 * SUMMED + 11, 4), vectors(BLOCK * 2, 1, 1)[0]
    reference = reference[: matrix.shape[1]]
    before = torch.get_num_threads()
    seen = []
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            seen.append([squared_distance(row, reference) for row in matrix])
            with ThreadPoolExecutor(4) as pool:
                seen.append(list(pool.map(lambda row: squared_distance(row, reference), matrix)))
    finally:
        torch.set_num_threads(before)
    assert all(distances == seen[0] for distances in seen)


def test_blocks_are_added_up_in_float64():
    # One large sum, then many small ones that vanish beside it in float32.
    a = torch.zeros(200 * SUMMED)
    a[0] = 4096.0
    a[SUMMED::SUMMED] = 0.5
    assert squared_distance(a, torch.zeros_like(a)) == 4096.0**2 + 199 * 0.25


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_a_distance_from_what_is_not_finite_is_not_finite(bad):
    a, b = vectors(BLOCK + 3)
    a[-1] = bad
    assert not np.isfinite(squared_distance(a, b))


def test_many_rows_at_once_have_the_bits_of_each_alone():
    matrix, reference = vectors(BLOCK + 77, 4), vectors(BLOCK + 77, 1, 1)[0]
    alone = [squared_distance(row, reference) for row in matrix]
    assert squared_distances(matrix, reference) == alone
    assert squared_distances(matrix[2:], reference) == alone[2:]
    assert squared_distances([], reference) == []


def test_operands_are_left_as_they_are():
    a, b = vectors(SUMMED + 3)
    before = a.clone(), b.clone()
    squared_distance(a, b)
    assert torch.equal(a, before[0])
    assert torch.equal(b, before[1])


def running_sum(models, weights):
    total = np.zeros(models.shape[1])
    for model, weight in zip(models.double().numpy(), weights, strict=True):
        total += model * weight
    return total


@pytest.mark.parametrize("length", LENGTHS)
def test_the_mean_is_a_running_float64_sum_one_division_and_one_cast(length):
    models = vectors(length, 5) * torch.tensor([1e8, 1.0, -1e8, 1e-3, 7.0])[:, None]
    weights = [1.0, 4.0, 1.0, 7.0, 3.0]  # a product with a small whole number is exact
    total = torch.zeros(length, dtype=torch.float64)
    accumulate(total, models[:2], weights[:2])
    accumulate(total, models[2:], weights[2:])
    expected = (running_sum(models, weights) / 16.0).astype(np.float32)
    result = mean(total, 16.0, torch.float32)
    assert result.dtype == torch.float32
    assert np.array_equal(result.numpy(), expected)


def test_the_sum_runs_in_the_order_given():
    # 2^53 + 1 is no float64: what comes first decides.
    big, one = torch.tensor([2.0**53]), torch.tensor([1.0])
    for order, expected in [([one, one, big], 2.0**53 + 2), ([big, one, one], 2.0**53)]:
        total = torch.zeros(1, dtype=torch.float64)
        accumulate(total, order, [1.0] * 3)
        assert total.item() == expected


def test_the_mean_of_equal_models_is_that_model():
    model = vectors(BLOCK + 5)[0]
    for count in (1, 2, 3, 7, 10):
        total = torch.zeros(len(model), dtype=torch.float64)
        accumulate(total, [model] * count, [1.0] * count)
        assert torch.equal(mean(total, count, torch.float32), model)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("place", [0, BLOCK, -1])
def test_one_entry_that_is_not_finite_is_found(bad, place):
    rows = vectors(BLOCK + 3, 4)
    assert first_unsound(rows) is None
    rows[2, place] = rows[3, 5] = bad
    assert first_unsound(rows) == 2
    assert first_unsound([]) is None


def test_infinities_of_both_signs_do_not_hide_each_other():
    assert not is_finite(torch.tensor([torch.inf, -torch.inf, 1.0]))


def test_a_sum_that_overflows_is_no_infinity():
    assert is_finite(torch.full((4,), 3e38))
