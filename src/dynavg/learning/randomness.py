"""Random functions inside a model, keyed to (seed, learner, round, call) instead of a generator.

torch's dropout draws from one generator per process: in threads its order would be chance. Inside
`KeyedRandom` the functions in `KEYED` take their randomness from a place instead, whatever thread
runs them, and the user's generator is untouched. The mode costs some 50 µs a step, so it is entered
only where `probe` saw one of these functions. What escapes it (dropout inside a fused kernel) moves
the global generator; `probe` sees that too, and such a model runs on one worker, reseeded per
learner and round. So does one that draws during the backward pass, where the mode does not reach:
a checkpoint's second forward pass must draw what the first one drew.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from dynavg import seeds

__all__ = ["KEYED", "KeyedRandom", "Randomness", "forked", "keep_mask", "probe", "reseed"]


class Randomness(Enum):
    """How a model draws: not at all, through functions that can be keyed, or past them."""

    NONE = "none"
    KEYED = "keyed"
    ESCAPES = "escapes"


def keep_mask(
    shape: Iterable[int], p: float, seed: int, learner: int, round: int, call: int
) -> tuple[Tensor, float]:
    """Which entries dropout keeps (0 or 1, on the CPU), and what they are multiplied with.

    Drawing is most of dropout's cost, so an entry gets one byte where that gives p exactly
    (0.5, 0.25) and two otherwise; the factor belongs to the probability that came of it.
    """
    size = torch.Size(shape)
    width = np.int8 if float(p * 2**8).is_integer() else np.int16
    values = 2 ** (8 * width().itemsize)
    source = seeds.generator(seed, "dropout", learner, round, call)
    # Raw words, but unlike `random_raw` this lets other threads run meanwhile.
    words = source.integers(
        0, 2**64 - 1, -(-size.numel() * width().itemsize // 8), np.uint64, endpoint=True
    )
    dropped = min(int(p * values + 0.5), values - 1)
    # Uniform words read as signed numbers: `dropped` of them lie below this bound.
    keep = words.view(width)[: size.numel()] >= width(dropped - values // 2)
    # torch multiplies with small numbers in a fraction of the time that it takes with booleans.
    return torch.from_numpy(keep.view(np.int8)).view(size), values / (values - dropped)


class KeyedRandom(TorchFunctionMode):
    """Replaces random functions by ones keyed to where `aim` points. One per thread."""

    def __init__(
        self, seed: int, others: Mapping[Callable[..., Any], Callable[..., Any]] | None = None
    ) -> None:
        """`others`: functions that are replaced as well, by the rule of `KEYED`."""
        super().__init__()
        self._answers = {**KEYED, **(others or {})}
        self.seed = seed
        self.learner = 0
        self.round = 0
        self.calls = 0

    def aim(self, learner: int, round: int) -> None:
        """The next random calls belong to this learner and round."""
        self.learner, self.round, self.calls = learner, round, 0

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        answer = self._answers.get(func)
        if answer is None:
            return func(*args, **(kwargs or {}))
        return answer(self, func, *args, **(kwargs or {}))

    def next_call(self) -> int:
        """The number of the next random call of this learner and round."""
        self.calls += 1
        return self.calls

    def generator(self, device: torch.device) -> torch.Generator:
        """A fresh torch generator at the next place."""
        place = seeds.integer(self.seed, "torch", self.learner, self.round, self.next_call())
        return torch.Generator(device).manual_seed(place)

    def mask(self, shape: Iterable[int], p: float, device: torch.device) -> tuple[Tensor, float]:
        """Which entries dropout keeps at the next place, and what they are multiplied with."""
        call = self.next_call()
        if device.type == "cpu":
            return keep_mask(shape, p, self.seed, self.learner, self.round, call)
        place = seeds.integer(self.seed, "dropout", self.learner, self.round, call)
        source = torch.Generator(device).manual_seed(place)
        return torch.rand(tuple(shape), device=device, generator=source) >= p, 1 / (1 - p)


def _dropout(dims: Callable[[Tensor], Iterable[int]]) -> Callable[..., Tensor]:
    """Dropout whose mask has the shape that `dims` gives and is broadcast over the rest. Where it
    draws nothing, torch's own function does the rest.
    """

    def keyed(
        mode: KeyedRandom,
        func: Callable[..., Tensor],
        input: Tensor,
        p: float = 0.5,
        training: bool = True,
        inplace: bool = False,
        train: bool = True,
    ) -> Tensor:
        if not (training and train and 0 < p < 1):
            flags = (training and train, inplace) if inplace else (training and train,)
            return func(input, p, *flags)
        keep, scale = mode.mask(dims(input), p, input.device)
        if inplace:
            return input.mul_(keep).mul_(scale)
        return (input * keep).mul_(scale)

    return keyed


def _channels(unbatched: int | None) -> Callable[[Tensor], Iterable[int]]:
    """Whole channels at once. As in torch, the channel is the second dimension, or the first where
    an input of so many dimensions is one sample.
    """

    def dims(input: Tensor) -> Iterable[int]:
        first = 1 if input.ndim == unbatched else 2
        return (*input.shape[:first], *(1,) * (input.ndim - first))

    return dims


def _with_generator(mode: KeyedRandom, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Any torch function that takes a `generator`; one that the user brings is respected."""
    if kwargs.get("generator") is None:
        tensor = next((arg for arg in args if isinstance(arg, Tensor)), None)
        named = kwargs.get("device")
        default = torch.get_default_device() if tensor is None else tensor.device
        kwargs["generator"] = mode.generator(torch.device(named) if named else default)
    return func(*args, **kwargs)


