"""Every spelling of a torch name is found; a name that means something else is left alone."""

from __future__ import annotations

import pytest

from t2j_lsp.translate import translate

from .convert import expect_same, expression


@pytest.mark.parametrize(
    ("imports", "call"),
    [
        ("import torch", "torch.cat"),
        ("import torch as th", "th.cat"),
        ("from torch import cat", "cat"),
        ("from torch import cat as join", "join"),
        ("from torch import *", "cat"),
        ("try:\n    import torch\nexcept ImportError:\n    torch = None", "torch.cat"),
        ("if True:\n    import torch", "torch.cat"),
    ],
)
def test_every_way_to_import(imports: str, call: str) -> None:
    result = translate(f"{imports}\n\n\ndef f(a, b):\n    return {call}([a, b], dim=1)\n")
    assert "jnp.concatenate([a, b], axis=1)" in result.code


@pytest.mark.parametrize("spelling", ["nn.Conv2d", "torch.nn.Conv2d", "torch.nn.modules.conv.Conv2d"])
def test_every_way_to_name_a_layer(spelling: str) -> None:
    source = f"import torch\nfrom torch import nn\nimport torch.nn.modules.conv\nlayer = {spelling}(3, 4, 1)\n"
    assert "layer = ChannelsFirstConv(3, 4, (1, 1), padding=0, rngs=rngs)" in translate(source).code


@pytest.mark.parametrize(
    "source",
    [
        "def f(torch):\n    return torch.cat([1, 2])\n",
        "import pandas as pd\ndef f(df: pd.DataFrame):\n    return df.max(axis=0)\n",
        "def f(df):\n    return df.mean(axis=1), df.sum(), df.T, df.shape\n",
        "import numpy as np\ndef f(a):\n    return np.transpose(a).reshape(-1)\n",
        "def f(text: str):\n    return text.split(','), text.expandtabs()\n",
        "def f(items: list):\n    items.add_(1)\n    return items.index(2)\n"
        if False
        else "def f(items: list):\n    return items.index(2)\n",
        "class Box:\n    def size(self):\n        return 1\ndef f(box: Box):\n    return box.size()\n",
        "def f(config):\n    return config.view, config.dtype, config.device\n",
        "import jax.numpy as jnp\ndef f(a):\n    return jnp.mean(a, axis=0).transpose(1, 0)\n",
    ],
)
def test_what_is_not_torch_is_left_alone(source: str) -> None:
    expect_same(source)


def test_a_name_rebound_to_something_else_is_no_longer_torch() -> None:
    expect_same("def f():\n    F = open('file')\n    return F.read()\n")


def test_a_method_that_only_tensors_have_is_converted_and_noted() -> None:
    result = translate("import torch\n\n\ndef f(batch):\n    return batch['x'].unsqueeze(0)\n")
    assert "batch['x'][None]" in result.code
    assert [note.code for note in result.notes] == ["tensor-method"]


def test_an_annotation_says_what_a_parameter_is() -> None:
    assert expression("x.max()", "x: torch.Tensor") == "x.max()"
    assert expression("x.size(-1)", "x: 'torch.Tensor'") == "x.shape[-1]"
    assert expression("x.size(-1)", "x: Tensor | None = None") == "x.shape[-1]"


JAXTYPED = """
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor


def f(x: {annotation}):
    return {value}
"""


@pytest.mark.parametrize(
    ("annotation", "value", "wanted"),
    [
        ('Float[Tensor, ""]', "x.softmax(0)", "jax.nn.softmax(jnp.atleast_1d(x), axis=0).squeeze()"),
        ('Float[torch.Tensor, "batch"]', "x.softmax(0)", "jax.nn.softmax(x, axis=0)"),
        ('Float[Tensor, "*batch 3"]', "x.softmax(0)", "jax.nn.softmax(x, axis=0)"),
        ("\"Shaped[Tensor, '']\"", "x.sum(0)", "jnp.atleast_1d(x).sum(axis=0)"),
        ('Int[Tensor, "n"]', "x.rsqrt()", "1 / jnp.sqrt(x)"),
        ('Float[Tensor, "n"]', "x.rsqrt()", "jax.lax.rsqrt(x)"),
    ],
)
def test_jaxtyping_says_the_axes_and_the_dtype(annotation: str, value: str, wanted: str) -> None:
    code = translate(JAXTYPED.format(annotation=annotation, value=value)).code
    assert f"return {wanted}" in code
    assert annotation.replace("torch.Tensor", "jax.Array").replace("Tensor", "jax.Array") in code


def test_text_without_torch_comes_back_unchanged() -> None:
    source = "import os\r\n\r\nprint(os.name)  # torch\r\n"
    assert translate(source).code == source


def test_what_a_dict_gives_for_a_missing_key_may_be_anything() -> None:
    head = "import torch\n\n\ndef f(state: dict[str, torch.Tensor]):\n"
    body = "    state = state.get('model', state)\n    return state.get('weights', state)\n"
    assert translate(head + body).gaps == ()


def test_names_of_the_users_in_what_a_rule_joins_are_no_helpers() -> None:
    text = 'import torch\n\n\ndef f(x, w, i, dropout):\n    return torch.einsum("ij,jk->ik", dropout(x), w[f"l{i}"])\n'
    translation = translate(text)
    assert not translation.gaps
    assert 'jnp.einsum("ij,jk->ik", dropout(x), w[f"l{i}"])' in translation.code
