"""A fleet as a folder: what `init` writes, and what every process of it reads.

fleet.json      the configuration and where the task comes from
spec.toml       what to learn, where it comes from a spec
broker.conf     for nats-server, started in this folder
ca/             the CA; its key belongs nowhere else
credentials/    a folder per process: coordinator, broker, host-0, …; each goes to its machine
state/          what processes write while they run

Paths in these files begin at the folder, so that it can be copied to another machine.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from dynavg.engines.fleet.broker import BROKER_FILE, broker_settings
from dynavg.engines.fleet.certificates import Authority
from dynavg.engines.fleet.config import CONFIG_FILE, FleetConfig
from dynavg.engines.fleet.task import TaskSource

__all__ = ["Fleet", "folder_of", "init", "load"]


class Fleet(BaseModel):
    """A configuration and where the task comes from: the content of fleet.json."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    config: FleetConfig
    task: TaskSource


def folder_of(place: Path) -> Path:
    """The fleet's folder, named by itself or by a file in it."""
    return place.parent if place.is_file() else place


def load(folder: Path) -> Fleet:
    """The fleet in a folder."""
    path = folder / CONFIG_FILE
    if not path.is_file():
        raise FileNotFoundError(
            f"{folder} holds no fleet ({CONFIG_FILE} is not there): "
            "`dynavg fleet init DIR --learners 10` makes one"
        )
    try:
        fleet = Fleet.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise ValueError(f"{path}: {error}") from None
    config, task, here = fleet.config, fleet.task, folder.resolve()
    places = {
        "folder": here / config.folder,
        "credentials": None if config.credentials is None else here / config.credentials,
    }
    file = None if task.file is None else here / task.file
    return Fleet(
        config=config.model_copy(update=places), task=task.model_copy(update={"file": file})
    )


def init(  # noqa: PLR0913 — each is a choice of its own
    folder: Path,
    config: FleetConfig,
    task: TaskSource,
    *,
    port: int = 4222,
    host: str = "127.0.0.1",
    reached_as: Sequence[str] = ("localhost", "127.0.0.1"),
    tls: bool = True,
    hosts: Iterable[range] | None = None,
    days: int = 365,
) -> Fleet:
    """Make the folder of a new fleet; the broker will listen on `host`.

    Args:
        folder: Must not exist, or be empty.
        config: Its url, folder, credentials and hosts are set here.
        task: What to learn.
        port: The broker's.
        host: Where the broker listens; loopback unless told otherwise.
        reached_as: The broker's names or addresses, the first of them for `config.url`.
        tls: Whether to make certificates; without them everybody on the machine may do everything.
        hosts: Which learners live in one process; None gives each a process of its own.
        days: How long the certificates are valid.
    """
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty: a fleet wants a folder of its own")
    folder.mkdir(parents=True, exist_ok=True)
    blocks = [range(id, id + 1) for id in range(config.learners)] if hosts is None else hosts
    named = {f"host-{block.start}": list(block) for block in blocks}
    config = config.model_copy(
        update={
            "url": f"{'tls' if tls else 'nats'}://{reached_as[0]}:{port}",
            "folder": Path("state"),
            "credentials": Path("credentials") if tls else None,
            "hosts": named,
        }
    )
    if tls:
        authority = Authority(folder / "ca", config.run, days)
        authority.issue(folder / "credentials" / "broker", "broker", reached_as)
        for name in ("coordinator", *named):
            authority.issue(folder / "credentials" / name, name)
    (folder / BROKER_FILE).write_text(broker_settings(config, host, port))
    written = Fleet(config=config, task=task).model_dump_json(indent=2)
    (folder / CONFIG_FILE).write_text(written)
    return load(folder)
