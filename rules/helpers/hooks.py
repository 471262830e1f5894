"""Functions that are called with what a module is called with and gives.

Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_forward_hook
"""

from collections.abc import Callable
from typing import Any

from flax import nnx


class HookHandle:
    """What takes a hook away again: `remove()`, or the end of a `with` block."""

    def __init__(self, hooks: dict[Any, Callable[..., Any]], hook: Callable[..., Any]):
        self.hooks = hooks
        hooks[self] = hook

    def remove(self) -> None:
        """The hook is called no more."""
        self.hooks.pop(self, None)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: Any) -> None:
        self.remove()


def hooks_of(module: nnx.Module) -> Any:
    """The hooks before and after each call of `module`, whose class becomes one that calls them: Python looks up there.

    Under `jit` hooks are called while the program is traced, with tracers, and not again.
    """
    kind: Any = type(module)
    if hasattr(kind, "hooks_of_calls"):
        return kind.hooks_of_calls
    before, after = dict[Any, Any](), dict[Any, Any]()

    class Hooked(kind):
        def __call__(self, *inputs: Any, **options: Any) -> Any:
            for hook in [*before.values()]:
                result = hook(self, inputs)
                if result is not None:
                    inputs = result if isinstance(result, tuple) else (result,)
            output = super().__call__(*inputs, **options)
            for hook in [*after.values()]:
                result = hook(self, inputs, output)
                output = output if result is None else result
            return output

    Hooked.__name__, Hooked.hooks_of_calls = kind.__name__, (before, after)
    object.__setattr__(module, "__class__", Hooked)
    return before, after


def forward_hook(module: nnx.Module, hook: Callable[..., Any]) -> HookHandle:
    """Calls `hook(module, inputs, output)` after each call of `module`; what it returns takes the output's place."""
    return HookHandle(hooks_of(module)[1], hook)


def forward_pre_hook(module: nnx.Module, hook: Callable[..., Any]) -> HookHandle:
    """Calls `hook(module, inputs)` before each call of `module`; what it returns takes the inputs' place."""
    return HookHandle(hooks_of(module)[0], hook)
