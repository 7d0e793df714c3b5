"""The broker: a NATS server's configuration for one fleet, and a server of our own for trying out.

The configuration is what keeps learners apart: with certificates, each process may publish and
subscribe only what `subjects` grants it, and nothing else exists for it, no inbox either.
"""

import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dynavg.engines.fleet.config import FleetConfig
from dynavg.engines.fleet.post import NoBrokerError
from dynavg.engines.fleet.subjects import permissions_of_coordinator, permissions_of_learners

__all__ = ["BROKER_FILE", "broker", "broker_settings", "free_port", "server_program"]

BROKER_FILE = "broker.conf"

READY, FATAL = b"Server is ready", "[FTL]"


def broker_settings(config: FleetConfig, host: str, port: int) -> str:
    """The configuration file, in JSON, which NATS reads too.

    >>> json.loads(broker_settings(FleetConfig(learners=1), "127.0.0.1", 4222))["port"]
    4222
    """
    settings: dict[str, Any] = {
        "host": host,
        "port": port,
        "server_name": f"dynavg-{config.run}",
        "max_payload": max(1024 * 1024, config.chunk_bytes),
        "max_pending": 1024 * 1024 * 1024,
        "write_deadline": "30s",
        "ping_interval": f"{2 * config.ping_seconds:g}s",  # never to who pings by itself
        "max_control_line": 4096,
    }
    if config.credentials is not None:
        own = config.credentials / "broker"
        settings["tls"] = {
            "cert_file": str(own / "certificate.pem"),
            "key_file": str(own / "key.pem"),
            "ca_file": str(own / "ca.pem"),
            "verify_and_map": True,
            "min_version": "1.3",
            "timeout": 10,
        }
        users = {"coordinator": permissions_of_coordinator(config)}
        users |= {name: permissions_of_learners(config, ids) for name, ids in config.hosts.items()}
        settings["authorization"] = {
            "users": [
                {"user": f"CN={name}", "permissions": permissions}
                for name, permissions in users.items()
            ]
        }
    return json.dumps(settings, indent=2)


def server_program() -> str:
    """Where the nats-server program is: beside this Python, or on the path."""
    beside = Path(sys.executable).with_name("nats-server")
    found = str(beside) if beside.exists() else shutil.which("nats-server")
    if found is None:
        raise FileNotFoundError(
            "no program nats-server beside this Python or on the PATH: install dynavg[fleet], or "
            "NATS 2.12 or newer from your system's packages"
        )
    return found


def free_port() -> int:
    """A port of the loopback address that nobody uses at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def broker(file: Path, port: int, seconds: float = 10.0) -> Iterator[subprocess.Popen[bytes]]:
    """A broker with this configuration, listening on loopback; it ends with the block."""
    written = file.with_suffix(".log")
    with written.open("ab") as log:
        before = log.tell()
        process = subprocess.Popen(
            [server_program(), "--config", file.name],
            cwd=file.parent,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        _await(process, port, time.monotonic() + seconds, written, before)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _await(
    process: subprocess.Popen[bytes], port: int, deadline: float, log: Path, before: int
) -> None:
    """Until the server's log says that it is ready: another one's port would open too."""
    while READY not in (said := log.read_bytes()[before:]):
        if process.poll() is not None or time.monotonic() > deadline:
            why = [line for line in said.decode(errors="replace").splitlines() if FATAL in line]
            raise NoBrokerError(
                f"nats-server does not listen on port {port}: "
                + (why[-1].partition(FATAL)[2].strip() if why else f"its log is {log}")
            )
        time.sleep(0.02)
