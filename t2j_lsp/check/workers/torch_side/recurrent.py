"""Recurrent layers with dropout between them, one layer at a time: then their masks are draws like any other.

PyTorch drops out inside of one call for all layers, from its own generator.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F

_NAMES = ("lstm", "gru", "rnn_tanh", "rnn_relu")


@contextmanager
def layer_by_layer() -> Iterator[None]:
    """Recurrent layers run one by one in this context, where there is dropout between them. Packed ones don't."""
    functions: Any = torch._VF
    with ExitStack() as stack:
        for name in _NAMES:
            stack.enter_context(mock.patch.object(functions, name, _layered(getattr(functions, name))))
        yield


def _layered(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any) -> Any:
        if len(args) != 9 or not isinstance(args[2], list | tuple):
            return original(*args)
        x, hx, weights, bias, layers, dropout, training, bidirectional, batch_first = args
        if layers == 1 or not dropout or not training:
            return original(*args)
        states = hx if isinstance(hx, list | tuple) else (hx,)
        directions = 2 if bidirectional else 1
        own = len(weights) // layers
        x = x.transpose(0, 1) if batch_first else x
        finals: list[tuple[torch.Tensor, ...]] = []
        for layer in range(layers):
            first = [s[layer * directions : (layer + 1) * directions] for s in states]
            given = first if isinstance(hx, list | tuple) else first[0]
            held = weights[layer * own : (layer + 1) * own]
            x, *last = original(x, given, held, bias, 1, 0.0, training, bidirectional, False)
            finals.append(tuple(last))
            if layer < layers - 1:
                x = F.dropout(x, dropout, True)
        joined = (torch.cat(parts) for parts in zip(*finals, strict=True))
        return (x.transpose(0, 1) if batch_first else x, *joined)

    return call
