"""Helpers that ask for the class of a module, in programs that don't have some of these classes."""

from __future__ import annotations

import ast

import jax
import pytest
from flax import nnx

from t2j_lsp import convert
from t2j_lsp.translate.source.folding.absent import HELD_BY, LAYERS

NET = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)
        {}

    def forward(self, x):
        return self.fc(x)


net = Net()
torch.save(net.state_dict(), "net.pt")
"""


def asked(line: str = "", head: str = "") -> set[str]:
    """The layers of Flax that the helper for names of parameters asks for."""
    code = convert(head + NET.format(line)).code
    (helper,) = (s for s in ast.parse(code).body if isinstance(s, ast.FunctionDef) and s.name == "saved_places")
    (first, *_) = (n for n in ast.walk(helper) if isinstance(n, ast.IfExp))
    test = ast.unparse(first.test)
    if "LAYERS_WITH_WEIGHTS" not in test:
        return {n.attr for n in ast.walk(first.test) if isinstance(n, ast.Attribute)}
    (kept,) = (line for line in code.splitlines() if line.startswith("LAYERS_WITH_WEIGHTS = "))
    return {n.attr for n in ast.walk(ast.parse(kept)) if isinstance(n, ast.Attribute)} or {kept}


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("", {"Linear"}),
        ("self.e = nn.Embedding(3, 2)", {"Linear", "Embed"}),
        ("self.e, self.norm = nn.Embedding(3, 2), nn.LayerNorm(2)", {"Linear", "Embed", "LayerNorm"}),
        ("self.norm = nn.BatchNorm1d(2)", {"Linear", "BatchNorm"}),
    ],
)
def test_only_layers_of_the_program_are_asked_for(line: str, wanted: set[str]) -> None:
    assert asked(f"{line}\n        self.scale = nn.Parameter(torch.ones(2))") == wanted


OTHERS = {
    "a parameter": "self.kernel = nn.Parameter(torch.ones(2))",
    "a buffer": "self.register_buffer('mean', torch.zeros(2))",
    "a layer": "self.embedding = nn.Linear(2, 2)",
    "one by a name": "setattr(self, 'ker' + 'nel', nn.Parameter(torch.ones(2)))",
    "one in a dict": "self.all = nn.ModuleDict({name: nn.Linear(2, 2) for name in ('a', 'b')})",
    "one that is woven": "self.fc = nn.utils.parametrizations.weight_norm(self.fc)",
}


@pytest.mark.parametrize("case", OTHERS)
def test_whose_a_name_is_is_asked_where_others_may_have_it(case: str) -> None:
    assert "Linear" in asked(OTHERS[case])


@pytest.mark.parametrize(
    ("line", "renamed"),
    [
        ("", "('weight' if k == 'kernel' else k)"),
        ("self.norm = nn.BatchNorm1d(2)", "TORCH_NAMES.get(k, k)"),
        ("self.weights: Dict = {}", "('weight' if k == 'kernel' else k)"),
    ],
)
def test_a_name_that_only_layers_have_says_whose_it_is(line: str, renamed: str) -> None:
    code = convert("from typing import Dict\n" + NET.format(line)).code
    (helper,) = (s for s in ast.parse(code).body if isinstance(s, ast.FunctionDef) and s.name == "saved_places")
    assert f"yield (prefix + {renamed}, (v, k == 'kernel'))" in ast.unparse(helper)
    assert "Linear" not in ast.unparse(helper)


def test_batches_that_nobody_counts_are_not_asked_for() -> None:
    load = "net.load_state_dict(torch.load('net.pt'))\n"
    assert "batches_tracked" not in convert(NET.format("") + load).code
    assert "batches_tracked" in convert(NET.format("self.norm = nn.BatchNorm1d(2)") + load).code


@pytest.mark.parametrize(
    "head", ["from mine import Body\n", "from .mine import Body\n", "import timm\n", "from flax.nnx import Embed\n"]
)
def test_modules_from_elsewhere_may_be_anything(head: str) -> None:
    assert asked(head=head) == {"Linear", "Conv", "ConvTranspose", "Embed"}  # and NORMS


def test_wrapping_layers_and_generators_are_asked_for_where_there_are_some() -> None:
    plain = convert(NET.format("")).code
    assert "nnx.Sequential" not in plain and "RngState" not in plain and "persistent" not in plain
    full = "self.net = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.1))\n        "
    full += "self.register_buffer('b', torch.zeros(2), persistent=False)"
    code = convert(NET.format(full)).code
    assert "isinstance(module, nnx.Sequential)" in code and "nnx.RngState" in code and '"persistent", True' in code


def test_the_table_of_attributes_is_that_of_the_installed_layers() -> None:
    rngs = nnx.Rngs(0)
    made = {
        "Linear": nnx.Linear(2, 3, rngs=rngs),
        "Conv": nnx.Conv(2, 3, (3,), rngs=rngs),
        "ConvTranspose": nnx.ConvTranspose(2, 3, (3,), rngs=rngs),
        "Embed": nnx.Embed(2, 3, rngs=rngs),
        "BatchNorm": nnx.BatchNorm(2, rngs=rngs),
        "LayerNorm": nnx.LayerNorm(2, rngs=rngs),
        "GroupNorm": nnx.GroupNorm(2, 1, rngs=rngs),
        "InstanceNorm": nnx.InstanceNorm(2, rngs=rngs),
        "RMSNorm": nnx.RMSNorm(2, rngs=rngs),
        "Sequential": nnx.Sequential(jax.nn.relu),
        "SpectralNorm": nnx.SpectralNorm(nnx.Linear(2, 3, rngs=rngs), rngs=rngs),
        "WeightNorm": nnx.WeightNorm(nnx.Linear(2, 3, rngs=rngs), rngs=rngs),
    }
    assert made.keys() == LAYERS
    for attribute, layers in HELD_BY.items():
        assert {n for n, m in made.items() if isinstance(vars(m).get(attribute), nnx.Variable)} == set(layers)
    classes = [type(module) for module in made.values()]
    assert not any(issubclass(a, b) for a in classes for b in classes if a is not b)
    drawing = {n for n, m in made.items() if jax.tree.leaves(nnx.state(m, nnx.RngState))}
    assert drawing <= {"SpectralNorm"}
