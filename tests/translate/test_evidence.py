"""What the use of parameters without annotations tells: sizes, tensors, classes of modules."""

from __future__ import annotations

import re

import pytest

from t2j_lsp.contract import Options
from t2j_lsp.translate import translate

MODULE = """\
import torch
import torch.nn as nn
from functools import partial


class Inner(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        return self.fc(x)


class M(nn.Module):
    def __init__(self, dim, {parameter}):
        super().__init__()
        {constructor}

    def forward(self, x, mask=None):
        {forward}
"""


def converted(constructor: str = "pass", forward: str = "return x", parameter: str = "norm_layer=None") -> str:
    source = MODULE.format(constructor=constructor, forward=forward, parameter=parameter)
    translation = translate(source, Options())
    assert not translation.gaps, translation.gaps
    text = " ".join(translation.code[translation.code.index("class M(") :].split())
    return text.replace("( ", "(").replace(" )", ")")


@pytest.mark.parametrize(
    "constructor",
    [
        "self.norm = nn.LayerNorm(dim); self.fc = nn.Linear(dim, 3)",
        "self.fc = nn.Linear(dim, 3); self.dim = dim; self.norm = nn.LayerNorm(self.dim)",
        "self.inner = Inner(dim); self.norm = nn.LayerNorm(dim)",
        "self.inner = Inner(width=dim); self.norm = nn.LayerNorm(4 * dim)",
    ],
)
def test_the_width_of_a_linear_layer_is_an_int_wherever_it_goes(constructor: str) -> None:
    assert "self.norm = nnx.LayerNorm(" in converted(constructor)


@pytest.mark.parametrize(
    "constructor",
    [
        "wide = scale(dim); self.norm = nn.LayerNorm(wide); self.fc = nn.Linear(wide, 3)",
        "wide = scale(dim); self.fc = nn.Linear(3, wide); self.norm = nn.LayerNorm(wide) if dim else None",
        "self.fc = nn.Linear(dim.a[1], 3); self.norm = nn.LayerNorm(dim.a[1])",
    ],
)
def test_the_size_of_another_layer_is_an_int(constructor: str) -> None:
    assert "nnx.LayerNorm(" in converted(constructor)


@pytest.mark.parametrize(
    "constructor",
    [
        "wide = scale(dim); self.norm = nn.LayerNorm(wide); wide = max(wide); self.fc = nn.Linear(wide, 3)",
        "wide = scale(dim); self.norm = nn.LayerNorm(wide) if many(wide) else nn.Linear(wide, 3)",
        "wide = scale(dim); self.norm = nn.LayerNorm(wide); self.fc = nn.Linear(max(wide), 3)",
        "wide = scale(dim); self.norms = nn.ModuleList([nn.LayerNorm(wide)]); self.fcs = nn.ModuleList(nn.Linear(wide, 3) for _ in dim)",  # noqa: E501
        "wide = scale(dim); self.norm = nn.LayerNorm(wide)\n        if many(wide):\n            return\n"
        "        self.fc = nn.Linear(wide, 3)",
    ],
)
def test_the_size_of_a_layer_that_may_not_be_made_says_nothing(constructor: str) -> None:
    assert "LayerNorm(wide, rngs=rngs)" in converted(constructor).replace("nnx.LayerNorm", "stock")


def test_a_shape_of_unknown_kind_takes_the_helper() -> None:
    assert "self.norm = LayerNorm(dim, rngs=rngs)" in converted("self.norm = nn.LayerNorm(dim)")


@pytest.mark.parametrize(
    "constructor",
    [
        "norm_layer = norm_layer or partial(nn.LayerNorm, eps=1e-6); self.norm = norm_layer(dim)",
        "self.norm = norm_layer(dim) if norm_layer else nn.Identity()",
        "norm_layer = nn.LayerNorm if norm_layer is None else norm_layer; self.norm = norm_layer(dim)",
    ],
)
def test_a_class_that_is_passed_builds_with_rngs(constructor: str) -> None:
    assert "self.norm = norm_layer(dim, rngs=rngs)" in converted(constructor)


