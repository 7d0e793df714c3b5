import math

import numpy as np
import pytest

from dynavg.driving.camera import ABOVE_GROUND, CROP, DOWN, FOCAL, HEIGHT, WIDTH, Camera
from dynavg.driving.catalogue import track
from dynavg.driving.conditions import DAYS, Conditions, day, drawn
from dynavg.driving.tracks import LINE_WIDTH

ROAD = track("training")
CLEAR = Conditions(haze=0.0)


@pytest.fixture(scope="module")
def camera() -> Camera:
    return Camera(ROAD, CLEAR)


def test_a_picture_is_320_by_160_rgb(camera: Camera) -> None:
    frame = camera.frame(ROAD.pose(30.0))
    assert (frame.shape, frame.dtype) == ((160, 320, 3), np.uint8)


@pytest.mark.parametrize("name", DAYS)
def test_the_crop_is_the_same_pixels_as_in_the_whole_picture(name: str) -> None:
    conditions = day(name)
    taken = Camera(ROAD, Conditions(clouds=0.3, dirt=conditions.dirt, jitter=conditions.jitter))
    pose = ROAD.pose(77.0, 0.3, 0.05)
    assert (taken.crop(pose, 9) == taken.frame(pose, 9)[CROP[0] : CROP[1]]).all()


def test_the_same_pose_and_tick_give_the_same_picture_again() -> None:
    pose, shaken = ROAD.pose(50.0), Conditions(jitter=1.0, dirt=0.5, clouds=0.3, seed=5)
    first = Camera(ROAD, shaken).frame(pose, 3)
    assert (first == Camera(ROAD, shaken).frame(pose, 3)).all()
    assert (first != Camera(ROAD, shaken).frame(pose, 4)).any()


@pytest.mark.parametrize("side", [-1.0, 1.0])
@pytest.mark.parametrize("metres", [4.0, 6.0])
def test_sidelines_appear_where_trigonometry_says(
    camera: Camera, side: float, metres: float
) -> None:
    """On a straight the paint's middle lies `beside` metres off, `metres` ahead: the pinhole's
    row and column follow by hand."""
    straight = 42.0  # the track begins with one; its paint is fresh here
    beside = ROAD.width / 2 - LINE_WIDTH / 2
    depth = metres * math.cos(DOWN) + ABOVE_GROUND * math.sin(DOWN)
    row = HEIGHT / 2 + FOCAL * (ABOVE_GROUND * math.cos(DOWN) - metres * math.sin(DOWN)) / depth
    column = WIDTH / 2 + side * FOCAL * beside / depth
    frame = camera.frame(ROAD.pose(straight)).astype(int)
    line = frame[round(row - 0.5)].min(axis=1)
    nearby = line[max(0, round(column) - 25) : round(column) + 25]
    white = np.flatnonzero(nearby > 150) + max(0, round(column) - 25)
    assert white.mean() == pytest.approx(column - 0.5, abs=3)


def test_the_paint_of_the_whole_lap_is_seen_where_it_lies(camera: Camera) -> None:
    """Points of the world, put through a pinhole by hand: white on the sideline, grey inside it."""

    def seen(s: float, beside: float) -> float:
        car = ROAD.pose(s, 0.2, 0.1)
        point = ROAD.pose(s + 5.0, beside)
        dx, dy = point.x - car.x, point.y - car.y
        ahead = dx * math.cos(car.heading) + dy * math.sin(car.heading)
        right = dx * math.sin(car.heading) - dy * math.cos(car.heading)
        depth = ahead * math.cos(DOWN) + ABOVE_GROUND * math.sin(DOWN)
        below = ABOVE_GROUND * math.cos(DOWN) - ahead * math.sin(DOWN)
        row, column = HEIGHT / 2 + FOCAL * below / depth, WIDTH / 2 + FOCAL * right / depth
        return float(camera.frame(car)[int(row), int(column)].min())

    paint = ROAD.width / 2 - LINE_WIDTH / 2
    places = np.arange(0.0, ROAD.length, 12.0).tolist()
    for side in (-1.0, 1.0):
        assert np.median([seen(s, side * paint) for s in places]) > 170
        assert np.median([seen(s, side * (paint - 0.4)) for s in places]) < 125


def test_a_car_further_left_sees_the_road_further_right(camera: Camera) -> None:
    def paint(offset: float) -> float:
        row = camera.frame(ROAD.pose(42.0, offset))[96].min(axis=1)
        return float(np.flatnonzero(row > 150).mean())

    assert paint(1.0) > paint(0.0) + 20 > paint(-1.0) + 40


def test_turning_left_moves_the_picture_right(camera: Camera) -> None:
    straight = camera.frame(ROAD.pose(30.0)).astype(int)
    turned = camera.frame(ROAD.pose(30.0, turn=math.radians(8))).astype(int)
    shift = round(FOCAL * math.tan(math.radians(8)))
    rows = slice(76, 80)  # far away, where turning is all that counts
    moved = np.abs(straight[rows, 100:200] - turned[rows, 100 + shift : 200 + shift]).mean()
    assert moved < 0.5 * np.abs(straight[rows, 100:200] - turned[rows, 100:200]).mean()


def test_light_changes_the_pictures_brightness_in_proportion() -> None:
    pose = ROAD.pose(30.0)
    bright = Camera(ROAD, CLEAR).frame(pose).astype(float)
    dim = Camera(ROAD, Conditions(haze=0.0, light=0.5)).frame(pose).astype(float)
    assert dim == pytest.approx(0.5 * bright, abs=1)


def test_evening_is_redder_than_morning() -> None:
    pose = ROAD.pose(30.0)
    warm = Camera(ROAD, Conditions(warmth=1.0)).frame(pose).mean(axis=(0, 1))
    cold = Camera(ROAD, Conditions(warmth=-1.0)).frame(pose).mean(axis=(0, 1))
    assert warm[0] / warm[2] > 1.2 * cold[0] / cold[2]


def test_shadows_darken_parts_of_the_road() -> None:
    poses = [ROAD.pose(s) for s in range(0, 300, 10)]
    plain, shaded = Camera(ROAD, CLEAR), Camera(ROAD, Conditions(haze=0.0, shadows=0.8))
    darker = [plain.crop(p).astype(int).mean() - shaded.crop(p).astype(int).mean() for p in poses]
    assert max(darker) > 8
    assert min(darker) > -2


def test_drawn_conditions_differ_by_seed_and_repeat_with_it() -> None:
    assert drawn(np.random.default_rng(1)) == drawn(np.random.default_rng(1))
    assert drawn(np.random.default_rng(1)) != drawn(np.random.default_rng(2))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"light": 0.0}, r"light is 0.0: it lies between 0.1 and 2"),
        ({"haze": 1.5}, r"haze is 1.5: it lies between 0 and 1"),
        ({"texture": 9}, r"texture is 9: there are 0 to 3"),
        ({"warmth": -2.0}, r"warmth is -2.0: it lies between -1 and 1"),
    ],
)
def test_impossible_conditions_are_refused(wrong: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Conditions(**wrong)  # type: ignore[arg-type]


def test_an_unknown_day_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ValueError, match="unknown day 'night': the days are noon, morning"):
        day("night")
