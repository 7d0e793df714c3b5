import math

import numpy as np
import pytest

from dynavg.driving.catalogue import NAMES, track
from dynavg.driving.tracks import CAR_HALF_WIDTH, LINE_WIDTH, from_points

CIRCLE = from_points(
    "circle",
    6.0,
    50.0
    * np.stack(
        [
            np.cos(np.linspace(0, 2 * np.pi, 1257)[:-1]),
            np.sin(np.linspace(0, 2 * np.pi, 1257)[:-1]),
        ],
        axis=1,
    ),
)


def test_a_lap_of_a_circle_is_its_circumference() -> None:
    assert CIRCLE.length == pytest.approx(2 * math.pi * 50, rel=1e-5)


def test_a_circle_bends_by_one_over_its_radius_to_the_left() -> None:
    assert CIRCLE.bends == pytest.approx(1 / 50, rel=1e-4)


@pytest.mark.parametrize("angle", [0.1, 2.0, 4.0, 6.2])
@pytest.mark.parametrize("radius", [47.5, 50.0, 52.0])
def test_places_on_a_circle_are_arc_and_distance_from_the_circle(
    angle: float, radius: float
) -> None:
    place = CIRCLE.place(radius * math.cos(angle), radius * math.sin(angle))
    assert place.s == pytest.approx(50 * angle, abs=0.01)
    assert place.offset == pytest.approx(50 - radius, abs=1e-3)  # the inside is left


@pytest.mark.parametrize("name", NAMES)
def test_a_search_nearby_finds_what_a_search_everywhere_finds(name: str) -> None:
    road = track(name)
    rng = np.random.default_rng(0)
    for _ in range(40):
        s, offset = rng.uniform(0, road.length), rng.uniform(-2, 2)
        x, y, _ = road.pose(s, offset)
        near = road.place(x, y, near=(s + rng.uniform(-2, 2)) % road.length)
        everywhere = road.place(x, y)
        assert near == everywhere


@pytest.mark.parametrize("name", NAMES)
def test_a_pose_beside_the_road_is_placed_where_it_was_put(name: str) -> None:
    road = track(name)
    for s in np.linspace(0, road.length, 50, endpoint=False):
        place = road.place(*road.pose(float(s), 1.2)[:2])
        assert abs(road.advance(float(s), place.s)) < 0.1
        assert place.offset == pytest.approx(1.2, abs=0.01)


def test_the_mirror_track_bends_the_other_way_at_every_place() -> None:
    assert track("mirror").bends == pytest.approx(-track("training").bends)
    assert track("mirror").length == pytest.approx(track("training").length)


@pytest.mark.parametrize("name", NAMES)
def test_no_two_stretches_of_road_come_near_each_other(name: str) -> None:
    road = track(name)
    points = road.points[::8]
    apart = np.hypot(*(points[:, None] - points[None]).transpose(2, 0, 1))
    steps = np.abs(np.arange(len(points))[:, None] - np.arange(len(points)))
    along = np.minimum(steps, len(points) - steps) * 2.0
    assert apart[along > 45].min() > 3 * road.width


@pytest.mark.parametrize("name", NAMES)
def test_every_bend_can_be_driven(name: str) -> None:
    smallest_radius = 2.5 / math.tan(math.radians(25))
    assert np.abs(track(name).bends).max() < 1 / (1.1 * smallest_radius)


def test_the_narrow_track_is_narrower_and_bends_more_than_the_others() -> None:
    others = [track(name) for name in NAMES if name != "narrow"]
    assert track("narrow").width < min(road.width for road in others)
    assert np.abs(track("narrow").bends).max() > max(np.abs(road.bends).max() for road in others)


def test_a_sideline_is_touched_when_the_cars_side_is_on_its_paint() -> None:
    inner = CIRCLE.width / 2 - LINE_WIDTH - CAR_HALF_WIDTH
    assert not CIRCLE.on_line(inner - 0.01)
    assert CIRCLE.on_line(inner + 0.01)
    assert CIRCLE.on_line(-inner - 0.01)


def test_a_car_is_off_the_road_when_its_middle_is_beyond_the_edge() -> None:
    assert not CIRCLE.off_road(2.99)
    assert CIRCLE.off_road(3.01)
    assert CIRCLE.off_road(-3.01)


def test_advance_over_the_start_counts_on_and_backwards_counts_down() -> None:
    assert CIRCLE.advance(CIRCLE.length - 1, 2.0) == pytest.approx(3.0)
    assert CIRCLE.advance(2.0, CIRCLE.length - 1) == pytest.approx(-3.0)


def test_an_unknown_track_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ValueError, match=r"unknown track 'monza': the tracks are training, mirror"):
        track("monza")
