from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from torch import Tensor, nn

from dynavg.driving import drive, drive_starts, driver_steers, load_model, starts
from dynavg.driving.camera import Camera
from dynavg.driving.catalogue import track
from dynavg.driving.conditions import Conditions
from dynavg.driving.judging import Start
from dynavg.driving.pictures import ON_LINE, track_map
from dynavg.driving.ride import Outcome
from dynavg.models import driving_net

PLACES = [Start("narrow", at) for at in (0.0, 0.3, 0.6)]


class Constant(nn.Module):
    """Steers the same at every picture, and remembers what it was shown."""

    def __init__(self, steering: float) -> None:
        super().__init__()
        self.steering = steering
        self.seen: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        self.seen.append(x)
        return torch.full((len(x), 1), self.steering)


class Tiny(nn.Sequential):
    """Sees two brightnesses, and has dropout: cheap, and shaky unless in evaluation mode."""

    def __init__(self) -> None:
        linear = nn.Linear(6, 1)
        nn.init.constant_(linear.weight, 0.3)
        super().__init__(nn.AdaptiveAvgPool2d((1, 2)), nn.Flatten(), nn.Dropout(0.5), linear)


def test_the_expert_finishes_from_every_start() -> None:
    driven = drive_starts(driver_steers("expert"), PLACES)
    assert [ride.outcome for ride in driven] == [Outcome.FINISHED] * 3
    assert all(ride.crossings == 0 and ride.laps >= 2 for ride in driven)


def test_a_random_model_leaves_the_road_within_seconds() -> None:
    torch.manual_seed(0)
    driven = drive_starts(driving_net(), PLACES)
    assert [ride.outcome for ride in driven] == [Outcome.OFF_ROAD] * 3
    assert max(ride.seconds for ride in driven) < 10


@pytest.mark.parametrize("steering", [-0.3, 0.0, 0.3])
def test_a_model_of_constant_steering_leaves_the_road_within_seconds(steering: float) -> None:
    driven = drive_starts(Constant(steering), PLACES)
    assert not any(ride.finished for ride in driven)
    assert max(ride.seconds for ride in driven) < 15


def test_a_model_sees_what_the_camera_takes_in_zero_to_one() -> None:
    model = Constant(0.0)
    drive_starts(model, PLACES[:1])
    camera = Camera(track("narrow"), Conditions())
    crop = camera.crop(track("narrow").pose(0.0), 0).transpose(2, 0, 1)
    assert model.seen[0].shape == (1, 3, 68, 320)
    assert (model.seen[0][0] * 255).round().to(torch.uint8).numpy().tolist() == crop.tolist()


def test_a_ride_does_not_depend_on_the_rides_beside_it() -> None:
    model = Tiny().eval()
    together = drive_starts(model, PLACES)
    alone = [drive_starts(model, [start])[0] for start in PLACES]
    for one, other in zip(together, alone, strict=True):
        assert one.path == pytest.approx(other.path, abs=1e-3)


def test_a_model_is_judged_in_evaluation_mode_and_given_back_as_it_was() -> None:
    model = Tiny().train()
    first, second = (drive_starts(model, PLACES[:1])[0] for _ in range(2))
    assert (first.path == second.path).all()  # no dropout
    assert model.training


def test_a_model_drives_on_one_thread_and_gives_the_others_back() -> None:
    class Counting(Constant):
        def forward(self, x: Tensor) -> Tensor:
            used.add(torch.get_num_threads())
            return super().forward(x)

    used: set[int] = set()
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        drive_starts(Counting(0.3), PLACES[:1])
        assert (used, torch.get_num_threads()) == ({1}, 2)
    finally:
        torch.set_num_threads(before)


def test_a_model_that_diverged_is_judged_not_crashed_on() -> None:
    assert drive_starts(Constant(float("nan")), PLACES[:1])[0].outcome is Outcome.OFF_ROAD


def test_starts_are_all_combinations() -> None:
    made = starts(("training", "narrow"), ("noon", "rough"), places=3)
    assert len(set(made)) == 12
    assert {start.at for start in made} == {0.0, 1 / 3, 2 / 3}


def test_drive_tells_the_facts_and_makes_the_pictures(tmp_path: Path) -> None:
    torch.manual_seed(0)
    save_file(driving_net().state_dict(), tmp_path / "model.safetensors")
    result = drive(
        tmp_path / "model.safetensors",
        Start("narrow"),
        gif=tmp_path / "out.gif",
        map_picture=tmp_path / "map.png",
    )
    assert set(result.as_dict()) == {
        "model", "track", "day", "outcome", "t", "crossings", "t_line", "laps",
    }  # fmt: skip
    assert (result.track, result.outcome, result.crossings) == ("narrow", "off road", 1)
    with Image.open(tmp_path / "out.gif") as film:
        assert film.size == (320, 400)
        assert film.n_frames == round(result.t / 0.1) + 1  # type: ignore[attr-defined]
    with Image.open(tmp_path / "map.png") as picture:
        assert picture.size == (960, 720)


def test_the_map_is_red_exactly_where_the_path_touched_the_line() -> None:
    road = track("narrow")
    path = np.array([(*road.pose(float(s)), float(20 <= s < 30)) for s in range(60)])
    red = (track_map(road, path) == ON_LINE).all(axis=2)
    path[:, 3] = 0
    assert red.any()
    assert not (track_map(road, path) == ON_LINE).all(axis=2).any()


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"w": torch.zeros(3)}, r"is no driving network: .* is missing, not \(24,\)"),
        (None, r"is not a safetensors file"),
    ],
)
def test_a_model_of_another_shape_is_one_clear_error(
    tmp_path: Path, weights: dict[str, Tensor] | None, message: str
) -> None:
    path = tmp_path / "m.safetensors"
    if weights is None:
        path.write_bytes(b"nonsense, nonsense, nonsense")
    else:
        save_file(weights, path)
    with pytest.raises(ValueError, match=message):
        load_model(path)


def test_a_wider_layer_is_named_with_both_shapes(tmp_path: Path) -> None:
    weights = driving_net().state_dict()
    name = next(reversed(weights))
    weights[name] = torch.zeros(2)
    save_file(weights, tmp_path / "m.safetensors")
    with pytest.raises(ValueError, match=rf"{name} is \(2,\), not \(1,\)"):
        load_model(tmp_path / "m.safetensors")


def test_a_missing_model_is_told_with_the_drivers_there_are() -> None:
    with pytest.raises(FileNotFoundError, match=r"no model at nobody: .* or one of expert, ada"):
        drive("nobody")


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"gif": "out.mp4"}, r"cannot write a picture to out.mp4: its name must end in .gif"),
        ({"map_picture": "map.gif"}, r"to map.gif: its name must end in .jpg, .png, .webp"),
    ],
)
def test_a_picture_of_another_kind_is_refused_before_the_drive(
    where: dict[str, str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        drive("nobody", **where)  # type: ignore[arg-type]


def test_folders_of_pictures_are_made(tmp_path: Path) -> None:
    drive("expert", Start("narrow"), laps=0, map_picture=tmp_path / "a" / "b" / "map.png")
    assert (tmp_path / "a" / "b" / "map.png").is_file()


def test_one_driver_drives_many_rides_one_after_the_other() -> None:
    steer = driver_steers("chiara")
    paths = [drive_starts(steer, PLACES[:1], laps=1)[0].path for _ in range(4)]
    assert len({path.tobytes() for path in paths}) == 4  # other hands each time
    again = driver_steers("chiara")
    assert (drive_starts(again, PLACES[:1], laps=1)[0].path == paths[0]).all()
