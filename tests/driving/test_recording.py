import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from dynavg.driving import recording as recordings
from dynavg.driving.camera import CROP, Camera
from dynavg.driving.catalogue import track
from dynavg.driving.recorder import record
from dynavg.driving.recording import Recording
from dynavg.driving.tracks import Pose


@pytest.fixture(scope="module")
def recording() -> Recording:
    return record(240, tracks=("narrow",), drivers=("ada", "emil"), days=1, seed=1)


def test_every_driver_gets_an_equal_share(recording: Recording) -> None:
    assert len(recording) == 240
    assert np.bincount(recording.scene).tolist() == [120, 120]


def test_a_count_that_does_not_divide_is_still_met() -> None:
    assert len(record(101, tracks=("narrow", "training"), drivers=("ada",), days=1)) == 101


def test_steering_is_in_range_and_varies(recording: Recording) -> None:
    assert np.abs(recording.steering).max() <= 1
    assert recording.steering.std() > 0.05


def test_the_same_seed_records_the_same_and_another_does_not(recording: Recording) -> None:
    again = record(240, tracks=("narrow",), drivers=("ada", "emil"), days=1, seed=1)
    other = record(240, tracks=("narrow",), drivers=("ada", "emil"), days=1, seed=2)
    assert (recording.pose == again.pose).all()
    assert (recording.steering == again.steering).all()
    assert (recording.pose != other.pose).any()


def test_all_recorded_places_are_on_the_road(recording: Recording) -> None:
    road = track("narrow")
    offsets = [road.place(x, y).offset for x, y, _ in recording.pose]
    assert np.abs(offsets).max() < road.width / 2


def test_samples_are_the_cameras_crop_and_the_steering(recording: Recording) -> None:
    x, y = recording.dataset()[7]
    assert (x.shape, x.dtype) == ((3, 68, 320), torch.uint8)
    assert (y.shape, y.dtype) == ((1,), torch.float32)
    camera = Camera(track("narrow"), recording.scenes[0].conditions)
    frame = camera.frame(Pose(*recording.pose[7]), int(recording.tick[7]))
    assert (x.numpy() == frame[CROP[0] : CROP[1]].transpose(2, 0, 1)).all()
    assert y.item() == recording.steering[7]


def test_recording_pauses_while_a_driver_lets_the_car_drift() -> None:
    def pauses(driver: str) -> set[int]:
        ticks = record(1500, tracks=("training",), drivers=(driver,), days=1).tick
        return set((np.diff(ticks) - 1).tolist())

    assert pauses("expert") == {0}  # who never drifts
    paused = pauses("chiara") - {0}
    assert len(paused) > 2
    assert min(paused) >= 5  # the shortest drift, in ticks


def test_a_saved_recording_comes_back_whole_and_small(recording: Recording, tmp_path: Path) -> None:
    recording.save(tmp_path / "r.safetensors")
    back = recordings.load(tmp_path / "r.safetensors")
    assert back.scenes == recording.scenes
    assert (back.pose == recording.pose).all()
    assert (back.steering == recording.steering).all()
    assert (back.of(("ada",)).pictures() == recording.of(("ada",)).pictures()).all()
    assert (tmp_path / "r.safetensors").stat().st_size < 50 * len(recording)


def test_rows_of_one_driver_can_be_taken(recording: Recording) -> None:
    emils = recording.of(("emil",))
    assert len(emils) == 120
    assert (emils.steering == recording.steering[120:]).all()
    with pytest.raises(ValueError, match="no rows of max: the drivers are ada, emil"):
        recording.of(("max",))


def test_too_few_pictures_are_refused() -> None:
    with pytest.raises(ValueError, match=r"3 pictures of 3 tracks x 6 drivers x 2 days"):
        record(3)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "is not a recording"), (b"rubbish" * 9, "is not a recording")],
)
def test_a_file_that_is_no_recording_is_refused(
    tmp_path: Path, content: bytes, message: str
) -> None:
    (tmp_path / "r").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        recordings.load(tmp_path / "r")


def test_a_safetensors_file_of_something_else_is_refused(tmp_path: Path) -> None:
    save_file({"w": np.zeros(3)}, str(tmp_path / "r"), metadata={"x": json.dumps(1)})
    with pytest.raises(ValueError, match=r"it says no format, not dynavg\.driving\.recording/1"):
        recordings.load(tmp_path / "r")


def test_a_missing_recording_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no recording at"):
        recordings.load(tmp_path / "nothing")
