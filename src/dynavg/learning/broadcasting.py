"""A user's forward pass and loss on many learners at once, by a leading learner dimension.

The module's parameters hold (L, *shape) and its input (L, B, …); inside `Broadcasting` the user's
code sees the shapes of one learner, and each torch call is answered for all of them. A call outside
the tables raises `NotBroadcastable`: never a guess. Whether a model can be run this way is tried
out against the plain way before it is used (`stacked.can_stack`).
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.overrides import TorchFunctionMode

from dynavg.learning.early import EarlyUpdates
from dynavg.learning.randomness import keep_mask
from dynavg.learning.trial import Unsuitable

__all__ = ["Broadcasting", "NotBroadcastable"]


class NotBroadcastable(Unsuitable):
    """A torch call that the tables do not know with a leading learner dimension."""


class Broadcasting(TorchFunctionMode):
    """Answers torch calls for all learners of a block. One per thread and block."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.seed = seed
        self.learners: Iterable[int] = ()
        self.round = 0
        self.calls = 0
        self.early = EarlyUpdates()

    def aim(self, learners: Iterable[int], round: int) -> None:
        """The next random calls belong to these learners and this round."""
        self.learners, self.round, self.calls = learners, round, 0

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        named = kwargs or {}
        self.early.note_uses(args)
        self.early.note_uses(named.values())
        if func is F.linear:
            return self._linear(*args, **named)
        if func in _ELEMENTWISE:
            return func(*_aligned(args), **named)
        if func is F.dropout:
            return self._dropout(*args, **named)
        answer = _ANSWERS.get(func)
        if answer is None:
            raise NotBroadcastable(getattr(func, "__qualname__", str(func)))
        return answer(*args, **named)

    def _dropout(
        self, input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
    ) -> Tensor:
        """Each learner's mask as it would draw it alone."""
        if inplace or input.device.type != "cpu":
            raise NotBroadcastable("dropout in place or off the CPU")
        if not (training and 0 < p < 1):
            return F.dropout(input, p, training)
        self.calls += 1
        drawn = [
            keep_mask(input.shape[1:], p, self.seed, learner, self.round, self.calls)
            for learner in self.learners
        ]
        keep = torch.stack([mask for mask, _ in drawn])
        return (input * keep).mul_(drawn[0][1])

    def _linear(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        if weight.ndim != 3 or x.ndim < 2 or x.shape[0] != weight.shape[0]:
            raise NotBroadcastable("linear with operands of other ranks")
        flat = x.reshape(x.shape[0], -1, x.shape[-1])
        out: Tensor = _StackedLinear.apply(flat, weight, bias, self.early)  # type: ignore[no-untyped-call]
        return out if x.ndim == 3 else out.view(*x.shape[:-1], weight.shape[1])


class _StackedLinear(torch.autograd.Function):
    """(L, B, in) × (L, out, in)ᵀ + (L, out), with gradients in the layout of the weights."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, early: EarlyUpdates
    ) -> Tensor:
        ctx.save_for_backward(x, weight, bias)
        ctx.early = early
        turned = weight.transpose(1, 2)
        return torch.bmm(x, turned) if bias is None else torch.baddbmm(bias[:, None], x, turned)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, bias = ctx.saved_tensors
        for_x, for_weight, for_bias, _ = ctx.needs_input_grad
        to_x = torch.bmm(grad, weight) if for_x else None
        to_weight = to_bias = None
        if for_weight:
            rate = ctx.early.rate(weight)
            if rate is None:
                to_weight = torch.bmm(grad.transpose(1, 2), x)
            else:
                weight.baddbmm_(grad.transpose(1, 2), x, alpha=-rate)
        if for_bias:
            to_bias = grad.sum(1)
            rate = ctx.early.rate(bias)
            if rate is not None:
                bias.add_(to_bias, alpha=-rate)
                to_bias = None
        return to_x, to_weight, to_bias, None


def _aligned(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Operands padded behind the learner dimension, as broadcasting for one learner would."""
    tensors = [arg for arg in args if isinstance(arg, Tensor) and arg.ndim > 0]
    if len(tensors) < 2:
        return args
    if len({tensor.shape[0] for tensor in tensors}) > 1:
        raise NotBroadcastable("an operand without a learner dimension")
    most = max(tensor.ndim for tensor in tensors)

    def padded(arg: Any) -> Any:
        if not isinstance(arg, Tensor) or arg.ndim in (0, most):
            return arg
        return arg.view(arg.shape[0], *(1,) * (most - arg.ndim), *arg.shape[1:])

    return tuple(padded(arg) for arg in args)


def _shifted(dim: int) -> int:
    """One learner's dimension in the stack; negative ones count from the end and stay."""
    return dim + 1 if dim >= 0 else dim


def _along(func: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A function along one named dimension."""

    def answer(x: Tensor, dim: int | None = None, *rest: Any, **named: Any) -> Tensor:
        if dim is None or rest:
            raise NotBroadcastable(f"{func.__name__} without dim")
        return func(x, _shifted(dim), **named)

    return answer


def _reduced(func: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A reduction to one number per learner."""

    def answer(x: Tensor, *rest: Any, **named: Any) -> Tensor:
        if rest or named or x.ndim < 2:
            raise NotBroadcastable(f"{func.__name__} over single dimensions")
        return func(x.flatten(1), 1)

    return answer


def _flatten(x: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    return torch.flatten(x, _shifted(start_dim), _shifted(end_dim))


def _squeeze(x: Tensor, dim: int | None = None) -> Tensor:
    if dim is None:
        return x.reshape(x.shape[0], *(size for size in x.shape[1:] if size != 1))
    return x.squeeze(_shifted(dim))


def _reshape(x: Tensor, *shape: Any) -> Tensor:
    sizes = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
    return x.reshape(x.shape[0], *sizes)


def _size(x: Tensor, dim: int | None = None) -> Any:
    return x.shape[1:] if dim is None else x.shape[1:][dim]


def _loss(func: Callable[..., Tensor], classes: bool = False) -> Callable[..., Tensor]:
    """One loss per learner; `classes`: (L, B, C) logits against (L, B) class numbers."""

    def answer(
        input: Tensor, target: Tensor, *rest: Any, reduction: str = "mean", **named: Any
    ) -> Tensor:
        settings = {
            name: value
            for name, value in named.items()
            if name not in _NEUTRAL or isinstance(value, Tensor) or value != _NEUTRAL[name]
        }
        if rest or settings or reduction not in ("mean", "sum"):
            raise NotBroadcastable(f"{func.__name__} with {settings or 'other arguments'}")
        learners = input.shape[0]
        counted: Tensor | int = input[0].numel()
        if classes:
            if input.ndim != 3 or target.ndim != 2 or target.is_floating_point():
                raise NotBroadcastable(f"{func.__name__} of other shapes than (B, C) and (B,)")
            counted = (target != _IGNORED).sum(1)
            input, target = input.flatten(0, 1), target.flatten(0, 1)
        elif input.shape != target.shape:
            raise NotBroadcastable(f"{func.__name__} that broadcasts its target")
        each = func(input, target, reduction="none").view(learners, -1)
        return each.sum(1) / counted if reduction == "mean" else each.sum(1)

    return answer


_IGNORED = -100
"""torch's default for class numbers that count neither in the loss nor in its mean."""

_NEUTRAL = {
    **dict.fromkeys(("weight", "size_average", "reduce", "pos_weight")),
    "ignore_index": _IGNORED,
    "label_smoothing": 0.0,
}
_ELEMENTWISE: frozenset[Callable[..., Any]] = frozenset(
    {
        *(F.elu, F.gelu, F.hardtanh, F.leaky_relu, F.logsigmoid, F.relu, F.sigmoid, F.silu),
        *(F.softplus, F.tanh),
        *(torch.abs, torch.add, torch.cos, torch.div, torch.exp, torch.mul, torch.pow),
        *(torch.relu, torch.sigmoid, torch.sin, torch.sqrt, torch.square, torch.sub, torch.tanh),
        *(Tensor.abs, Tensor.add, Tensor.div, Tensor.exp, Tensor.mul, Tensor.pow, Tensor.relu),
        *(Tensor.sigmoid, Tensor.sqrt, Tensor.square, Tensor.sub, Tensor.tanh),
        *(Tensor.__add__, Tensor.__mul__, Tensor.__neg__, Tensor.__pow__, Tensor.__radd__),
        *(Tensor.__rmul__, Tensor.__rsub__, Tensor.__sub__, Tensor.__truediv__),
    }
)
_ANSWERS: dict[Callable[..., Any], Callable[..., Any]] = {
    F.softmax: _along(F.softmax),
    torch.softmax: _along(torch.softmax),
    F.log_softmax: _along(F.log_softmax),
    torch.log_softmax: _along(torch.log_softmax),
    torch.mean: _reduced(torch.mean),
    Tensor.mean: _reduced(torch.mean),
    torch.sum: _reduced(torch.sum),
    Tensor.sum: _reduced(torch.sum),
    torch.flatten: _flatten,
    Tensor.flatten: _flatten,
    torch.squeeze: _squeeze,
    Tensor.squeeze: _squeeze,
    Tensor.view: _reshape,
    Tensor.reshape: _reshape,
    Tensor.size: _size,
    Tensor.shape.__get__: _size,  # type: ignore[attr-defined]
    Tensor.dim: lambda x: x.ndim - 1,
    F.cross_entropy: _loss(F.cross_entropy, classes=True),
    F.nll_loss: _loss(F.nll_loss, classes=True),
    F.mse_loss: _loss(F.mse_loss),
    F.l1_loss: _loss(F.l1_loss),
    F.smooth_l1_loss: _loss(F.smooth_l1_loss),
    F.binary_cross_entropy: _loss(F.binary_cross_entropy),
    F.binary_cross_entropy_with_logits: _loss(F.binary_cross_entropy_with_logits),
}
