"""Expected values are worked out by hand from the formula in the module's docstring."""

import numpy as np
import pytest

from dynavg.driving.judging import Driven, Start
from dynavg.driving.loss import driving_loss, scores
from dynavg.driving.ride import Outcome


def ride(
    seconds: float, crossings: int, line: float, outcome: Outcome = Outcome.OFF_ROAD, at: float = 0
) -> Driven:
    laps = 2.0 if outcome is Outcome.FINISHED else 0.1
    return Driven(Start(at=at), outcome, seconds, crossings, line, laps, np.zeros((1, 4)))


def test_the_formula_by_hand() -> None:
    # 0.8 * (100 - 25) / 100 + 0.15 * 3 / 12 + 0.05 * 5 / 25 = 0.6 + 0.0375 + 0.01
    loss = driving_loss(25.0, 3, 5.0, longest=100.0, most_crossings=12)
    assert loss == pytest.approx(0.6475)


def test_the_best_ride_without_a_crossing_has_no_loss() -> None:
    assert driving_loss(100.0, 0, 0.0, longest=100.0, most_crossings=4) == 0.0


def test_the_longest_ride_with_the_most_crossings_loses_by_these_only() -> None:
    # 0 + 0.15 + 0.05 * 0.5
    loss = driving_loss(100.0, 4, 50.0, longest=100.0, most_crossings=4)
    assert loss == pytest.approx(0.175)


def test_where_no_model_crossed_the_crossings_cost_nothing() -> None:
    # 0.8 * 0.5
    assert driving_loss(50.0, 0, 0.0, longest=100.0, most_crossings=0) == pytest.approx(0.4)


def test_a_model_that_did_not_drive_counts_as_on_the_line_all_the_time() -> None:
    # 0.8 * 1 + 0 + 0.05 * 1
    assert driving_loss(0.0, 0, 0.0, longest=100.0, most_crossings=2) == pytest.approx(0.85)


def test_where_no_model_drove_all_time_is_lost() -> None:
    assert driving_loss(0.0, 0, 0.0, longest=0.0, most_crossings=0) == pytest.approx(0.85)


def test_a_ride_that_finished_has_lost_no_time() -> None:
    loss = driving_loss(90.0, 0, 0.0, longest=100.0, most_crossings=1, finished=True)
    assert loss == 0.0


def test_no_ride_loses_more_than_one_or_less_than_nothing() -> None:
    assert driving_loss(1e-9, 7, 1e-9, longest=100.0, most_crossings=7) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("seconds", "crossings", "line", "message"),
    [
        (10.0, 0, 11.0, "11.0 s of them on a line"),
        (10.0, 5, 1.0, "with 5 of at most 4 crossings"),
        (-1.0, 0, 0.0, "a ride of -1.0 s"),
        (60.0, 0, 0.0, "more than the longest ride's 50.0 s"),
    ],
)
def test_impossible_rides_are_refused(
    seconds: float, crossings: int, line: float, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        driving_loss(seconds, crossings, line, longest=50.0, most_crossings=4)


def test_scores_compare_models_start_by_start() -> None:
    rides = {
        "good": [ride(100.0, 0, 0.0, Outcome.FINISHED), ride(40.0, 2, 4.0, at=0.5)],
        "bad": [ride(25.0, 1, 5.0), ride(20.0, 1, 2.0, at=0.5)],
    }
    got = scores(rides)
    # good: 0 and 0.15 * 2 / 2 + 0.05 * 4 / 40; bad: 0.8 * 0.75 + 0.15 + 0.05 * 0.2 and
    # 0.8 * 0.5 + 0.15 / 2 + 0.05 * 0.1.
    assert got["good"].per_start == pytest.approx((0.0, 0.155))
    assert got["bad"].per_start == pytest.approx((0.76, 0.48))
    assert got["bad"].loss == pytest.approx(0.62)
    assert got["bad"].spread == pytest.approx(0.14)
    assert (got["good"].finished, got["bad"].finished) == (1, 0)


def test_models_that_drove_from_different_starts_cannot_be_compared() -> None:
    with pytest.raises(ValueError, match="b drove from 1 starts that are not those of the first"):
        scores({"a": [ride(1.0, 0, 0.0)], "b": [ride(1.0, 0, 0.0, at=0.5)]})


def test_scores_of_nothing_are_an_error() -> None:
    with pytest.raises(ValueError, match="every model needs at least one"):
        scores({})
