"""Files of public datasets: found in a folder, else fetched once, verified and cached.

Every file is known by its name and the MD5 of its raw content; MD5 because that is what the
datasets publish: it tells damage, not malice. A folder that the user names is the only place
looked at. Otherwise the cache is tried, then source after source; what a source delivers enters the
cache only if all of it is right.
"""

import gzip
import hashlib
import os
import sys
import tempfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from dynavg.data.sources import Source, SourceFailed

__all__ = ["DataUnavailable", "Tell", "cache_folder", "obtain", "say"]

Tell: TypeAlias = Callable[[str], None]
"""Is told, in one line at a time, what is going on."""


class DataUnavailable(Exception):
    """A dataset's files could not be had; the message says what was tried and what to do."""


class _Unfit(Exception):
    """A file is missing or is not what it should be; the message is the reason."""


def say(line: str) -> None:
    """Write a line to standard error: what `Tell` is by default."""
    sys.stderr.write(f"dynavg: {line}\n")
    sys.stderr.flush()


def cache_folder() -> Path:
    """The folder for dynavg's cached data where this platform's users expect it."""
    if sys.platform == "win32":
        home = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        home = Path.home() / "Library" / "Caches"
    else:
        home = Path(os.environ.get("XDG_CACHE_HOME") or "")
        if not home.is_absolute():  # the XDG specification: relative paths are to be ignored
            home = Path.home() / ".cache"
    return home / "dynavg"


def obtain(
    dataset: str,
    digests: Mapping[str, str],
    sources: Sequence[Source],
    *,
    folder: Path | None = None,
    cache: Path,
    tell: Tell = say,
) -> dict[str, bytes]:
    """The raw content of each file in `digests` (its name: its MD5), verified.

    >>> import tempfile
    >>> def deliver(names, folder):
    ...     (folder / "greeting").write_bytes(b"hello")
    >>> md5 = {"greeting": "5d41402abc4b2a76b9719d911017c592"}
    >>> with tempfile.TemporaryDirectory() as cache:
    ...     obtain("words", md5, [Source("me", deliver)], cache=Path(cache), tell=print)
    words: trying me
    words: fetched from me
    {'greeting': b'hello'}
    """
    if folder is not None:
        try:
            return _verified(folder, digests)
        except _Unfit as error:
            raise DataUnavailable(
                f"{dataset} is not in the folder that was given: {error}. {_wanted(digests)}"
            ) from error
    place = cache / dataset
    try:
        return _verified(place, digests)
    except _Unfit as error:
        failures = [f"cache: {error}"]
        if place.exists():
            tell(f"{dataset}: the cache is of no use ({error}); fetching anew")
    for source in sources:
        tell(f"{dataset}: trying {source.name}")
        with tempfile.TemporaryDirectory(prefix="dynavg-") as temporary:
            try:
                source.deliver(tuple(digests), Path(temporary))
                content = _verified(Path(temporary), digests)
            except (SourceFailed, _Unfit) as error:
                failures.append(f"{source.name}: {error}")
                tell(f"{dataset}: {failures[-1]}")
                continue
        tell(f"{dataset}: fetched from {source.name}")
        _store(content, place, tell)
        return content
    tried = "".join(f"\n  - {failure}" for failure in failures)
    raise DataUnavailable(
        f"{dataset} could not be had. Tried:{tried}\n"
        f"Get its files elsewhere and name their folder: --data FOLDER on the command line, "
        f"folder= in Python. {_wanted(digests)}"
    )


def _wanted(digests: Mapping[str, str]) -> str:
    files = "".join(f"\n  - {name}  (MD5 of the raw file: {md5})" for name, md5 in digests.items())
    return f"The folder must hold these files, raw or with .gz:{files}"


def _verified(folder: Path, digests: Mapping[str, str]) -> dict[str, bytes]:
    return {name: _read(folder, name, digest) for name, digest in digests.items()}


def _read(folder: Path, name: str, digest: str) -> bytes:
    raw, packed = folder / name, folder / f"{name}.gz"
    try:
        if raw.is_file():
            path, content = raw, raw.read_bytes()
        elif packed.is_file():
            path, content = packed, gzip.decompress(packed.read_bytes())
        else:
            raise _Unfit(f"neither {name} nor {name}.gz is in {folder}")
    except (OSError, EOFError, zlib.error) as error:
        raise _Unfit(f"{name} in {folder} cannot be read ({error})") from error
    found = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if found != digest:
        raise _Unfit(f"{path} is damaged or another file: MD5 {found} instead of {digest}")
    return content


def _store(content: Mapping[str, bytes], place: Path, tell: Tell) -> None:
    """Each file appears in the cache complete or not at all, whoever else writes there."""
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place, prefix=".") as aside:
            for name, raw in content.items():
                (Path(aside) / name).write_bytes(raw)
                (Path(aside) / name).replace(place / name)
    except OSError as error:
        tell(f"the data could not be cached in {place} and will be fetched again: {error}")
