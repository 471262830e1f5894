"""Parameters as one flat vector: in PyTorch's order and layouts, which Flax's own walk has not."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

TEXT = """\
import torch
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

net = nn.Linear(3, 2)
{line}
"""
WALK = "for p in named_arrays(net).values()"


@pytest.mark.parametrize(
    ("line", "written"),
    [
        ("v = parameters_to_vector(net.parameters())", f"jnp.concatenate([p.ravel() {WALK}])"),
        (
            "n = nn.utils.parameters_to_vector(net.parameters()).shape[0]",
            f"jnp.concatenate([p.ravel() {WALK}]).shape[0]",
        ),
        ("v = torch.cat([p.view(-1) for p in net.parameters()])", f"jnp.concatenate([p.reshape(-1) {WALK}])"),
        ("v = torch.cat([p.data.flatten() for p in net.parameters()])", f"[jax.lax.stop_gradient(p).ravel() {WALK}]"),
        ("vector_to_parameters(torch.ones(8), net.parameters())", "vector_to_parameters(jnp.ones(8), net)"),
    ],
)
def test_flat_vectors_have_pytorchs_order(line: str, written: str) -> None:
    done = convert(TEXT.format(line=line))
    assert not done.gaps
    assert written in done.code


@pytest.mark.parametrize(
    ("imported", "name"),
    [("import torch as T", "T.cat"), ("from torch import cat", "cat"), ("from torch import hstack as h", "h")],
)
def test_what_joins_them_is_known_by_what_is_imported(imported: str, name: str) -> None:
    done = convert(f"{TEXT.format(line=imported)}v = {name}([p.view(-1) for p in net.parameters()])\n")
    assert not done.gaps
    assert f"([p.reshape(-1) {WALK}])" in done.code


@pytest.mark.parametrize(
    ("imported", "name"),
    [
        ("from torch.nn.utils import vector_to_parameters as fill", "fill"),
        ("from torch.nn import utils", "utils.vector_to_parameters"),
        ("import torch.nn.utils", "torch.nn.utils.vector_to_parameters"),
    ],
)
def test_what_is_written_into_them_is_known_by_what_is_imported(imported: str, name: str) -> None:
    done = convert(f"{TEXT.format(line=imported)}{name}(torch.ones(8), net.parameters())\n")
    assert not done.gaps
    assert "vector_to_parameters(jnp.ones(8), net)" in done.code


def test_a_function_of_the_same_name_is_no_join() -> None:
    line = "def cat(parts):\n    parts[0].mul_(2)\n\n\ncat([p.view(-1) for p in net.parameters()])"
    assert convert(TEXT.format(line=line)).gaps


@pytest.mark.parametrize(
    "line",
    [
        "ps = [p.view(-1) for p in net.parameters()]\nps[0].mul_(2)",
        "v = torch.cat([p.grad.view(-1) for p in net.parameters()])",
        "ps = list(net.parameters())\nvector_to_parameters(torch.ones(8), ps)",
    ],
)
def test_what_may_be_written_into_is_no_copy(line: str) -> None:
    assert convert(TEXT.format(line=line)).gaps
