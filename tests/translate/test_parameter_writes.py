"""Writes into parameters and buffers: layers' weights have Flax's names and layouts, whatever the spelling."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flax import nnx

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
        ("self.fc.weight *= scale", "self.fc.kernel[...] *= scale"),
        # as many axes in Flax's layout; what may have fewer, or none, meets the weight in PyTorch's
        ("self.fc.weight += w", "self.fc.kernel[...] += w.T"),
        ("self.fc.weight += torch.ones(d)", "self.fc.kernel[...] = (self.fc.kernel.T + jnp.ones(d)).T"),
        ("self.fc.weight *= unknown(d)", "self.fc.kernel[...] = (self.fc.kernel.T * unknown(d)).T"),
        ("self.fc.weight /= d + unknown(d)", "self.fc.kernel[...] = (self.fc.kernel.T / (d + unknown(d))).T"),
        (
            "self.conv.weight -= unknown(d)",
            "self.conv.kernel[...] = jnp.moveaxis(jnp.moveaxis(self.conv.kernel[...], (-1, -2), (0, 1)) - unknown(d), "
            "(0, 1), (-1, -2),)",
        ),
        # values in PyTorch's layout
        ("self.fc.weight.data.copy_(w)", "self.fc.kernel[...] = w.T"),
        ("self.fc.weight.data = w", "self.fc.kernel[...] = w.T"),
        (
            "self.conv.weight.data.copy_(w[:, :, None, None])",
            "self.conv.kernel[...] = jnp.moveaxis(w[:, :, None, None], (0, 1), (-1, -2))",
        ),
        # what may have fewer axes gets PyTorch's in front: in PyTorch's layout
        ("self.fc.weight *= scale * w", "self.fc.kernel[...] *= (scale * w).T"),
        ("self.fc.weight *= w[0]", "self.fc.kernel[...] = (self.fc.kernel.T * w[0]).T"),
        (
            "self.fc.weight.data.copy_(w[0])",
            "self.fc.kernel[...] = jnp.broadcast_to(w[0], self.fc.kernel.T.shape).T",
        ),
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


@pytest.mark.jax
@pytest.mark.parametrize("sign", ["+", "*", "-", "/"])
@pytest.mark.parametrize("value", ["v", "v[:, None]", "2.0"])
def test_what_meets_a_kernel_is_broadcast_as_in_pytorch(sign: str, value: str) -> None:
    """Found in x-transformers, where the value was Python's number: ``m.weight *= uniform(0.0, 1.1)``."""
    source = f"""import torch
import torch.nn as nn


class M(nn.Module):
    def __init__(self, v):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        with torch.no_grad():
            self.fc.weight.copy_(torch.arange(9.0).reshape(3, 3))
            self.fc.weight {sign}= {value}
"""
    made: dict[str, Any] = {}
    exec(translate(source, Options()).code, made)
    v = np.asarray([1.0, 2.0, 4.0])
    expected = eval(f"weight {sign} {value}", {"weight": np.arange(9.0).reshape(3, 3), "v": v})
    np.testing.assert_allclose(made["M"](v, rngs=nnx.Rngs(0)).fc.kernel.T, expected, rtol=1e-6)


@pytest.mark.parametrize("statement", ["self.fc.weight[0] = 0", "self.conv.weight.data[:, 0].zero_()"])
def test_a_write_into_part_of_a_kernel_is_one_in_the_axes_of_pytorch(statement: str) -> None:
    translation = translate(SOURCE.format(statement=statement), Options())
    assert not translation.gaps
    assert ".at[0].set(0).T" in translation.code or ".at[:, 0].set(0)," in translation.code


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
        (KINDS, "nn.init.zeros_(m.weight)", "weight[...] = 0"),
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
    assert not translation.gaps and "m.scale[...] = 1" in translation.code


@pytest.mark.parametrize(
    ("test", "statement"),
    [
        (KINDS, "nn.init.kaiming_normal_(m.weight)"),  # the fans stand on other axes in each
        ('if m.__class__.__name__.find("Embedding") != -1:', "nn.init.normal_(m.weight)"),  # nnx.Embed has another name
    ],
)
def test_what_depends_on_the_layer_is_left_and_marked(test: str, statement: str) -> None:
    translation = translate(INIT.format(test=test, statement=statement), Options())
    assert len([gap for gap in translation.gaps if gap.name != "class name"]) == 1


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


WIDE = """\
import random

import torch
import torch.nn as nn


class M(nn.Module):
    def __init__(self, scale, row):
        super().__init__()
        self.fc = nn.Linear(3, 4)
        self.conv = nn.Conv2d(3, 4, 2)
        with torch.no_grad():
            self.fc.weight.copy_(torch.arange(12.0).reshape(4, 3) + 1)
            self.conv.weight.copy_(torch.arange(48.0).reshape(4, 3, 2, 2) + 1)
            {statement}
"""


@pytest.mark.parametrize(
    "statement",
    [
        "self.fc.weight *= row",
        "self.fc.weight *= scale",
        "self.fc.weight += random.Random(0).uniform(0.0, 1.1)",
        "self.fc.weight.data *= torch.arange(3.0)",
        "self.fc.weight -= torch.arange(12.0).reshape(4, 3)",
        "self.fc.weight.copy_(row)",
        "self.fc.weight.data.copy_(torch.arange(3.0))",
        "self.fc.weight.mul_(row)",
        "self.fc.weight += torch.zeros_like(self.fc.weight) + row",
        "self.fc.weight.add_(0 * torch.randn_like(self.fc.weight))",
        "self.conv.weight *= torch.arange(2.0)",
        "self.conv.weight *= row[:, None, None]",
        "self.conv.weight *= torch.arange(4.0)[:, None, None, None]",
        "self.conv.weight.copy_(torch.arange(2.0))",
    ],
)
def test_a_value_with_fewer_axes_than_the_weight_is_spread_as_in_pytorch(statement: str) -> None:
    import torch
    from flax import nnx
    from jax import numpy as jnp

    from t2j_lsp.weights import torch_state

    source = WIDE.format(statement=statement)
    translation = translate(source, Options())
    assert not translation.gaps, translation.gaps
    before: dict[str, Any] = {}
    exec(source, before)
    after: dict[str, Any] = {}
    exec(translation.code, after)
    expected = before["M"](0.5, torch.tensor([1.0, 2.0, 3.0])).state_dict()
    model = after["M"](0.5, jnp.array([1.0, 2.0, 3.0]), rngs=nnx.Rngs(0))
    for name in ("fc.weight", "conv.weight"):
        np.testing.assert_allclose(torch_state(model)[name], expected[name].numpy(), rtol=1e-6)
