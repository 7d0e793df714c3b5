import math

import numpy as np
import pytest

from dynavg.driving.car import moved, steering_for, turning
from dynavg.driving.catalogue import NAMES, track
from dynavg.driving.drivers import DRIVERS, HUMANS, Driver, habits
from dynavg.driving.ride import Outcome, Ride
from dynavg.driving.tracks import Pose


def test_a_straight_wheel_drives_straight() -> None:
    assert moved(Pose(1.0, 2.0, math.pi / 2), 0.0, 5.0) == pytest.approx((1.0, 7.0, math.pi / 2))


def test_full_lock_right_turns_right_on_the_circle_of_the_bicycle() -> None:
    radius = 2.5 / math.tan(math.radians(25))
    quarter = moved(Pose(0.0, 0.0, math.pi / 2), 1.0, radius * math.pi / 2)
    assert quarter == pytest.approx((radius, radius, 0.0), abs=1e-9)


def test_many_small_moves_are_one_large_move() -> None:
    pose = Pose(0.0, 0.0, 0.3)
    for _ in range(1000):
        pose = moved(pose, -0.4, 0.01)
    assert pose == pytest.approx(moved(Pose(0.0, 0.0, 0.3), -0.4, 10.0), abs=1e-9)


@pytest.mark.parametrize("steering", [-1.0, -0.3, 0.0, 0.7])
def test_steering_for_undoes_turning(steering: float) -> None:
    assert steering_for(turning(steering)) == pytest.approx(steering)


def test_steering_beyond_full_lock_is_full_lock() -> None:
    assert turning(3.0) == turning(1.0)
    assert steering_for(9.0) == -1.0


@pytest.mark.parametrize("name", NAMES)
def test_the_expert_finishes_two_laps_without_touching_a_line(name: str) -> None:
    ride = Ride.from_start(track(name), 10.0)
    driver = Driver(habits("expert"), np.random.default_rng(0))
    while not ride.over:
        ride.step(driver.steer(ride))
    assert ride.outcome is Outcome.FINISHED
    assert (ride.crossings, ride.line_ticks) == (0, 0)
    assert ride.laps == pytest.approx(2.0, abs=0.01)
    assert ride.seconds == pytest.approx(2 * track(name).length / 10.0, rel=0.02)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("steering", [-1.0, -0.5, -0.2, 0.0, 0.2, 0.5, 1.0])
def test_constant_steering_leaves_the_road_within_seconds(name: str, steering: float) -> None:
    for share in (0.0, 0.25, 0.5, 0.75):
        ride = Ride.from_start(track(name), share * track(name).length)
        while not ride.over:
            ride.step(steering)
        assert ride.outcome in {Outcome.OFF_ROAD, Outcome.TURNED_ROUND}
        assert ride.seconds < 15


def test_a_crossing_is_counted_once_until_the_car_comes_back() -> None:
    road = track("training")
    ride = Ride.from_start(road, 5.0, offset=1.5)  # 0.44 m from the paint
    ride.step(-0.6)
    ride.step(-0.6)
    while not ride.on_line:
        ride.step(0.0)
    ride.step(1.0)
    ride.step(1.0)
    assert ride.crossings == 1
    while ride.on_line:
        ride.step(0.3)
    ticks = ride.line_ticks
    ride.step(-1.0)
    assert ride.line_ticks == ticks
    assert ride.line_seconds == pytest.approx(0.1 * ticks)


def test_a_car_that_turns_round_ends_its_ride() -> None:
    ride = Ride.from_start(track("training"), 5.0, turn=math.radians(89))
    ride.step(-1.0)
    assert ride.outcome is Outcome.TURNED_ROUND


def test_driving_on_after_the_end_is_an_error_that_says_how_it_ended() -> None:
    ride = Ride.from_start(track("training"), 0.0)
    while not ride.over:
        ride.step(1.0)
    with pytest.raises(RuntimeError, match=r"the ride is over \(off road\)"):
        ride.step(0.0)


@pytest.mark.parametrize("name", HUMANS)
def test_every_human_finishes_the_narrow_track(name: str) -> None:
    ride = Ride.from_start(track("narrow"), 0.0)
    driver = Driver(habits(name), np.random.default_rng(3))
    while not ride.over:
        ride.step(driver.steer(ride))
    assert ride.outcome is Outcome.FINISHED


def test_there_are_at_least_five_humans_and_they_drive_differently() -> None:
    assert len(HUMANS) >= 5
    assert len({repr(DRIVERS[name]) for name in HUMANS}) == len(HUMANS)


def test_the_same_seed_gives_the_same_driver() -> None:
    def path(seed: int) -> list[float]:
        ride = Ride.from_start(track("training"), 0.0)
        driver = Driver(habits("emil"), np.random.default_rng(seed))
        for _ in range(200):
            ride.step(driver.steer(ride))
        return list(ride.pose)

    assert path(1) == path(1)
    assert path(1) != path(2)


def test_humans_drift_now_and_then_and_come_back() -> None:
    ride = Ride.from_start(track("training"), 0.0)
    driver = Driver(habits("chiara"), np.random.default_rng(0))
    drifted = 0
    for _ in range(1200):
        ride.step(driver.steer(ride))
        drifted += driver.drifting
    assert 20 < drifted < 600
    assert not ride.over


def test_an_unknown_driver_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ValueError, match=r"unknown driver 'max': the drivers are expert, ada"):
        habits("max")
