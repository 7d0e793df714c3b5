"""Faster forms of the torch calls in a user's forward pass, put in their place as they are made.

The user's code runs as it is; inside `Fusing` a call is answered with the same values (to rounding)
in less time:

- convolutions and max-pooling work on channels-last memory: pooling takes a tenth of the time;
- large linear layers multiply through oneDNN, which uses all of a CPU where torch's BLAS may not;
- such a layer's plain SGD update happens inside the backward pass, while its gradient is in cache.

What a call means is not changed here, and what is not in the table is left as it is. Whether a
model gains and comes out the same is tried out before it is used (`fused.can_fuse`).
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from dynavg.learning.early import EarlyUpdates
from dynavg.learning.randomness import KEYED, KeyedRandom

__all__ = ["Fusing"]

LARGE = 1 << 17
"""Weights of a linear layer from which oneDNN's multiplication pays for its call (measured)."""

CONVOLVED = 1 << 20
"""Weights times places of a convolution from which another order of memory pays (measured)."""

POOLED = 1 << 15
"""Numbers in the pictures from which it pays for pooling."""

_linear = torch.ops.mkldnn._linear_pointwise
"""x · Wᵀ + b, through oneDNN; there is no public function for it."""


class Fusing(KeyedRandom):
    """Answers the calls in `_ANSWERS`. One per thread."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.gains = 0
        self.early = EarlyUpdates()

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        self.early.note_uses(args)
        if kwargs:
            self.early.note_uses(kwargs.values())
        answer = _ANSWERS.get(func)
        if answer is None:
            return super().__torch_function__(func, types, args, kwargs)
        return answer(self, func, *args, **(kwargs or {}))

    def backward(self, func: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """The step's own backward pass."""
        self.early.begin_backward()
        return func(*args, **named)

    def convolution(
        self,
        func: Callable[..., Tensor],
        input: Tensor,
        weight: Tensor,
        *args: Any,
        **named: Any,
    ) -> Tensor:
        """A convolution of pictures (batch, channels, height, width)."""
        large = input.ndim == 4 and weight.numel() * (input.numel() // input.shape[1]) >= CONVOLVED
        return func(self._turned(input) if large else input, weight, *args, **named)

    def pooling(
        self, func: Callable[..., Tensor], input: Tensor, *args: Any, **named: Any
    ) -> Tensor:
        """Pooling of pictures."""
        large = input.ndim == 4 and input.numel() >= POOLED
        return func(self._turned(input) if large else input, *args, **named)

    def _turned(self, pictures: Tensor) -> Tensor:
        self.gains += 1
        return _channels_last(pictures)

    def in_rows(
        self, func: Callable[..., Tensor], input: Tensor, *args: Any, **named: Any
    ) -> Tensor:
        """What needs one sample's numbers in the order of the user's dimensions."""
        if input.ndim == 4 and not input.is_contiguous():
            input = _Rows.apply(input)  # type: ignore[no-untyped-call]
        keyed = KEYED.get(func)
        if keyed is None:
            return func(input, *args, **named)
        return keyed(self, func, input, *args, **named)  # type: ignore[no-any-return]

    def linear(
        self, func: Callable[..., Tensor], input: Tensor, weight: Tensor, bias: Tensor | None = None
    ) -> Tensor:
        """A linear layer."""
        if input.ndim != 2 or weight.numel() < LARGE or not isinstance(weight, nn.Parameter):
            return func(input, weight, bias)
        self.gains += 1
        out: Tensor = _Linear.apply(input, weight, bias, self)  # type: ignore[no-untyped-call]
        return out


class _Rows(torch.autograd.Function):
    """Channels-last memory as rows; the gradient goes back as channels-last memory."""

    @staticmethod
    def forward(_: Any, x: Tensor) -> Tensor:
        return x.contiguous()

    @staticmethod
    def backward(_: Any, grad: Tensor) -> Tensor:
        return grad.contiguous(memory_format=torch.channels_last)


class _Linear(torch.autograd.Function):
    """(B, in) × (out, in)ᵀ + (out); plain SGD's update of the weight included where that may be."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, mode: Fusing) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.mode = mode
        out: Tensor = _linear(x, weight, bias, "none", [], "")
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        for_x, for_weight, for_bias, _ = ctx.needs_input_grad
        to_x = _linear(grad, weight.t(), None, "none", [], "") if for_x else None
        to_weight = None
        if for_weight:
            to_weight = _linear(grad.t().contiguous(), x.t(), None, "none", [], "")
            rate = ctx.mode.early.rate(weight)
            if rate is not None:
                weight.add_(to_weight, alpha=-rate)
                to_weight = None
        return to_x, to_weight, grad.sum(0) if for_bias else None, None


def _channels_last(x: Tensor) -> Tensor:
    if x.shape[1] == 1 and x.is_contiguous() and not x.requires_grad:
        # Of one channel both orders are the same memory; the strides tell torch which is meant.
        height, width = x.shape[2:]
        return x.as_strided(x.shape, (height * width, 1, width, 1))
    return x.contiguous(memory_format=torch.channels_last)


_ANSWERS: dict[Callable[..., Any], Callable[..., Any]] = {
    F.conv2d: Fusing.convolution,
    F.max_pool2d: Fusing.pooling,
    F.dropout: Fusing.in_rows,
    torch.flatten: Fusing.in_rows,
    Tensor.flatten: Fusing.in_rows,
    Tensor.reshape: Fusing.in_rows,
    Tensor.view: Fusing.in_rows,
    F.linear: Fusing.linear,
    Tensor.backward: Fusing.backward,
}
