"""Forms that were met in packages which nobody here wrote, and that once failed."""

from __future__ import annotations

import re

from t2j_lsp import convert

HEAD = "import torch\nfrom torch import nn\n\n\n"


def test_what_names_forward_in_a_class_names_call() -> None:
    code = convert(
        "import torch\nfrom typing import TYPE_CHECKING, Any, Callable\nfrom torch import nn\n\n\n"
        "class Net(nn.Module):\n"
        "    def forward(self, x):\n        return torch.relu(x)\n\n"
        "    if TYPE_CHECKING:\n        __call__ = forward\n"
        "    __call__: Callable[..., Any] = forward\n\n"
        "    predict = forward\n"
    ).code
    assert re.search(r"return jax.nn.relu\(x\)\s+predict = __call__$", code.rstrip())


def test_a_known_condition_in_a_block_without_gradients_leaves_one_branch() -> None:
    text = (
        "def f(x, y):\n"
        "    with torch.no_grad():\n"
        "        if hasattr(torch, 'nextafter'):\n            out = torch.nextafter(x, y)\n"
        "        else:\n            out = other(x, y)\n            out = out + 1\n"
        "    return out\n"
    )
    code = convert(HEAD + text).code
    assert code[code.index("def f") :] == (
        "def f(x, y):\n    out = jnp.nextafter(x, y)\n    out = lax.stop_gradient(out)\n    return out\n"
    )


STEP = """def make(model, optimizer, scale: float = 1.0):
    def update(batch):
        {before}
        x, y = batch["x"], batch["y"]
        loss = nn.functional.mse_loss(model(x), y) * scale
        loss.backward()
        {after}
        return loss.item()

    return update
"""


def test_a_step_in_a_function_inside_another_is_given_what_the_outer_one_has() -> None:
    translation = convert(
        HEAD
        + "class Net(nn.Module):\n    def forward(self, x):\n        return x\n\n\n"
        + STEP.format(before="optimizer.zero_grad()", after="optimizer.step()")
        .replace("model,", "model: Net,")
        .replace("optimizer,", "optimizer: torch.optim.Optimizer,")
    )
    assert not translation.gaps
    assert "scale" in translation.code.partition("def train_step(")[2].partition(")")[0]


def test_gradients_that_add_up_between_calls_are_a_gap() -> None:
    text = HEAD + STEP.format(
        before="if batch['first']:\n            optimizer.zero_grad()",
        after="if batch['last']:\n            optimizer.step()",
    ).replace("optimizer,", "optimizer: torch.optim.Optimizer,")
    (gap,) = convert(text).gaps
    assert "over several calls of the function" in gap.reason
