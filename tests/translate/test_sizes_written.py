"""Sizes of an array that are written over before something is expanded to them."""

from __future__ import annotations

from t2j_lsp.contract import Options
from t2j_lsp.translate import translate

SOURCE = """\
import torch


def grow(x: torch.Tensor, index: torch.Tensor):
    sizes = list(x.shape)
    sizes[-2] = {size}
    return index.expand(sizes)
"""


def test_a_size_that_is_kept_is_expanded_to() -> None:
    assert "return expand(index, sizes)" in translate(SOURCE.format(size=-1), Options()).code


def test_another_size_needs_no_helper() -> None:
    assert "return jnp.broadcast_to(index, sizes)" in translate(SOURCE.format(size=4), Options()).code
