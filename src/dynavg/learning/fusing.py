"""Faster forms of the torch calls in a user's forward pass, put in their place as they are made.

The user's code runs as it is; inside `Fusing` a call is answered with the same values (to rounding)
in less time:

- convolutions and max-pooling work on channels-last memory: pooling takes a tenth of the time;
- large linear layers multiply through oneDNN, which uses all of a CPU where torch's BLAS may not.

What a call means is not changed here, and what is not in the table is left as it is. Whether a
model gains and comes out the same is tried out before it is used (`fused.can_fuse`).

Channels-last memory shows in one way only: numbers in the order of the user's dimensions have to be
copied where torch would have looked at them in place. Who then writes into the copy, or into what
it was copied from, and reads the other, would not see the change. `at_end` finds that and raises,
as do the calls that look at memory itself: in the trial the model is then stepped plainly.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dynavg.learning.randomness import KEYED, KeyedRandom
from dynavg.learning.trial import Unsuitable

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
        super().__init__(seed, _ANSWERS)
        self.gains = 0
        self._copied: list[tuple[Tensor, int]] = []

    def at_end(self) -> None:
        """The step is over: refuse it if something was written where a copy stood for a view."""
        copied, self._copied = self._copied, []
        if any(tensor._version != version for tensor, version in copied):
            raise Unsuitable("operations in place on a view of a picture")

    def convolution(
        self,
        func: Callable[..., Tensor],
        input: Tensor,
        weight: Tensor,
        *args: Any,
        **named: Any,
    ) -> Tensor:
        """A convolution of pictures (batch, channels, height, width)."""
        large = input.ndim == 4 and weight.numel() * input[:, 0].numel() >= CONVOLVED
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
        """What looks at numbers in the order of the user's dimensions."""
        out = func(_rows(input), *args, **named)
        if out.untyped_storage().data_ptr() != input.untyped_storage().data_ptr():
            self._copied += [(input, input._version), (out, out._version)]
        return out

    def dropout(
        self,
        func: Callable[..., Tensor],
        input: Tensor,
        p: float = 0.5,
        training: bool = True,
        inplace: bool = False,
    ) -> Tensor:
        """Dropout, whose mask is drawn in the order of the user's dimensions."""
        return KEYED[func](  # type: ignore[no-any-return]
            self, func, input if inplace else _rows(input), p, training, inplace
        )

    def linear(
        self, func: Callable[..., Tensor], input: Tensor, weight: Tensor, bias: Tensor | None = None
    ) -> Tensor:
        """A linear layer."""
        large = isinstance(weight, nn.Parameter) and weight.numel() >= LARGE
        plain = input.ndim == 2 and input.numel() > 0 and input.dtype is weight.dtype
        if not (large and plain) or torch.is_autocast_enabled("cpu"):
            return func(input, weight, bias)
        self.gains += 1
        out: Tensor = _Linear.apply(input, weight, bias)  # type: ignore[no-untyped-call]
        return out

    def refuse(self, func: Callable[..., Any], *_: Any, **__: Any) -> Any:
        """What would see the order of numbers in memory."""
        raise Unsuitable(f"{func.__name__}, which sees the order of numbers in memory")


class _Rows(torch.autograd.Function):
    """Channels-last memory as rows; the gradient goes back as channels-last memory."""

    @staticmethod
    def forward(_: Any, x: Tensor) -> Tensor:
        return x.contiguous()

    @staticmethod
    def backward(_: Any, grad: Tensor) -> Tensor:
        return grad.contiguous(memory_format=torch.channels_last)


class _Linear(torch.autograd.Function):
    """(B, in) × (out, in)ᵀ + (out)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        out: Tensor = _linear(x, weight, bias, "none", [], "")
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        for_x, for_weight, for_bias = ctx.needs_input_grad
        # oneDNN's function has no derivative of its own; who wants one gets torch's.
        times = torch.matmul if torch.is_grad_enabled() else _product
        return (
            times(grad, weight) if for_x else None,
            times(grad.t(), x) if for_weight else None,
            grad.sum(0) if for_bias else None,
        )


def _product(a: Tensor, b: Tensor) -> Tensor:
    out: Tensor = _linear(a.contiguous(), b.t(), None, "none", [], "")
    return out


def _rows(x: Tensor) -> Tensor:
    if x.ndim != 4 or x.is_contiguous():
        return x
    rows: Tensor = _Rows.apply(x)  # type: ignore[no-untyped-call]
    return rows


def _channels_last(x: Tensor) -> Tensor:
    if x.shape[1] == 1 and x.is_contiguous() and not x.requires_grad:
        # Of one channel both orders are the same memory; the strides tell torch which is meant.
        height, width = x.shape[2:]
        return x.as_strided(x.shape, (height * width, 1, width, 1))
    return x.contiguous(memory_format=torch.channels_last)


_ANSWERS: dict[Callable[..., Any], Callable[..., Any]] = {
    F.conv2d: Fusing.convolution,
    F.max_pool2d: Fusing.pooling,
    F.dropout: Fusing.dropout,
    F.linear: Fusing.linear,
    **dict.fromkeys(
        (
            *(torch.flatten, torch.ravel, torch.reshape),
            *(Tensor.contiguous, Tensor.flatten, Tensor.ravel, Tensor.reshape, Tensor.view),
        ),
        Fusing.in_rows,
    ),
    **dict.fromkeys(
        (torch.as_strided, Tensor.as_strided, Tensor.storage, Tensor.untyped_storage),
        Fusing.refuse,
    ),
}
