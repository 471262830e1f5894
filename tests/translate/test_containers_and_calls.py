"""nn.Module becomes nnx.Module: containers, the names of classes and methods, and what goes or stays."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from t2j_lsp.weights import load_torch_state

from .convert import body, expect, expect_same, run
from .side_by_side import randomized, run_jax, run_torch, sides
from .test_regressions import equal


def test_containers() -> None:
    code = body("""
    class Net(nn.Module):
        def __init__(self, n: int):
            super().__init__()
            self.blocks = nn.ModuleList([nn.Linear(4, 4) for _ in range(n)])
            self.head = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
            self.indexed = nn.Sequential(nn.Linear(4, 4), nn.ReLU())

        def forward(self, x):
            for block in self.blocks:
                x = block(x)
            return self.indexed[0](self.head(x))
    """)
    assert "self.blocks = nnx.List(" in code
    assert "self.head = nnx.Sequential(" in code
    assert "self.indexed = IndexedSequential(" in code


def test_the_constructor_of_modules_named_by_its_class_goes() -> None:
    """``nn.Module.__init__(self)`` beside mixins; one of another object stays, with the reason."""
    source = """
    class Mixin:
        def twice(self, x):
            return x * 2

    class A(Mixin, nn.Module):
        def __init__(self):
            nn.Module.__init__(self)
            self.fc = nn.Linear(2, 2)

        def forward(self, x):
            return self.twice(self.fc(x))
    """
    code = body(source)
    assert "__init__(self, *, rngs: nnx.Rngs):\n        self.fc = " in code
    assert "Module.__init__" not in code
    assert "nn.Module.__init__(self.fc)" in body(
        source.replace("__init__(self)\n            self.fc", "__init__(self.fc)\n            self.fc")
    )


def test_a_dict_has_the_methods_of_dicts_where_it_may_be_a_tensor_too() -> None:
    code = body("""
    class A(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 2)

        def forward(self, x):
            if isinstance(x, dict):
                return {k: self(v) for k, v in x.items()}
            return self.fc(x.to(torch.float32))
    """)
    assert "return {k: self(v) for k, v in x.items()}" in code
    assert "TODO" not in code


def test_super_forward_and_module_forward_become_calls() -> None:
    code = body("""
    class A(nn.Module):
        def __init__(self):
            super(A, self).__init__()
            self.inner = nn.Identity()

        def forward(self, x):
            return self.inner.forward(x)

    class B(A):
        def forward(self, x):
            return super().forward(x) + 1
    """)
    assert "return self.inner(x)" in code
    assert "return super().__call__(x) + 1" in code


def test_a_custom_autograd_function_is_left_alone_and_reported() -> None:
    source = """
    class Step(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.sign()
    """
    result = run(source)
    assert "return x.sign()" in result.code
    assert [gap.name for gap in result.gaps] == ["torch.autograd.Function"]


def test_a_plain_class_is_left_alone() -> None:
    expect_same("""
    class Config:
        def __init__(self):
            self.training = True

        def forward(self, x):
            return x
    """)


def test_torchscript_branches_go() -> None:
    expect(
        """
        def f(x: Tensor):
            if not torch.jit.is_scripting():
                # plain Python
                x = x + 1
            return x
        """,
        """
        def f(x: jax.Array):
            # plain Python
            x = x + 1
            return x
        """,
    )


def test_device_names_go_when_nothing_reads_them() -> None:
    code = body("""
    def main():
        device = "cuda" if torch.cuda.is_available() else "cpu"
        model = nn.Linear(2, 2).to(device)
        return model(torch.zeros(1, 2, device=device))
    """)
    assert "device" not in code


@pytest.mark.parametrize(
    "change",
    [
        "net = Net()\nnet.pool = nn.Identity()",
        "def cut(net):\n    net.pool = nn.MaxPool2d(3) if net else nn.Identity()",
    ],
)
def test_a_layer_that_is_exchanged_is_a_module_and_no_function(change: str) -> None:
    source = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    source += "        self.pool = nn.MaxPool2d(2)\n        self.end = nn.Identity()\n\n"
    source += "    def forward(self, x):\n        return self.end(self.pool(x))\n"
    assert "self.pool = lambda x: max_pool2d(x, kernel_size=2)" in body(source)
    code = body(source + "\n\n" + change + "\n")
    assert "self.pool = MaxPool2d(2)" in code and "self.end = nnx.identity" in code
    assert "net.pool = Identity()" in code or "net.pool = MaxPool2d(3) if net else Identity()" in code


COMPARED = """
import torch
from torch import nn


class A(nn.Module):
    def __init__(self):
        super().__init__()
        self.beta = nn.Parameter(torch.ones(3))
        self.register_buffer("done", torch.tensor(False))

    def forward(self, x):
        low = {}
        return torch.where(low, x, -x) * self.beta
"""


@pytest.mark.parametrize(
    "condition",
    [
        "self.beta != 0.5", "self.beta > 0.5", "0.5 <= self.beta", "x < self.beta", "self.beta == 0.5",
        "x > 0 if not self.done else x < 0", "x > 0 if self.done else x < 0",
    ],
)  # fmt: skip
def test_parameters_and_buffers_are_compared_by_their_values(condition: str) -> None:
    """A Variable has no order, its `!=` is no array, and its truth is that of its length."""
    both = sides(COMPARED.format(condition), "compared")
    assert both.gaps() == []
    x = np.random.default_rng(0).normal(size=(4, 3))
    reference, module = randomized(both.torch.A()), both.jax.A(rngs=both.jax.nnx.Rngs(0))
    with jax.enable_x64(True):
        load_torch_state(module, reference.state_dict())
        want, got = (
            run_torch(reference, [x], {}, True),
            run_jax(module, [x], {}, train=True, jit="done" not in condition),
        )
    np.testing.assert_allclose(got.outputs[0], want.outputs[0], rtol=1e-12)
    np.testing.assert_allclose(got.gradients["beta"], want.gradients["beta"], rtol=1e-12)


@pytest.mark.parametrize("layers", ["nn.Linear(n, n)", "nn.Sequential(nn.Linear(n, n),\n nn.ReLU())"])
@pytest.mark.parametrize(
    ("made", "called"),
    [
        ("nn.ModuleDict([str(n), {}]\n for n in sizes)", 'self.parts["4"](x)'),
        ("nn.ModuleDict((str(n), {}) for n in sizes)", 'self.parts["4"](x)'),
        ("nn.ModuleList({}\n for n in sizes)", "self.parts[0](x)"),
        ("Kept({} for n in sizes)", "self.parts(x)"),
        ("self.kept({}\n for n in sizes)", "self.parts(x)"),
    ],
)
def test_a_generator_without_brackets_of_its_own_is_an_argument(made: str, called: str, layers: str) -> None:
    text = f"""
import torch
from torch import nn


class Kept(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class A(nn.Module):
    def __init__(self, sizes=(4, 4)):
        super().__init__()
        self.parts = {made.format(layers)}

    def kept(self, layers):
        return nn.Sequential(*layers, nn.Linear(4, 3))

    def forward(self, x):
        return {called}
"""
    equal(text, "bare_generators", 2, 4)
