from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from dynavg.driving import udacity
from dynavg.driving.recorder import record
from dynavg.driving.recording import Recording

HEADER = "center,left,right,steering,throttle,brake,speed"


def picture(path: Path, grey: int = 90, size: tuple[int, int] = (320, 160)) -> None:
    path.parent.mkdir(exist_ok=True)
    Image.new("RGB", size, (grey, grey, grey)).save(path, quality=95)


def folder(tmp_path: Path, *lines: str, names: tuple[str, ...] = ("c1", "l1", "r1")) -> Path:
    for grey, name in enumerate(names):
        picture(tmp_path / "IMG" / f"{name}.jpg", 50 + 40 * grey)
    (tmp_path / "driving_log.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("separator", [",", ", "])
@pytest.mark.parametrize("where", ["IMG/", "/home/me/sim data/IMG/", "C:\\Users\\Me\\IMG\\", ""])
def test_logs_of_every_kind_are_read(
    tmp_path: Path, header: bool, separator: str, where: str
) -> None:
    names = [f"{where}{name}.jpg" for name in ("c1", "l1", "r1")]
    line = separator.join([*names, "-0.25", "0.9", "0", "30.19"])
    recording = udacity.read(folder(tmp_path, *([HEADER] if header else []), line))
    assert [path.name for path in recording.files] == ["c1.jpg"]
    assert recording.steering.tolist() == [-0.25]
    assert (recording.report.rows, recording.report.faults) == (1, 0)


def test_side_cameras_steer_back_to_the_middle(tmp_path: Path) -> None:
    read = udacity.read(folder(tmp_path, "c1.jpg,l1.jpg,r1.jpg,0.9,0,0,9"), side_correction=0.2)
    assert [path.name for path in read.files] == ["c1.jpg", "l1.jpg", "r1.jpg"]
    # Left: further right, but no further than full lock. Right: further left.
    assert read.steering.tolist() == pytest.approx([0.9, 1.0, 0.7])


def test_samples_are_the_crop_and_the_steering(tmp_path: Path) -> None:
    x, y = udacity.read(folder(tmp_path, "c1.jpg,l1.jpg,r1.jpg,0.5,0,0,9")).dataset()[0]
    assert (x.shape, x.dtype) == ((3, 68, 320), torch.uint8)
    assert x.float().mean().item() == pytest.approx(50, abs=1)
    assert y.tolist() == [0.5]


def test_damaged_rows_and_missing_pictures_are_counted_and_told(tmp_path: Path) -> None:
    place = folder(
        tmp_path,
        HEADER,
        "c1.jpg,l1.jpg,r1.jpg,0.1,0,0,9",
        "c1.jpg,l1.jpg,r1.jpg,0.1",
        "c1.jpg,l1.jpg,r1.jpg,left,0,0,9",
        "c1.jpg,l1.jpg,r1.jpg,nan,0,0,9",
        "c1.jpg,l1.jpg,r1.jpg,7,0,0,9",
        ",l1.jpg,r1.jpg,0.1,0,0,9",
        "gone.jpg,l1.jpg,r1.jpg,0.1,0,0,9",
        "small.jpg,l1.jpg,r1.jpg,0.1,0,0,9",
        "text.jpg,l1.jpg,r1.jpg,0.1,0,0,9",
        "",
    )
    picture(place / "IMG" / "small.jpg", size=(64, 64))
    (place / "IMG" / "text.jpg").write_text("not a picture")
    with pytest.warns(udacity.UdacityWarning, match=r"9 rows, 5 damaged rows .*; 1 pictures are"):
        recording = udacity.read(place)
    report = recording.report
    assert len(recording) == 1
    assert (report.rows, len(report.damaged), report.missing) == (9, 5, ["gone.jpg"])
    assert report.damaged[0].startswith("line 3: 4 columns, not the 7 (center, left")
    assert report.damaged[1] == "line 4: the steering is 'left', not a number"
    assert report.damaged[3] == "line 6: the steering is 7, not between -1 and 1"
    assert report.unusable == [
        "small.jpg: 64 x 64 pixels, not 320 x 160",
        "text.jpg: not a picture",
    ]


def test_a_log_of_five_columns_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"line 1: 5 columns, not the 7 \(center, left, right"):
        udacity.read(folder(tmp_path, "c1.jpg,l1.jpg,r1.jpg,0.1,0"))


def test_a_recording_without_pictures_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "driving_log.csv").write_text("c.jpg,l.jpg,r.jpg,0,0,0,9\n")
    with pytest.raises(ValueError, match=r"nothing in .* can be used: 1 rows.* 1 missing pictures"):
        udacity.read(tmp_path)


def test_an_empty_log_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="can be used: 0 rows"):
        udacity.read(folder(tmp_path, HEADER))


def test_a_folder_without_a_log_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no driving_log\.csv in"):
        udacity.read(tmp_path)


def test_a_picture_that_breaks_off_is_counted_and_the_others_are_used(tmp_path: Path) -> None:
    lines = [f"{name}.jpg,l1.jpg,r1.jpg,0.1,0,0,9" for name in ("c1", "c2")]
    place = folder(tmp_path, *lines, names=("c1", "c2", "l1", "r1"))
    whole = (place / "IMG" / "c1.jpg").read_bytes()
    (place / "IMG" / "c1.jpg").write_bytes(whole[: len(whole) // 2])
    with pytest.warns(
        udacity.UdacityWarning, match=r"1 unusable pictures \(c1.jpg: cannot be read"
    ):
        read = udacity.read(place)
    assert [path.name for path in read.files] == ["c2.jpg"]


def test_a_picture_that_goes_away_after_reading_the_log_is_named(tmp_path: Path) -> None:
    read = udacity.read(folder(tmp_path, "c1.jpg,l1.jpg,r1.jpg,0.1,0,0,9"))
    read.files[0].write_bytes(b"rubbish")
    with pytest.raises(ValueError, match=r"c1.jpg: not a picture"):
        read.pictures()


@pytest.fixture(scope="module")
def own() -> Recording:
    return record(12, tracks=("narrow",), drivers=("ada",), days=1)


def test_our_own_recording_survives_the_udacity_format(own: Recording, tmp_path: Path) -> None:
    udacity.write(own, tmp_path)
    back = udacity.read(tmp_path)
    assert back.report.rows == len(own)
    assert back.steering == pytest.approx(own.steering, abs=1e-6)
    difference = np.abs(back.pictures().astype(int) - own.pictures().astype(int))
    assert difference.mean() < 3  # JPEG
    assert len(udacity.read(tmp_path, side_correction=0.2)) == 3 * len(own)


def test_the_written_left_camera_sees_the_road_further_right(
    own: Recording, tmp_path: Path
) -> None:
    udacity.write(own, tmp_path)

    def paint(side: str) -> float:
        frame = np.asarray(Image.open(tmp_path / "IMG" / f"{side}_000000.jpg"))
        bright = frame[100:130].astype(int).min(axis=2)
        return float(np.argwhere(bright > 0.8 * bright.max())[:, 1].mean())

    assert paint("left") > paint("center") > paint("right")
