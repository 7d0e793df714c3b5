"""Where a network may keep things: in parameters and buffers, of which each learner has its own.

One module per worker looks into the rows of one learner after another. Whatever else a forward pass
leaves in it, the next learner would find, and who that is depends on the number of workers. Hooks
on single parameters are lost where the module is copied. Both are refused here.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["Memory", "refuse_hooks"]

Plain = bool | int | float | complex | str


def refuse_hooks(module: nn.Module) -> None:
    """Refuse a module whose copies would lack something that its parameters have."""
    for name, parameter in module.named_parameters():
        if parameter._backward_hooks or getattr(parameter, "_post_accumulate_grad_hooks", None):
            raise TypeError(
                f"{name} has a hook, which no copy of the network would have: change gradients in "
                "a step=(module, optimizer, x, y) -> (loss, output), or by a hook of the module"
            )


@dataclass(frozen=True, slots=True)
class Memory:
    """What a module holds before a step: its tensors, and among its attributes the plain values
    and what may hold tensors.
    """

    tensors: dict[str, Tensor]
    values: dict[str, Plain]
    others: dict[str, object]

    @classmethod
    def of(cls, module: nn.Module) -> "Memory":
        """What it holds now."""
        return cls(
            dict((*module.named_parameters(), *module.named_buffers())),
            _attributes(module, Plain),
            _attributes(module, (Tensor, tuple, list, dict)),
        )

    def refuse_changes(self, module: nn.Module, step: Callable[[], object]) -> None:
        """Refuse what a step has left in the module; `step` takes another one where that tells a
        count from a size that was noted.
        """
        now = Memory.of(module)
        for name, tensor in now.tensors.items():
            if self.tensors.get(name) is not tensor:
                raise TypeError(
                    f"the model's forward pass puts a new tensor into {name}: write into the one "
                    f"that is there, as in self.{_last(name)}.copy_(…), so that each learner keeps "
                    "its own"
                )
        changed = _changed(self.values, now.values)
        if not changed:
            return
        step()
        changed &= _changed(now.values, _attributes(module, Plain)) | {
            name for name in changed if isinstance(now.values[name], bool)
        }
        for name in sorted(changed):
            raise TypeError(
                f"the model's forward pass changes {name} (from {self.values[name]!r} to "
                f"{now.values[name]!r}), which all learners would share: make it a buffer, as in "
                f"self.register_buffer({_last(name)!r}, torch.tensor({self.values[name]!r})), and "
                f"write into it, as in self.{_last(name)}.fill_(…)"
            )

    def refuse_carrying(
        self, module: nn.Module, fresh: nn.Module, loss: Callable[[nn.Module], Tensor | None]
    ) -> None:
        """Refuse tensors that a step has left among the attributes, if they matter: if the loss of
        a fresh module is another one when it finds them.
        """
        before, after = self.others, Memory.of(module).others
        left = {name: value for name, value in after.items() if before.get(name) is not value}
        if not left:
            return
        expected = loss(copy.deepcopy(fresh))
        for name, value in left.items():
            path, _, last = name.rpartition(".")
            setattr(fresh.get_submodule(path), last, value)
        if expected is None or not _alike(expected, loss(fresh)):
            raise TypeError(
                f"the model's forward pass leaves something in {', '.join(sorted(left))} that the "
                "next batch depends on, and that all learners would share: make it a buffer "
                "(register_buffer) and write into it with copy_(…)"
            )


def _alike(expected: Tensor, found: Tensor | None) -> bool:
    return found is not None and torch.allclose(found, expected, rtol=1e-5, equal_nan=True)


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _changed(before: dict[str, Plain], after: dict[str, Plain]) -> set[str]:
    return {name for name, value in after.items() if name in before and before[name] != value}


def _attributes(module: nn.Module, kinds: Any) -> dict[str, Any]:
    return {
        f"{path}.{name}".lstrip("."): value
        for path, part in module.named_modules()
        for name, value in vars(part).items()
        if name not in _OWN and isinstance(value, kinds)
    }


_OWN = frozenset(("training", *vars(nn.Module())))
"""What every module has."""
