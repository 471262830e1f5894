"""Modules in front of another base: the constructor of a class with several bases is the last one's."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import pytest
from flax import nnx

from t2j_lsp import convert

SOURCE = """\
from torch import nn


class Bottle(nn.Module):
    def forward(self, input):
        if len(input.size()) <= 2:
            return super(Bottle, self).forward(input)
        size = input.size()[:2]
        return super(Bottle, self).forward(input.view(size[0] * size[1], -1)).view(size[0], size[1], -1)


class Linear(Bottle, nn.Linear):
    pass


class Alone(nn.Module):
    def forward(self, x):
        return x


layer, other = Linear(3, 4), Alone()
"""


def test_a_class_in_front_of_a_layer_has_no_constructor() -> None:
    """PyTorch's own SNLI example: `Linear(3, 4)` builds the layer."""
    done = convert(SOURCE)
    assert not done.gaps
    made: dict[str, Any] = {}
    exec(done.code, made)
    assert made["layer"](jnp.ones((2, 5, 3))).shape == (2, 5, 4)
    assert made["Alone"](rngs=nnx.Rngs(0))(1) == 1


BETWEEN = """import torch
from torch import nn


class Scaled:
    def __init__(self, k):
        {made}
        self.k = k


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)


class Net({bases}):
    def __init__(self):
        super().__init__({given})

    def forward(self, x):
        return self.fc(x)
"""


@pytest.mark.parametrize(
    ("bases", "given", "gaps"), [("Scaled, Base", "2", 1), ("Base, nn.Module", "", 0), ("Base, Scaled", "", 0)]
)
def test_a_constructor_in_front_of_a_modules_hands_no_rngs_on(bases: str, given: str, gaps: int) -> None:
    done = convert(BETWEEN.format(made="super().__init__()", bases=bases, given=given))
    assert len(done.gaps) == gaps
    assert gaps or "super().__init__(rngs=rngs)" in done.code


SKIPPED = """import torch
from torch import nn


class Root(nn.Module):
    def __init__(self, {more}):
        super().__init__()
        self.root = nn.Linear(3, 3)


class Base({root}):
    def __init__(self, made, n):
        super(Base, self).__init__({given})
        self.n = n


class Net(Base):
    def __init__(self, n=10):
        super(Base, self).__init__({given})
        self.n = n
        self.fc = nn.Dropout(0.5)

    def forward(self, x):
        return self.fc(x) * self.n + torch.rand(1)
"""


@pytest.mark.parametrize(("root", "more", "given"), [("nn.Module", "", ""), ("Root", "k", "2"), ("Root", "k=1", "")])
def test_a_constructor_that_is_skipped_by_name_stays_skipped(root: str, more: str, given: str) -> None:
    done = convert(SKIPPED.format(root=root, more=more, given=given))
    assert not done.gaps
    made: dict[str, Any] = {}
    exec(done.code, made)
    net = made["Net"](rngs=nnx.Rngs(0))
    assert net(jnp.ones((2, 3))).shape == (2, 3)
    assert hasattr(net, "root") == (root == "Root")


IN_FRONT = """from torch import nn


class Streaming(nn.Module):
    def __init__(self):
        super().__init__()
        self.on = True


class Layers(Streaming, nn.Sequential):
    pass


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = Layers()
        self.layers.append(nn.Linear(3, 4))
        self.other = Streaming()

    def forward(self, x):
        return self.layers(x) if self.layers.on and self.other.on else x
"""


def test_a_constructor_in_front_of_a_layers_calls_it() -> None:
    done = convert(IN_FRONT)
    assert not done.gaps
    made: dict[str, Any] = {}
    exec(done.code, made)
    assert made["Net"](rngs=nnx.Rngs(0))(jnp.ones((2, 3))).shape == (2, 4)
    assert convert(done.code).code == done.code


EVALUATED = """\
import torch
from torch import nn


class Evaluates:
    def evaluated(self, x):
        was_training = self.training
        self.eval()
        out = self(x)
        if was_training:
            self.train()
        return out


class Net(Evaluates, nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)

    def forward(self, x):
        return self.fc(x) + (1 if self.training else 0)
"""


@pytest.mark.parametrize("mode", [" + (1 if self.training else 0)", ""])
def test_a_module_has_the_mode_that_a_class_mixed_into_it_reads(mode: str) -> None:
    done = convert(EVALUATED.replace(" + (1 if self.training else 0)", mode))
    assert not done.gaps
    scope: dict[str, Any] = {"__name__": "converted"}
    exec(done.code, scope)
    net = scope["Net"](rngs=nnx.Rngs(0))
    x = jnp.ones((1, 2))
    assert not net.deterministic
    assert jnp.allclose(net.evaluated(x), net.fc(x))
    assert not net.deterministic
