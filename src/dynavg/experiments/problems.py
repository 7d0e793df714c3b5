"""The two learning problems that the paper's experiments share, as the beginnings of specs."""

from collections.abc import Sequence
from typing import Any

from dynavg.experiments.spec import Settings, Spec

__all__ = ["drift", "mnist", "sgd"]


def sgd(rate: float) -> Settings:
    """Plain mini-batch SGD."""
    return {"kind": "SGD", "lr": rate}


def mnist(operators: Sequence[Settings | str], *, rate: float = 0.25, **settings: Any) -> Spec:
    """MNIST with the CNN of the paper's Table 1, B = 10."""
    problem: Settings = {"data": {"kind": "mnist"}, "model": "mnist_cnn", "optimizer": sgd(rate)}
    return Spec.model_validate(problem | settings | {"operators": operators})


def drift(operators: Sequence[Settings | str], *, rate: float, **settings: Any) -> Spec:
    """The random graphical model, d = 50, with an MLP 256–64–1 and binary cross-entropy, B = 10."""
    problem: Settings = {
        "data": {"kind": "drift"},
        "model": "drift_mlp",
        "loss": "binary_cross_entropy_with_logits",
        "optimizer": sgd(rate),
    }
    return Spec.model_validate(problem | settings | {"operators": operators})
