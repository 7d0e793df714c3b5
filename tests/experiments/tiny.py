"""The smallest specs that do something."""

from typing import Any

import torch

from dynavg.experiments.spec import Spec

DYNAMIC = {"kind": "dynamic", "delta": 0.05, "every": 1}
PERIODIC = {"kind": "periodic", "every": 1}


def spec(**changes: Any) -> Spec:
    """Three learners, a linear model, drifting data with eight observables."""
    settings: dict[str, Any] = {
        "data": {"kind": "drift", "d": 8},
        "model": "tests.experiments.tiny:linear",
        "model_settings": {"in_features": 8, "out_features": 1},
        "loss": "binary_cross_entropy_with_logits",
        "learners": 3,
        "batch_size": 4,
        "rounds": 12,
        "operators": [PERIODIC, DYNAMIC],
    }
    return Spec.model_validate(settings | changes)


def linear(in_features: int, out_features: int) -> Any:
    """A model of one's own, by its import path."""
    return torch.nn.Linear(in_features, out_features)
