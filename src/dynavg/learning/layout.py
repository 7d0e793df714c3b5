"""How a module's tensors lie in one row: trainable parameters first, then floating buffers.

A row is what a learner *is* to the rest of the system. Distances run over the parameters only;
what travels is the row, or its parameters alone where buffers stay local. The other buffers are
neither averaged nor sent and lie elsewhere: integers (such as BatchNorm's counters), and masks that
hold infinities from the start, which no average and no check for divergence should meet.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

__all__ = ["Layout", "refuse_lazy"]


@dataclass(frozen=True, slots=True)
class Layout:
    """Names and shapes of what lies in a row, in order."""

    names: tuple[str, ...]
    shapes: tuple[torch.Size, ...]
    buffer_names: tuple[str, ...]
    buffer_shapes: tuple[torch.Size, ...]
    dtype: torch.dtype

    @classmethod
    def of(cls, module: nn.Module) -> "Layout":
        """The layout of a module whose trainable parameters share one floating dtype."""
        trainable = _trainable(module)
        if not trainable:
            raise ValueError(f"{type(module).__name__} has no trainable parameters to average")
        dtype = next(iter(trainable.values())).dtype
        buffers = _floating_buffers(module)
        for name, tensor in (trainable | buffers).items():
            if tensor.dtype != dtype or not dtype.is_floating_point:
                raise TypeError(
                    f"{name} is {tensor.dtype}, the first parameter is {dtype}: all trainable "
                    "parameters and floating buffers must share one floating dtype (pass dtype=)"
                )
        return cls(
            tuple(trainable),
            tuple(tensor.shape for tensor in trainable.values()),
            tuple(buffers),
            tuple(tensor.shape for tensor in buffers.values()),
            dtype,
        )

    @property
    def parameters(self) -> int:
        """P, the number of trainable parameters."""
        return sum(shape.numel() for shape in self.shapes)

    @property
    def width(self) -> int:
        """The length of a row: P and the floating buffers."""
        return self.parameters + sum(shape.numel() for shape in self.buffer_shapes)

    @property
    def signature(self) -> int:
        """64 bits that tell networks apart: of names, shapes and dtype."""
        text = repr((self.names, self.shapes, self.buffer_names, self.buffer_shapes, self.dtype))
        data = text.encode()
        return zlib.crc32(data) << 32 | zlib.crc32(data[::-1])

    def views(self, row: Tensor) -> Iterator[Tensor]:
        """The row's pieces as views in their shapes: parameters, then buffers. Of several rows
        (learners × width), each piece is a stack (learners × shape).
        """
        start = 0
        for shape in (*self.shapes, *self.buffer_shapes):
            stop = start + shape.numel()
            yield row[..., start:stop].view((*row.shape[:-1], *shape))
            start = stop

    def slots(self, module: nn.Module) -> list[Tensor]:
        """The module's tensors in the order of `views`."""
        buffers = dict(module.named_buffers())
        return [*_trainable(module).values(), *(buffers[name] for name in self.buffer_names)]

    def counters(self, module: nn.Module) -> list[Tensor]:
        """The module's buffers that stay with a learner whatever happens."""
        return [buffer for name, buffer in module.named_buffers() if name not in self.buffer_names]

    def write(self, module: nn.Module, row: Tensor) -> None:
        """The module's values into a row."""
        with torch.no_grad():
            for view, tensor in zip(self.views(row), self.slots(module), strict=True):
                view.copy_(tensor)

    def read(self, row: Tensor, module: nn.Module) -> None:
        """A row's values into the module."""
        with torch.no_grad():
            for view, tensor in zip(self.views(row), self.slots(module), strict=True):
                tensor.copy_(view)


def refuse_lazy(module: nn.Module) -> None:
    """Refuse a module whose tensors do not exist before its first batch."""
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        if is_lazy(tensor):
            raise TypeError(
                f"{name} is uninitialised (a lazy module): run one batch through the model "
                "in its factory, so that all learners start from the same weights"
            )


def _trainable(module: nn.Module) -> dict[str, Tensor]:
    return {name: p for name, p in module.named_parameters() if p.requires_grad}


def _floating_buffers(module: nn.Module) -> dict[str, Tensor]:
    return {
        name: buffer
        for name, buffer in module.named_buffers()
        if buffer.is_floating_point() and bool(buffer.isfinite().all())
    }
