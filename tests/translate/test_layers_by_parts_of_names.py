"""Layers that a program tells by parts of their classes' names, and by what they have: functions for `apply`."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

TEXT = """\
from torch import nn

def fill(m):
    name = m.__class__.__name__
    if {asked}:
        nn.init.normal_(m.weight, 0.0, 0.02)

net = nn.Sequential(nn.Conv2d(2, 3, 3), nn.Linear(3, 3))
net.apply(fill)
"""


@pytest.mark.parametrize(
    "asked",
    [
        "name.find('Conv') != -1 or name.find('Linear') != -1",
        "'Conv' in name or 'Linear' in name",
        "'Conv' in name or isinstance(m, nn.Linear)",
        "hasattr(m, 'weight') and ('Conv' in name or 'Linear' in name)",
    ],
)
def test_one_of_several_names_tells_the_layers(asked: str) -> None:
    done = convert(TEXT.format(asked=asked))
    assert not done.gaps
    assert "= m.kernel if isinstance(" in done.code or "m.kernel[...] = 0.02" in done.code


@pytest.mark.parametrize("asked", ["'Conv' in name or m.training", "'Conv' in name or len(name) > 3"])
def test_what_may_be_another_class_is_not_told(asked: str) -> None:
    done = convert(TEXT.format(asked=asked))
    assert done.gaps and "m.kernel" not in done.code


@pytest.mark.parametrize(
    ("asked", "written"),
    [
        ("hasattr(m, 'weight') and isinstance(m, nn.Linear)", 'hasattr(m, flax_name(m, "weight"))'),
        (
            "getattr(m, 'weight', None) is not None and 'Linear' in name",
            'torch_parameter(m, "weight", None) is not None',
        ),
        ("isinstance(m, nn.Linear) and hasattr(m, 'weight')", 'hasattr(m, "kernel")'),
        ("hasattr(m, 'bias') and isinstance(m, nn.Linear)", "hasattr(m, 'bias')"),
    ],
)
def test_what_an_unknown_layer_has_is_asked_under_its_name_in_flax(asked: str, written: str) -> None:
    """`hasattr(m, "weight")` is False for a layer of Flax, and its weights would stay as they were, in silence."""
    done = convert(TEXT.format(asked=asked))
    assert not done.gaps
    assert written in done.code


NAMED = """\
from torch import nn

net = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.Linear(3, 3))
for m in net.modules():
    if {asked}:
        m.weight.data.fill_(0.02)
"""


@pytest.mark.parametrize(
    "asked",
    [
        "m.__class__.__name__ == 'Conv2d'",
        "type(m).__name__ in ('Conv2d', 'Linear')",
        "m.__class__.__name__.startswith('Conv')",
        "m.__class__.__name__.find('BatchNorm2d') != -1",
        "'Conv2d' in str(type(m))",
    ],
)
def test_layers_keep_their_classes_where_these_are_told_by_their_names(asked: str) -> None:
    done = convert(NAMED.format(asked=asked))
    assert not done.gaps
    assert ("class Conv2d(" in done.code) == ("Conv" in asked)
    assert ("class BatchNorm2d(" in done.code) == ("BatchNorm2d" in asked)


def test_others_have_flaxs_arguments_and_pytorchs_axes() -> None:
    asked = "hasattr(m, 'weight') and m.__class__.__name__.find('BatchNorm2d') != -1"
    code = convert(NAMED.format(asked=asked)).code
    assert "ChannelsFirstConv(2, 3, (3, 3), padding=0, rngs=rngs)" in code and "BatchNorm2d(3, rngs=rngs)" in code
    other = NAMED.format(asked="hasattr(m, 'stride') and m.__class__.__name__.find('BatchNorm2d') != -1")
    assert "class Conv2d(" in convert(other).code


@pytest.mark.parametrize(
    "asked",
    ["m.__class__.__name__ == 'Embedding'", "type(m).__name__ in ['ReLU']", "'BatchNorm2d' in str(m)"],
)
def test_a_name_that_no_layer_of_flax_has_is_a_gap(asked: str) -> None:
    """What it guards would be left out in silence."""
    assert any("other class names" in gap.reason for gap in convert(NAMED.format(asked=asked)).gaps)


@pytest.mark.parametrize("asked", ["m.__class__.__name__ == 'Linear'", "'Conv' in type(m).__name__"])
def test_names_that_both_have_change_nothing(asked: str) -> None:
    done = convert(NAMED.format(asked=asked))
    assert not done.gaps and "class Conv2d(" not in done.code
