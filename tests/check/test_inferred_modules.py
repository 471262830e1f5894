"""Modules among the constructor arguments of classes that nobody called yet."""

from __future__ import annotations

from functools import partial

import pytest

from t2j_lsp import convert
from t2j_lsp.api import convert_expression
from t2j_lsp.contract import VerdictKind

from .conftest import TORCH, Check

CALLED = {
    "several arguments": ("inner", "y = self.inner(x, x * 2, mask=None)"),
    "keywords alone": ("inner", "y = self.inner(query=x, key=x)"),
    "several results": ("inner", "y, seen = self.inner(x, x)"),
    "one part of the result": ("inner", "y = self.inner(x, x)[0]"),
    "an activation of any class": ("activation: Callable", "y = self.inner(x)"),
}


@pytest.mark.parametrize("what", CALLED)
def test_what_a_constructor_keeps_and_calls_is_stood_in_for(what: str, check: Check) -> None:
    parameter, call = CALLED[what]
    torch = f"""
from typing import Callable

class Outer(nn.Module):
    def __init__(self, dim, {parameter}):
        super().__init__()
        self.inner = {parameter.partition(":")[0]}
        self.proj = nn.Linear(dim, 5)
    def forward(self, x):
        x = self.proj(x)
        {call}
        return x - y
"""
    jax = convert(TORCH + torch).code
    verdict = check(torch, jax, "Outer", expression=convert_expression)
    assert verdict.verdict is VerdictKind.EQUIVALENT, verdict.reason
    wrong = check(torch, jax.replace("x - y", "x + y"), "Outer", expression=convert_expression)
    assert wrong.verdict is VerdictKind.DIFFERENT


def test_a_class_of_the_file_is_given_what_it_asks_for(check: Check) -> None:
    torch = """
from dataclasses import dataclass
from typing import Literal

@dataclass(frozen=True)
class Norm:
    eps: float
    kind: Literal["rms", "none"]

@dataclass(frozen=True)
class Config:
    input_dims: int
    hidden_dims: int
    norm: Norm
    use_bias: bool = True

class Block(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.proj = nn.Linear(config.input_dims, config.hidden_dims)
        self.eps = config.norm.eps + 0.25 if config.norm.kind == "rms" else 0.0
    def forward(self, x):
        return self.proj(x) - self.eps
"""
    jax = convert(TORCH + torch).code
    verdict = check(torch, jax, "Block", expression=convert_expression)
    assert verdict.verdict is VerdictKind.EQUIVALENT, verdict.reason
    wrong = check(torch, jax.replace("- self.eps", "+ self.eps"), "Block", expression=convert_expression)
    assert wrong.verdict is VerdictKind.DIFFERENT


LISTS = {
    "in a loop": """
        self.stages = {list}([])
        for m in blocks:
            self.stages.append(m)
""",
    "counted": """
        self.stages = {list}([])
        for i, m in enumerate(blocks):
            self.stages.append(m)
""",
    "at once": """
        self.stages = {list}(blocks)
""",
    "in a comprehension": """
        self.stages = {list}([m for m in blocks])
""",
}

STAGES = """{imports}


class Stages({base}):
    def __init__(self, blocks):
        {start}{made}
    def {call}(self, x):
        for stage in self.stages:
            x = stage(x) + {more}
        return x
"""


@pytest.mark.parametrize("name", LISTS)
def test_a_parameter_whose_items_become_children_is_a_list_of_modules(name: str, check: Check) -> None:
    torch = STAGES.format(
        imports="import torch\nfrom torch import nn", base="nn.Module", start="super().__init__()",
        made=LISTS[name].format(list="nn.ModuleList"), call="forward", more="1",
    )  # fmt: skip
    jax = partial(
        STAGES.format, imports="from flax import nnx", base="nnx.Module", start="",
        made=LISTS[name].format(list="nnx.List"), call="__call__",
    )  # fmt: skip
    verdict = check(torch, jax(more="1"), "Stages", expression=convert_expression)
    assert verdict.verdict is VerdictKind.EQUIVALENT, verdict.reason
    assert check(torch, jax(more="2"), "Stages", expression=convert_expression).verdict is VerdictKind.DIFFERENT


def test_a_list_of_sizes_that_modules_are_made_of_is_none_of_modules(check: Check) -> None:
    source = """import torch
from torch import nn


class Sizes(nn.Module):
    def __init__(self, layers):
        super().__init__()
        layers = [nn.Linear(layers, layers), nn.Tanh()]
        self.net = nn.Sequential(*layers)

    def forward(self, x):
        return self.net(x)
"""
    verdict = check(source, convert(source).code, "Sizes")
    assert verdict.verdict is VerdictKind.EQUIVALENT, verdict.reason


def test_a_function_that_gets_an_argument_is_named_on_both_sides(check: Check) -> None:
    """Whatever it is called: ``get_inputs`` alone is the source's own."""
    torch = """
def get_scale(name):
    return {"half": 0.5, "twice": 2.0}[name]

class Inner(nn.Module):
    def __init__(self, width, scale):
        super().__init__()
        self.scale = scale
        self.fc = nn.Linear(width, width)
    def forward(self, x):
        return self.fc(x) - self.scale

class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner(5, get_scale("twice"))
    def forward(self, x):
        return self.inner(x)
"""
    jax = convert(TORCH + torch).code
    verdict = check(torch, jax, "Inner", expression=convert_expression)
    assert verdict.verdict is VerdictKind.EQUIVALENT, verdict.reason
    wrong = check(torch, jax.replace("- self.scale", "+ self.scale"), "Inner", expression=convert_expression)
    assert wrong.verdict is VerdictKind.DIFFERENT


def test_what_a_constructor_asks_for_its_mode_is_a_module(check: Check) -> None:
    """An activation is a function in JAX, and has none."""
    source = """import torch
from torch import nn


def size_of(encoder):
    encoder.eval()
    with torch.no_grad():
        return encoder(torch.ones(1, 3, 4)).shape[-1]


class Clip(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.fc = nn.Linear(size_of(encoder), 2)
        self.encoder = encoder

    def forward(self, x):
        return self.fc(self.encoder(x))
"""
    verdict = check(source, convert(source).code, "Clip", expression=convert_expression)
    assert verdict.verdict is VerdictKind.EQUIVALENT, verdict.reason


def test_layers_that_the_first_call_makes_have_no_verdict(check: Check) -> None:
    """Each side would draw their initial values for itself."""
    source = """import torch
from torch import nn


class Built(nn.Module):
    def __init__(self, n: int = 4):
        super().__init__()
        self.n = n
        self.fc = None

    def forward(self, x):
        if self.fc is None:
            self.fc = nn.Linear(x.shape[-1], self.n)
        return self.fc(x)
"""
    verdict = check(source, convert(source).code, "Built")
    assert verdict.verdict is VerdictKind.UNCHECKED and "its first call makes" in (verdict.reason or "")
