"""Who speaks where: the names of the broker's subjects, and what follows for permissions.

Each learner has two subjects of its own, one up and one down; the coordinator has all. A broker
that knows who is who can so hold everyone to what is theirs, whatever a message claims.
"""

from collections.abc import Iterable
from typing import Any

from dynavg.engines.fleet.config import FleetConfig

__all__ = ["down", "permissions_of_coordinator", "permissions_of_learners", "sender", "up"]

Permissions = dict[str, Any]


def up(config: FleetConfig, id: int | str) -> str:
    """Where learner `id` speaks; "*" for all of them."""
    return f"dynavg.{config.run}.{config.group}.up.{id}"


def down(config: FleetConfig, id: int | str) -> str:
    """Where learner `id` listens.

    >>> down(FleetConfig(learners=2), 1)
    'dynavg.run.0.down.1'
    """
    return f"dynavg.{config.run}.{config.group}.down.{id}"


def sender(subject: str) -> int:
    """The learner whose subject this is."""
    return int(subject.rpartition(".")[2])


def permissions_of_learners(config: FleetConfig, ids: Iterable[int]) -> Permissions:
    """A process may speak and listen for these learners only: no wildcard, no inbox."""
    ids = tuple(ids)
    return {
        "publish": {"allow": [up(config, id) for id in ids]},
        "subscribe": {"allow": [down(config, id) for id in ids]},
    }


def permissions_of_coordinator(config: FleetConfig) -> Permissions:
    """The coordinator hears all learners and speaks to all."""
    return {
        "publish": {"allow": [down(config, "*")]},
        "subscribe": {"allow": [up(config, "*")]},
    }
