"""``float(x)`` of a tensor with one element and axes, which JAX takes no number out of."""

from __future__ import annotations

import pytest

from t2j_lsp.translate import translate

from .side_by_side import sides


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("float(torch.ones(1))", "jnp.ones(1).item()"),
        ("int(torch.ones(1, 1))", "int(jnp.ones((1, 1)).item())"),
        ("float(torch.arange(1))", "float(jnp.arange(1).item())"),
        ("float(torch.ones(1).sum())", "float(jnp.ones(1).sum())"),
        ("float(x)", "float(x)"),
    ],
)
def test_axes_are_taken_off_first(source: str, wanted: str) -> None:
    assert f"return {wanted}\n" in translate(f"import torch\n\n\ndef f(x):\n    return {source}\n").code


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ('"%.3f" % torch.ones(1)', '"%.3f" % jnp.ones(1).item()'),
        ('"%d: %.3f" % (3, torch.ones(1) * 2)', '"%d: %.3f" % (3, (jnp.ones(1) * 2).item())'),
        ('"%s %5.1f%%" % (torch.ones(1), torch.ones(1))', '"%s %5.1f%%" % (jnp.ones(1), jnp.ones(1).item())'),
        ('"%.3f" % torch.ones(2).sum()', '"%.3f" % jnp.ones(2).sum()'),
        ('"%*d" % (4, torch.ones(1))', '"%*d" % (4, jnp.ones(1))'),
    ],
)
def test_a_format_takes_a_number_out_of_an_array_with_axes(source: str, wanted: str) -> None:
    assert f"return {wanted}\n" in translate(f"import torch\n\n\ndef f(x):\n    return {source}\n").code


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("float(nn.Sequential(layer)[0].weight[:, 0])", "float("),
        ("show(layer.weight[:, 0])", "float(t.item())"),
        ("show(layer.weight[:, 0].sum())", "float(t.item())"),
    ],
)
def test_an_array_of_unknown_rank_may_have_axes(source: str, wanted: str) -> None:
    """``float()`` of a slice of a weight, and of a parameter that callers hand tensors."""
    head = "import torch\nfrom torch import nn\n\nlayer = nn.Linear(3, 1)\n\n\ndef show(t):\n    return float(t)\n\n\n"
    pair = sides(f"{head}value = {source}\n", "numbers_of_slices")
    assert not pair.gaps()
    assert wanted in pair.translation.code
    assert ".item()" in pair.translation.code
    assert isinstance(pair.jax.value, float)


def test_what_callers_hand_over_as_numbers_is_left_alone() -> None:
    source = "import torch\n\n\ndef show(t):\n    return float(t)\n\n\nvalue = show(3) + torch.ones(1)\n"
    assert "return float(t)\n" in translate(source).code


WORDS = """\
import torch

words = ["a", "b", "c"]
text = "abc"

def decode(scores: torch.Tensor):
    best = scores.max(2, keepdim=True)[1]
    print(text[scores.argmax()], words[torch.tensor(1)])
    return [words[i] for i in best]

print(decode(torch.ones(4, 1, 3)))
"""


def test_a_list_is_indexed_by_the_number_of_an_array_with_axes() -> None:
    code = translate(WORDS).code
    assert "[words[i.item()] for i in best]" in code
    assert "words[jnp.array(1)]" in code
