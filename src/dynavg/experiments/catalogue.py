"""The experiments by their names. To add one: a module with an `EXPERIMENT`, and a line here."""

from importlib import import_module

from dynavg.experiments.experiment import Experiment

__all__ = ["NAMES", "experiment_named"]

NAMES = ("E1", "E2", "E3", "E4", "E5", "E6", "E7", "E8", "E9", "E10")


def experiment_named(name: str) -> Experiment:
    """The experiment of that name; its module is imported now, since some need extras.

    >>> experiment_named("e6").title
    'Concept drift'
    """
    if name.upper() not in NAMES:
        raise ValueError(f"there is no experiment {name!r}; there are {', '.join(NAMES)}")
    module = import_module(f"dynavg.experiments.e{int(name[1:]):02d}")
    found: Experiment = module.EXPERIMENT
    return found
