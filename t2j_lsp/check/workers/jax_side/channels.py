"""Calls of modules that take or give channels-last values, with PyTorch's axes on the outside."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from t2j_lsp.contract import ChannelsLast


def called(model: Callable[..., Any], args: Any, kwargs: Any, layout: ChannelsLast | None) -> Any:
    """A call with arguments in PyTorch's axes, and its result in these.

    ``layout`` says which arguments are taken channels-last and whether the result is given so; None: none is.
    """
    if layout is None:
        return model(*args, **kwargs)
    rank = layout.rank
    bound = inspect.signature(model).bind(*args, **kwargs)
    for name in layout.takes:
        if isinstance(bound.arguments.get(name), jax.Array):
            bound.arguments[name] = jnp.moveaxis(bound.arguments[name], -rank - 1, -1)
    result = model(*bound.args, **bound.kwargs)
    return jnp.moveaxis(result, -1, -rank - 1) if layout.gives and isinstance(result, jax.Array) else result
