"""Hooks see what PyTorch's see, in the same order, and go where they are told to."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import pytest
import torch
from flax import nnx

from t2j_lsp.rules.helpers import hooks
from t2j_lsp.rules.helpers.hooks import HookHandle, forward_hook, forward_pre_hook
from t2j_lsp.translate.source.folding.hooks import HOOKED, after_calls
from tests.helpers.compare import changed_helper

pytestmark = pytest.mark.jax


class Doubled(nnx.Module):
    def __call__(self, x: Any) -> Any:
        return 2 * x


class TorchDoubled(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return 2 * x


def story(module: Any, on_output: Any, on_inputs: Any, call: Any) -> list[object]:
    """What hooks are called with, and what the module gives, as hooks come and go."""
    said: list[object] = []
    before = on_inputs(module, lambda m, inputs: said.append(("before", type(m) is type(module), len(inputs))))
    change = on_inputs(module, lambda m, inputs: inputs[0] + 1)
    first = on_output(module, lambda m, inputs, output: said.append(("first", float(inputs[0]), float(output))))
    second = on_output(module, lambda m, inputs, output: output * 10)
    third = on_output(module, lambda m, inputs, output: said.append(("third", float(inputs[0]), float(output))))
    said.append(float(call(module)))
    for handle in (change, second):
        handle.remove()
    said.append(float(call(module)))
    with third, first:
        said.append(float(call(module)))
    said.append(float(call(module)))
    before.remove()
    said.append(float(call(module)))
    return said


def test_hooks_see_what_pytorchs_see() -> None:
    wanted = story(
        TorchDoubled(),
        lambda m, hook: m.register_forward_hook(hook),
        lambda m, hook: m.register_forward_pre_hook(hook),
        lambda m: m(torch.tensor(3.0)),
    )
    assert story(Doubled(), forward_hook, forward_pre_hook, lambda m: m(jnp.asarray(3.0))) == wanted


def test_a_hooked_module_keeps_its_class_its_state_and_its_name() -> None:
    layer = nnx.Linear(2, 3, rngs=nnx.Rngs(0))
    forward_hook(layer, print)
    assert isinstance(layer, nnx.Linear)
    assert type(layer).__name__ == "Linear"
    assert set(nnx.state(nnx.clone(layer))) == {"kernel", "bias"}


def test_hooks_after_calls_alone_see_the_same() -> None:
    """What programs have that add no others."""

    def story_of(module: Any, on_output: Any, call: Any) -> list[object]:
        said: list[object] = []
        first = on_output(module, lambda m, inputs, output: said.append((type(m).__name__[-7:], float(output))))
        change = on_output(module, lambda m, inputs, output: output * 10)
        on_output(module, lambda m, inputs, output: said.append(float(output)))
        said.append(float(call(module)))
        change.remove()
        said.append(float(call(module)))
        first.remove()
        said.append(float(call(module)))
        return said

    hooks_after = changed_helper(hooks, HOOKED, after_calls)
    own = story_of(Doubled(), lambda m, hook: HookHandle(hooks_after(m), hook), lambda m: m(jnp.array(3.0)))
    torchs = story_of(TorchDoubled(), lambda m, hook: m.register_forward_hook(hook), lambda m: m(torch.tensor(3.0)))
    assert own == torchs
