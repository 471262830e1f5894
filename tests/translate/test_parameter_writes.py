"""Writes into parameters and buffers: layers' weights have Flax's names and layouts, whatever the spelling."""

from __future__ import annotations

import pytest

from t2j_lsp.contract import Options
from t2j_lsp.translate import translate

SOURCE = """\
import torch
import torch.nn as nn


class M(nn.Module):
    def __init__(self, d: int, scale: float = 0.5):
        super().__init__()
        self.fc = nn.Linear(d, d)
        self.conv = nn.Conv2d(d, d, 3)
        self.emb = nn.Embedding(d, d)
        self.gain = nn.Parameter(torch.ones(d))
        self.register_buffer("ema", torch.zeros(d))
        w = torch.eye(d)
        {statement}
"""


def written(statement: str) -> str:
    """The last statement of the converted constructor, on one line."""
    translation = translate(SOURCE.format(statement=statement), Options())
    code = translation.code
    assert not translation.gaps, translation.gaps
    text = code[code.index("w = jnp.eye(d)") :].partition("\n")[2].partition("\n\n\n")[0]
    return " ".join(text.split()).replace("( ", "(").replace(" )", ")")


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        # the same for every element: no layout to think of
        ("self.fc.weight.data.zero_()", "self.fc.kernel[...] = 0"),
        ("self.fc.weight.data.fill_(0.5)", "self.fc.kernel[...] = 0.5"),
        (
            "self.fc.weight.data.normal_(mean=0.0, std=scale)",
            "self.fc.kernel[...] = scale * rngs.normal(self.fc.kernel.shape, self.fc.kernel.dtype)",
        ),
        ("self.conv.weight.data.mul_(scale)", "self.conv.kernel[...] = self.conv.kernel[...] * scale"),
        ("self.fc.weight *= 0.5", "self.fc.kernel[...] *= 0.5"),
        # values in PyTorch's layout
        ("self.fc.weight.data.copy_(w)", "self.fc.kernel[...] = w.T"),
        ("self.fc.weight.data = w", "self.fc.kernel[...] = w.T"),
        ("self.conv.weight.data.copy_(w)", "self.conv.kernel[...] = jnp.moveaxis(w, (0, 1), (-1, -2))"),
        # tables, biases and buffers keep their layout
        ("self.emb.weight.data[0].zero_()", "self.emb.embedding[0] = 0"),
        ("self.emb.weight.data[0] = w[0]", "self.emb.embedding[0] = w[0]"),
        ("self.fc.bias.data.zero_()", "self.fc.bias[...] = 0"),
        ("self.gain.data.copy_(w)", "self.gain[...] = w"),
        ("self.gain += 1", "self.gain[...] += 1"),
        ("self.ema.mul_(0.9).add_(w, alpha=0.1)", "self.ema[...] = self.ema[...] * 0.9 + 0.1 * w"),
    ],
)
def test_a_write_goes_into_the_variable(statement: str, expected: str) -> None:
    assert written(statement) == expected


@pytest.mark.parametrize("statement", ["self.fc.weight[0] = 0", "self.conv.weight.data[:, 0].zero_()"])
def test_a_write_into_part_of_a_kernel_is_left_and_marked(statement: str) -> None:
    translation = translate(SOURCE.format(statement=statement), Options())
    assert [gap.code for gap in translation.gaps] == ["in-place"]
    assert statement in translation.code


INIT = """\
import torch.nn as nn


def init(m):
    {test}
        {statement}
"""
KINDS = "if isinstance(m, (nn.Conv2d, nn.Bilinear, nn.Linear)):"


@pytest.mark.parametrize(
    ("test", "statement", "expected"),
    [
        (KINDS, "nn.init.zeros_(m.weight)", "weight[...] = jnp.zeros_like(weight[...])"),
        (KINDS, "nn.init.uniform_(m.weight.data)", "weight[...] = rngs.params.uniform(weight.shape, weight.dtype)"),
        (KINDS, "m.weight.data.fill_(1.0)", "weight[...] = 1.0"),
        (KINDS, "m.weight.data.normal_()", "weight[...] = rngs.normal(weight.shape, weight.dtype)"),
    ],
)
def test_a_weight_of_two_kinds_of_layers_is_picked_first(test: str, statement: str, expected: str) -> None:
    translation = translate(INIT.format(test=test, statement=statement), Options())
    assert not translation.gaps
    code = translation.code
    assert "weight = m.kernel if isinstance(m, " in code and expected in code


@pytest.mark.parametrize(
    "test",
    ['if m.__class__.__name__.find("Conv") != -1:', "if isinstance(m, (nn.Conv2d, nn.ConvTranspose2d)):"],
)
def test_convolutions_of_both_kinds_have_a_kernel(test: str) -> None:
    translation = translate(INIT.format(test=test, statement="nn.init.kaiming_normal_(m.weight)"), Options())
    assert (
        not translation.gaps
        and 'm.kernel[...] = nnx.initializers.variance_scaling(2.0, "fan_in", "normal")(' in translation.code
    )


@pytest.mark.parametrize("test", ['if "BatchNorm" in type(m).__name__:', "if isinstance(m, nn.BatchNorm2d):"])
def test_a_test_of_the_class_name_tells_the_layer(test: str) -> None:
    translation = translate(INIT.format(test=test, statement="nn.init.ones_(m.weight)"), Options())
    assert not translation.gaps and "m.scale[...] = jnp.ones_like(m.scale[...])" in translation.code


@pytest.mark.parametrize(
    ("test", "statement"),
    [
        (KINDS, "nn.init.kaiming_normal_(m.weight)"),  # the fans stand on other axes in each
        ('if m.__class__.__name__.find("Embedding") != -1:', "nn.init.normal_(m.weight)"),  # nnx.Embed has another name
    ],
)
def test_what_depends_on_the_layer_is_left_and_marked(test: str, statement: str) -> None:
    translation = translate(INIT.format(test=test, statement=statement), Options())
    assert len(translation.gaps) == 1


@pytest.mark.parametrize(
    "code",
    [
        "def init(m):\n    nn.init.zeros_(m.weight)\n",
        "def init(m):\n    m.bias.data.zero_()\n",
        "def init(layers):\n    for layer in nn.ModuleList(layers):\n        nn.init.ones_(layer.weight)\n",
    ],
)
def test_parameters_of_modules_of_unknown_class_are_not_written_under_a_guessed_name(code: str) -> None:
    done = translate("import torch\nfrom torch import nn\n\n\n" + code, Options())
    assert len(done.gaps) == 1
    assert "[...] = " not in done.code


def test_a_module_that_a_passed_class_made_has_its_parameters_under_pytorchs_names() -> None:
    code = """
class Block(nn.Module):
    def __init__(self, dim, norm_layer=nn.LayerNorm):
        super().__init__()
        self.norm = norm_layer(dim)
        nn.init.zeros_(self.norm.weight)

    def forward(self, x):
        return self.norm(x)
"""
    done = translate("import torch\nfrom torch import nn\n\n" + code, Options())
    assert not done.gaps


def test_a_parameter_that_a_second_module_is_given_is_shared() -> None:
    code = """
class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(3))

    def forward(self, x):
        return x * self.gain


def tie(a: Gate, b: Gate):
    a.gain = b.gain
"""
    done = translate("import torch\nfrom torch import nn\n\n" + code, Options())
    assert not done.gaps and "    a.gain = b.gain\n" in done.code
