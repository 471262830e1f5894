"""What a module's own attributes hold besides parameters and buffers: put back after a call that changed them.

So ``self.mean = x.mean(0)`` of the first batch, which later calls read: each observation begins where the constructor
ended, as it does in JAX.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

_OF_MODULE = frozenset(vars(nn.Module()))
"""What every module keeps: its parameters, buffers, children, hooks and mode."""


class KeptAttributes:
    """The attributes of a module and its children as they are now."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self._registered = _registered(model)
        self._held = [(m, {k: _kept(v) for k, v in vars(m).items() if k not in _OF_MODULE}) for m in model.modules()]

    def restore(self) -> None:
        """Puts them back; not where a call has made parameters or children, which flags among them may tell of."""
        if _registered(self.model) != self._registered:
            return
        for module, held in self._held:
            own = vars(module)
            for name in [n for n in own if n not in held and n not in _OF_MODULE]:
                del own[name]
            for name, put_back in held.items():
                own[name] = put_back()


def _registered(model: nn.Module) -> list[tuple[str, int]]:
    named = (model.named_modules(), model.named_parameters(), model.named_buffers())
    return [(name, id(one)) for items in named for name, one in items]


def _kept(value: Any) -> Callable[[], Any]:
    """What gives a value again, with what was in it."""
    match value:
        case torch.Tensor():
            version, copy = value._version, value.detach().clone()

            def array() -> Any:
                if value._version != version:
                    with torch.no_grad():
                        value.copy_(copy)
                return value

            return array
        case list():
            items = list(value)

            def sequence() -> Any:
                value[:] = items
                return value

            return sequence
        case dict():
            pairs = dict(value)

            def mapping() -> Any:
                value.clear()
                value.update(pairs)
                return value

            return mapping
    return lambda: value
