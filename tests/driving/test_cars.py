from pathlib import Path

import pytest
import torch

from dynavg.data import Split
from dynavg.driving import HUMANS, record, udacity
from dynavg.driving.cars import _recorded, cars, udacity_cars


def few(learners: int, seed: int = 0) -> list[torch.Tensor]:
    """The steering of each car's only epoch, ascending."""
    streams = cars(learners, 4, seed, pictures=4, tracks=("narrow",), days=1)
    return [streams.at(car, 1)[1].flatten().sort().values for car in range(learners)]


def test_each_car_learns_from_its_own_driver_on_days_of_its_own() -> None:
    first, second = (record(8, ("narrow",), (HUMANS[car],), 1, 0, car) for car in (0, 1))
    assert first.scenes[0].conditions != second.scenes[0].conditions
    own = [torch.from_numpy(part.steering).sort().values for part in (first, second)]
    streams = cars(2, 8, 0, pictures=8, tracks=("narrow",), days=1)
    for car in (0, 1):
        assert torch.equal(streams.at(car, 1)[1].flatten().sort().values, own[car])


def test_cars_of_the_same_driver_drove_elsewhere() -> None:
    steering = few(len(HUMANS) + 1)
    assert not torch.equal(steering[0], steering[-1])


def test_another_seed_is_another_fleet_and_the_same_seed_the_same() -> None:
    once, again, other = few(1), few(1), few(1, seed=1)
    assert torch.equal(once[0], again[0])
    assert not torch.equal(once[0], other[0])


def test_a_picture_comes_as_the_network_takes_it_fastest() -> None:
    x, _ = cars(1, 4, 0, pictures=4, tracks=("narrow",), days=1).at(0, 1)
    assert (x.shape, x.dtype) == ((4, 3, 68, 320), torch.float32)
    assert 0 < float(x.min()) < float(x.max()) <= 1
    assert x.is_contiguous(memory_format=torch.channels_last)


def test_recordings_are_made_once_for_all_runs_of_a_grid() -> None:
    few(1)
    before = _recorded.cache_info().hits
    few(1)
    assert _recorded.cache_info().hits == before + 1


def brought(place: Path, *, seed: int) -> list[float]:
    """Write a recording of four pictures; its steering, ascending."""
    recording = record(4, tracks=("narrow",), drivers=("ada",), days=1, seed=seed)
    udacity.write(recording, place)
    return sorted(round(float(value), 5) for value in recording.steering)


def seen(streams: Split, car: int, rounds: int = 1) -> list[float]:
    """The steering that a car sees in so many rounds, ascending."""
    steering = torch.cat([streams.at(car, t + 1)[1].flatten() for t in range(rounds)])
    return sorted(round(value, 5) for value in steering.tolist())


def test_each_car_learns_from_the_folder_that_was_brought_for_it(tmp_path: Path) -> None:
    steering = [brought(tmp_path / name, seed=seed) for seed, name in enumerate("ab")]
    streams = udacity_cars(2, 2, 0, folders=[str(tmp_path / name) for name in "ab"])
    assert [seen(streams, car, rounds=2) for car in (0, 1)] == steering


def test_one_folder_is_dealt_out_to_all_cars(tmp_path: Path) -> None:
    steering = brought(tmp_path, seed=0)
    streams = udacity_cars(2, 2, 0, folders=[str(tmp_path)])
    assert sorted(seen(streams, 0) + seen(streams, 1)) == steering
    x, _ = streams.at(0, 1)
    assert x.is_contiguous(memory_format=torch.channels_last)


def test_side_cameras_can_be_brought_too(tmp_path: Path) -> None:
    steering = brought(tmp_path, seed=0)
    streams = udacity_cars(1, 12, 0, folders=[str(tmp_path)], side_correction=0.25)
    sides = [min(max(value + way, -1.0), 1.0) for value in steering for way in (-0.25, 0.25)]
    assert seen(streams, 0) == pytest.approx(sorted(steering + sides), abs=2e-5)
