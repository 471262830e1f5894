"""Indices that only their names tell to be masks: written by under jit, and noted where they pick."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
import torch

from t2j_lsp import convert

PERHAPS_A_MASK = """\
import torch
from torch import Tensor


def f(x: Tensor, {mask}: Tensor):
    x = x.clone()
    x[{index}] = 7.0
    return x
"""


@pytest.mark.parametrize(("mask", "index"), [("mask", "mask"), ("keep", "~keep"), ("valid_mask", "valid_mask")])
def test_what_is_named_as_masks_are_is_written_by_under_jit_and_may_be_places(mask: str, index: str) -> None:
    text = PERHAPS_A_MASK.format(mask=mask, index=index)
    translation = convert(text)
    assert not translation.findings
    assert convert(translation.code).code == translation.code
    sides: list[dict[str, Any]] = [{}, {}]
    exec(text, sides[0])
    exec(translation.code, sides[1])
    x = np.arange(12.0, dtype=np.float32).reshape(4, 3)
    for given in (np.array([True, False, True, False]), np.array([0, 2])):
        wanted = sides[0]["f"](torch.tensor(x), torch.tensor(given)).numpy()
        np.testing.assert_array_equal(jax.jit(sides[1]["f"])(x, given), wanted)


def test_what_is_picked_by_what_is_named_as_a_mask_is_noted() -> None:
    text = "from torch import Tensor\n\n\ndef f(x: Tensor, {0}: Tensor):\n    return x.relu()[{0}]\n"
    assert [note.code for note in convert(text.format("mask")).notes] == ["value-needed"]
    assert not convert(text.format("keep_indices")).notes


def test_a_tensor_of_booleans_by_its_annotation_is_a_mask() -> None:
    text = "import torch\n\n\ndef f(x: torch.Tensor, m: torch.BoolTensor):\n    x[m] = 1.0\n    return x * 1\n"
    assert "set_where(x, m, 1.0)" in convert(text).code


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("[x[m] for x, m in zip(xs, masks)]", True),
        ("[row[k].sum() for k, row in zip(self.keep, xs)]", True),
        ("[torch.relu(xs[valid[i]]) for i in range(3)]", True),
        ("[xs[i][m] for i, m in enumerate(masks)]", True),
        ("[x[i] for x, i in zip(xs, places)]", False),
        ("[x[m] for m, x in zip(places, masks)]", False),
        ("[xs[i] for i in range(len(masks))]", False),
    ],
)
def test_one_of_several_masks_by_their_name_picks_too(line: str, said: bool) -> None:
    text = f"import torch\n\n\ndef f(self, xs: torch.Tensor, masks, valid, places):\n    return {line}\n"
    assert ["a mask picks" in note.reason for note in convert(text).findings] == [True] * said