def test_a_default_class_given_in_a_branch() -> None:
    constructor = "if norm_layer is None:\n            norm_layer = nn.BatchNorm2d\n        self.norm = norm_layer(dim)"
    assert "self.norm = norm_layer(dim, rngs=rngs)" in converted(constructor)


def test_a_function_of_another_name_is_called_as_it_is() -> None:
    assert "self.size = count(dim)" in converted("self.size = count(dim)", parameter="count=None")


@pytest.mark.parametrize(
    ("forward", "expected"),
    [
        ("return x + mask[:, None].float()", "mask[:, None].astype(jnp.float32)"),
        ("return x + mask[..., 0].float()", "mask[..., 0].astype(jnp.float32)"),
    ],
)
def test_what_is_indexed_along_several_axes_is_a_tensor(forward: str, expected: str) -> None:
    assert expected in converted(forward=forward)


def test_in_a_function_beside_numpy_it_may_be_another_array() -> None:
    source = "import numpy as np\nimport torch\n\n\ndef f(x):\n    return x[:, None].max(1)\n"
    assert translate(source, Options()).code.endswith("return x[:, None].max(1)\n")


@pytest.mark.parametrize(
    "guard",
    [
        "if not torch.is_tensor(clip):\n        raise TypeError(clip)",
        "if not isinstance(clip, torch.Tensor):\n        raise TypeError(clip)",
        "assert isinstance(clip, torch.Tensor)",
        "assert torch.is_tensor(clip), 'no tensor'",
    ],
)
def test_what_a_function_demands_its_callers_have(guard: str) -> None:
    source = f"import torch\ndef check(clip):\n    {guard}\n    return clip.ndimension() == 4\n\n\n"
    source += "def hflip(clip):\n    if not check(clip):\n        raise ValueError\n    return clip.flip(-1)\n"
    result = translate(source)
    assert not result.gaps and "return jnp.flip(clip, axis=-1)" in result.code


@pytest.mark.parametrize("stays", ["return clip", "clip = torch.as_tensor(clip)", "print(clip)"])
def test_a_function_that_goes_on_demands_nothing(stays: str) -> None:
    source = f"import torch\ndef check(clip):\n    if not torch.is_tensor(clip):\n        {stays}\n    return clip\n\n"
    source += "def hflip(clip):\n    check(clip)\n    return clip.flip(-1)\n"
    assert "return clip.flip(-1)" in translate(source).code


GIVEN = """\
import torch
from torch import nn


def exists(v):
    return {answer}


class Net(nn.Module):
    def forward(self, x, pre=None):
        if {asked}:
            x = pre.new_empty((pre.shape[0], 0), dtype=torch.long)
        device, ids = x.device, x
        return ids + torch.arange(3, device=device)
"""


@pytest.mark.parametrize(
    ("answer", "asked", "known"),
    [
        ("v is not None", "x is None", True),
        ("v is not None", "not exists(x)", True),
        ("v is not None", "exists(x)", False),
        ("len(v) > 0", "not exists(x)", False),
    ],
)
def test_what_is_a_tensor_where_none_is_passed_is_one_where_it_is(answer: str, asked: str, known: bool) -> None:
    """A traced array has no device."""
    code = translate(GIVEN.format(answer=answer, asked=asked), Options()).code
    assert ("device, ids = jax.devices()[0], x" in code) is known


@pytest.mark.parametrize(
    "lines",
    [
        "    if (not isinstance(a, torch.Tensor)) or not isinstance(b, torch.Tensor):\n        raise TypeError\n",
        "    if n < 0 or not torch.is_tensor(a):\n        raise ValueError\n",
        "    n = 0 if not torch.is_tensor(a) else len(str(a.device)) * 0\n    a = torch.relu(a)\n",
        "    m = a != n\n    n = m.size(-1) * (str(m.device) != '')\n    a = torch.relu(a) * m.unsqueeze(0)\n",
    ],
)
def test_what_is_asked_and_called_tells_a_tensor_whose_device_jit_has(lines: str) -> None:
    text = f"import torch\n\n\ndef f(a, b, n):\n{lines}    return torch.ones(n, device=a.device), str(a.device)\n"
    done = translate(text)
    assert not any("device" in finding.reason for finding in done.findings if finding.code == "value-needed")
    assert not re.search(r"\b[abm]\.device", done.code)