_DRAWING = (
    torch.bernoulli,
    torch.multinomial,
    torch.normal,
    torch.poisson,
    torch.rand,
    torch.rand_like,
    torch.randint,
    torch.randint_like,
    torch.randn,
    torch.randn_like,
    torch.randperm,
    Tensor.bernoulli,
    Tensor.bernoulli_,
    Tensor.cauchy_,
    Tensor.exponential_,
    Tensor.geometric_,
    Tensor.log_normal_,
    Tensor.multinomial,
    Tensor.normal_,
    Tensor.random_,
    Tensor.uniform_,
)
KEYED: dict[Callable[..., Any], Callable[..., Any]] = {
    **dict.fromkeys(_DRAWING, _with_generator),
    F.dropout: _dropout(lambda input: input.shape),
    torch.dropout: _dropout(lambda input: input.shape),
    F.dropout1d: _dropout(_channels(2)),
    F.dropout2d: _dropout(_channels(None)),
    F.dropout3d: _dropout(_channels(4)),
}
"""What replaces which function: called with the mode, the function and the function's arguments."""


def probe(step: Callable[[], object], seed: int) -> Randomness:
    """How `step` draws. It runs once, in a forked random state, with its draws keyed.

    >>> probe(lambda: torch.ones(3).sum(), seed=0)
    <Randomness.NONE: 'none'>
    >>> probe(lambda: F.dropout(torch.ones(3)), seed=0)
    <Randomness.KEYED: 'keyed'>
    >>> probe(lambda: F.alpha_dropout(torch.ones(3), training=True), seed=0)
    <Randomness.ESCAPES: 'escapes'>
    """
    mode, backward = KeyedRandom(seed), _BackwardDraws()
    with forked():
        before = _global_states()
        try:
            with mode, backward:
                step()
        except Exception:
            if not backward.seen:
                raise
            step()  # a checkpoint noticed that its second pass came out otherwise: without the mode
        if backward.seen or before != _global_states():
            return Randomness.ESCAPES
    return Randomness.KEYED if mode.calls else Randomness.NONE


class _BackwardDraws(TorchDispatchMode):
    """Notes whether anything random was drawn during a backward pass."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen = False

    def __torch_dispatch__(
        self,
        func: Any,
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if (
            torch.Tag.nondeterministic_seeded in func.tags
            and torch._C._current_graph_task_id() >= 0
        ):
            self.seen = True
        return func(*args, **(kwargs or {}))


@contextmanager
def forked() -> Iterator[None]:
    """Afterwards the global generators of torch, NumPy and Python are as they were."""
    python, array = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        with torch.random.fork_rng():
            yield
    finally:
        random.setstate(python)
        np.random.set_state(array)  # noqa: NPY002


def reseed(seed: int) -> None:
    """Put the global generators of torch, NumPy and Python at one place."""
    torch.manual_seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002
    random.seed(seed)


def _global_states() -> list[object]:
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    words = np.random.get_state()  # noqa: NPY002
    torches = [state.numpy().tobytes() for state in (torch.get_rng_state(), *cuda)]
    return [*torches, [np.asarray(word).tobytes() for word in words], random.getstate()]
