"""What each car of a fleet learns from: recordings of a driver of its own, or the user's."""

from __future__ import annotations

from functools import lru_cache

from torch.utils.data import TensorDataset

from dynavg import data
from dynavg.driving import udacity
from dynavg.driving.drivers import HUMANS
from dynavg.driving.recorder import PICTURES, TRACKS, record

PER_CAR = PICTURES // 10  # the paper's recordings, shared by its ten cars


def cars(
    learners: int,
    batch_size: int,
    seed: int,
    pictures: int = PER_CAR,
    tracks: tuple[str, ...] = TRACKS,
    days: int = 2,
) -> data.Split:
    """The streams of `learners` cars. Each has `pictures` of one driver, on every track on `days`
    days that no other car has seen; with more cars than drivers, some have the same driver.

    >>> streams = cars(learners=2, batch_size=5, seed=0, pictures=10, tracks=("narrow",), days=1)
    >>> x, y = streams.at(learner=1, round=3)
    >>> x.shape, y.shape
    (torch.Size([5, 3, 68, 320]), torch.Size([5, 1]))
    """
    recorded = _recorded(learners, seed, pictures, tuple(tracks), days)
    return data.per_learner(recorded, batch_size, seed)


@lru_cache(maxsize=1)  # 65 KB a picture: 3.1 GB for the paper's amount
def _recorded(
    learners: int, seed: int, pictures: int, tracks: tuple[str, ...], days: int
) -> list[TensorDataset]:
    return [
        record(pictures, tracks, (HUMANS[car % len(HUMANS)],), days, seed, car).dataset()
        for car in range(learners)
    ]


def udacity_cars(
    learners: int,
    batch_size: int,
    seed: int,
    folders: list[str],
    side_correction: float | None = None,
) -> data.Split:
    """The same from recordings of the original simulator: a folder for each car, or one that is
    dealt out to all cars anew in every epoch.

    >>> udacity_cars(3, 10, seed=0, folders=["monday", "tuesday"])
    Traceback (most recent call last):
    ...
    ValueError: folders: 2 for 3 cars; there must be one, or one for each car
    """
    if len(folders) not in {1, learners}:
        raise ValueError(
            f"folders: {len(folders)} for {learners} cars; there must be one, or one for each car"
        )
    own = _read(tuple(folders), side_correction)
    if len(own) == 1:
        return data.split(own[0], learners, batch_size, seed)
    return data.per_learner(own, batch_size, seed)


@lru_cache(maxsize=1)
def _read(folders: tuple[str, ...], side_correction: float | None) -> list[TensorDataset]:
    return [udacity.read(folder, side_correction).dataset() for folder in folders]
