"""What a batch's outputs are worth: shapes that fit, predictions that are correct."""

from collections.abc import Callable

import torch
from torch import Tensor

__all__ = ["Metric", "check_loss", "check_shapes", "default_metric"]

Metric = Callable[[Tensor, Tensor], Tensor | float]
"""(output, target) -> the number of correct predictions in the batch."""


def check_shapes(output: object, target: Tensor) -> None:
    """Refuse an output and a target that a loss would silently broadcast against each other."""
    if not isinstance(output, Tensor) or output.shape == target.shape:
        return
    if not target.is_floating_point() and output.ndim == target.ndim + 1:
        return
    try:
        torch.broadcast_shapes(output.shape, target.shape)
    except RuntimeError:
        return
    raise ValueError(
        f"the model's output has shape {tuple(output.shape)}, the target {tuple(target.shape)}: "
        "a loss would broadcast them. Give both the same shape (or targets as class numbers)"
    )


def check_loss(loss: object) -> Tensor:
    """The loss, if it is one number that can be differentiated."""
    if not isinstance(loss, Tensor) or loss.ndim != 0:
        came = f"shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else type(loss).__name__
        raise TypeError(f"the loss must return a scalar tensor (shape ()), but returned {came}")
    return loss


def default_metric(output: object, target: Tensor) -> Metric | None:
    """The metric that output and target suggest: classes, one logit with 0/1 targets, or none.

    >>> metric = default_metric(torch.zeros(2, 3), torch.tensor([0, 1]))
    >>> int(metric(torch.eye(3)[:2], torch.tensor([0, 2])))
    1
    >>> default_metric(torch.zeros(2, 1), torch.tensor([[0.3], [2.5]])) is None
    True
    """
    if not isinstance(output, Tensor):
        return None
    if not target.is_floating_point():
        return _classes if output.ndim == 2 and target.ndim == 1 else None
    one_logit = output.numel() == target.numel() == len(target)
    return _logit if one_logit and bool(((target == 0) | (target == 1)).all()) else None


def _classes(output: Tensor, target: Tensor) -> Tensor:
    return (output.argmax(1) == target).sum()


def _logit(output: Tensor, target: Tensor) -> Tensor:
    return ((output > 0) == (target > 0.5)).sum()
