"""What a batch's outputs are worth: shapes that fit, predictions that are correct."""

import math
from collections.abc import Callable, Sequence
from numbers import Real

import torch
from torch import Tensor

__all__ = [
    "Metric",
    "check_count_of",
    "check_loss",
    "check_shapes",
    "counts_of",
    "counts_of_each",
    "default_metric",
]

Metric = Callable[[Tensor, Tensor], Tensor | float]
"""(output, target) -> the number of correct predictions in the batch."""


def check_shapes(output: object, target: Tensor) -> None:
    """Refuse an output and a target that a loss would silently broadcast against each other."""
    if not isinstance(output, Tensor) or output.shape == target.shape:
        return
    classes = not target.is_floating_point() and output.ndim == target.ndim + 1
    if classes and output.shape[1] > 1:
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
    """The loss, if it is one number in a tensor."""
    if not isinstance(loss, Tensor) or loss.ndim != 0:
        came = f"shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else type(loss).__name__
        raise TypeError(f"the loss must be a scalar tensor (shape ()), but is {came}")
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
    if not target.is_floating_point() and output.ndim == 2 and target.ndim == 1:
        return _classes
    one_logit = output.numel() == target.numel() == len(target)
    return _logit if one_logit and bool(((target == 0) | (target == 1)).all()) else None


def check_count_of(metric: Metric, output: Tensor, target: Tensor) -> None:
    """Refuse a metric that does not give one number for a batch."""
    count: object = metric(output, target)
    single = isinstance(count, Tensor) and count.ndim == 0
    if not single and (isinstance(count, Tensor) or not isinstance(count, Real)):
        came = f"shape {tuple(count.shape)}" if isinstance(count, Tensor) else repr(count)
        raise TypeError(
            "metric(output, target) must return one number, how many predictions of the batch are "
            f"correct, but returned {came:.80}"
        )


def counts_of(metric: Metric, output: Tensor, target: Tensor) -> Tensor:
    """The metric of each batch in a stack (batches × batch × …)."""
    if metric is _classes:
        return (output.argmax(2) == target).sum(1)
    if metric is _logit:
        target = target.flatten(1)
        correct = ((output.flatten(1) > 0) == (target > 0.5)).sum(1)
        return torch.where(((target == 0) | (target == 1)).all(1), correct, math.nan)
    counts = [float(metric(*pair)) for pair in zip(output, target, strict=True)]
    return torch.tensor(counts, device=output.device)


@torch.no_grad()
def counts_of_each(metric: Metric, judged: Sequence[Sequence[Tensor]]) -> Tensor:
    """The metric of each (output, target); of known ones of one shape, in one go."""
    if metric in (_classes, _logit) and len({target.shape for _, target in judged}) == 1:
        outputs, targets = (torch.stack(column) for column in zip(*judged, strict=True))
        return counts_of(metric, outputs, targets)
    return torch.tensor([float(metric(output, target)) for output, target in judged])


def _classes(output: Tensor, target: Tensor) -> Tensor:
    return (output.argmax(1) == target).sum()


def _logit(output: Tensor, target: Tensor) -> Tensor:
    """NaN where a target is neither 0 nor 1: the first batch alone does not make a regression a
    classification.
    """
    correct = ((output.reshape(-1) > 0) == (target.reshape(-1) > 0.5)).sum()
    return torch.where(((target == 0) | (target == 1)).all(), correct, math.nan)
