"""Plain SGD's updates: done for torch's optimiser, some of them within the backward pass.

Plain SGD does nothing with a gradient but subtract it. Doing so where the gradient is made, while
it is in cache, saves writing it out and reading it again; it uses the gradient up, so it is done
only where nobody else can miss it: the optimiser is exactly `torch.optim.SGD` without momentum,
decay or hooks, and the weight has been used once in a step whose every call is known. Whoever asks
for the rate does that update itself; `finish` does the others, in torch's arithmetic and without
its book-keeping, which costs a small network as much as a layer.
"""

from collections.abc import Iterable

import torch
from torch import Tensor

__all__ = ["EarlyUpdates"]


class EarlyUpdates:
    """The learning rates of such weights, for the step that is being done."""

    def __init__(self) -> None:
        self._optimizer: torch.optim.Optimizer | None = None
        self._rates: dict[int, float] = {}
        self._uses: dict[int, int] = {}
        self._in_backward = False

    def begin(self, optimizer: torch.optim.Optimizer) -> None:
        """A new step: no weight used so far."""
        self._optimizer = optimizer
        self._rates = _plain_rates(optimizer)
        self._uses = dict.fromkeys(self._rates, 0)
        self._in_backward = False

    def note_uses(self, args: Iterable[object]) -> None:
        """Count the weights among the arguments of a call of the forward pass."""
        if not self._uses:
            return
        for arg in args:
            if id(arg) in self._uses:
                self._uses[id(arg)] += 1
            elif isinstance(arg, list | tuple):
                self.note_uses(arg)

    def begin_backward(self) -> None:
        """From here on gradients are those of the step, not some that the forward pass asks for."""
        self._in_backward = True

    def rate(self, weight: Tensor) -> float | None:
        """The learning rate with which the weight may be updated now; None if it may not."""
        alone = self._in_backward and self._uses.get(id(weight)) == 1
        return self._rates[id(weight)] if alone else None

    @torch.no_grad()
    def finish(self) -> None:
        """What is left of the optimiser's step."""
        assert self._optimizer is not None, "begun before"
        if not self._rates:
            self._optimizer.step()
            return
        for group in self._optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.add_(parameter.grad, alpha=-self._rates[id(parameter)])


def _plain_rates(optimizer: torch.optim.Optimizer) -> dict[int, float]:
    """The learning rate of each parameter, if all are updated by w −= rate · gradient alone."""
    hooks = optimizer._optimizer_step_pre_hooks or optimizer._optimizer_step_post_hooks
    if type(optimizer) is not torch.optim.SGD or hooks or "step" in vars(optimizer):
        return {}
    groups = optimizer.param_groups
    if any(group["momentum"] or group["weight_decay"] or group["maximize"] for group in groups):
        return {}
    return {id(parameter): float(group["lr"]) for group in groups for parameter in group["params"]}
