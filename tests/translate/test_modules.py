"""nn.Module becomes nnx.Module: constructor, forward, containers, buffers, modes."""

from __future__ import annotations

from typing import Any

import pytest
from flax import nnx

from t2j_lsp.contract import Options
from t2j_lsp.translate import translate

from .convert import body, expect


def test_a_module_keeps_its_names_and_gets_rngs() -> None:
    expect(
        """
        class Net(nn.Module):
            def __init__(self, width: int = 8):
                super().__init__()
                self.fc = nn.Linear(4, width, bias=False)
                self.drop = nn.Dropout(0.1)

            def forward(self, x):
                return self.drop(self.fc(x))
        """,
        """
        class Net(nnx.Module):
            def __init__(self, width: int = 8, *, rngs: nnx.Rngs):
                self.fc = nnx.Linear(
                    4, width, use_bias=False, kernel_init=uniform_fan_in, rngs=rngs
                )
                self.drop = nnx.Dropout(0.1, rngs=rngs)

            def __call__(self, x):
                return self.drop(self.fc(x))
        """,
    )


def test_a_layer_called_by_keyword_is_called_by_position() -> None:
    """Flax's layers have other names for what PyTorch's call ``input``."""
    code = body("""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 3)
            self.loss = nn.CrossEntropyLoss()

        def forward(self, x, y):
            return self.loss(target=y, input=self.fc(input=x))
    """)
    assert "return self.loss(self.fc(x), target=y)" in code


def test_a_softmax_layer_of_a_tensor_without_axes_is_refused() -> None:
    source = "import torch\nimport torch.nn as nn\n\nsoftmax = nn.Softmax(dim=0)\nprint(softmax({}))\n"
    refused = translate(source.format("torch.ones(3).sum()")).gaps
    assert [gap.reason for gap in refused] == [
        "PyTorch takes a tensor without axes for a vector here, JAX raises: make it one with x.reshape(1)"
    ]
    assert translate(source.format("torch.ones(3)")).gaps == ()


def test_a_module_without_constructor_gets_one() -> None:
    code = body("class Square(nn.Module):\n    def forward(self, x):\n        return x * x\n")
    assert "def __init__(self, *, rngs: nnx.Rngs | None = None):\n        pass" in code


def test_buffers_and_parameters() -> None:
    code = body("""
    class Net(nn.Module):
        def __init__(self, n: int):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(n))
            self.register_buffer("mask", torch.tril(torch.ones(n, n)))
            self.register_buffer("ids", torch.arange(n), persistent=False)
            self.register_parameter("bias", None)

        def forward(self, x):
            return torch.softmax(x * self.scale, -1) @ self.mask[:2]
    """)
    assert "self.scale = nnx.Param(jnp.ones(n))" in code
    assert "self.mask = Buffer(jnp.tril(jnp.ones((n, n))))" in code
    assert "self.ids = Buffer(jnp.arange(n), persistent=False)" in code
    assert "self.bias = nnx.data(None)" in code
    assert "jax.nn.softmax(x * self.scale, axis=-1) @ self.mask[:2]" in code


def test_training_is_the_deterministic_flag() -> None:
    code = body("""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.p = 0.1

        def forward(self, x):
            if not self.training:
                return x
            return F.dropout(x, self.p, training=self.training)
    """)
    assert "deterministic: bool = False" in code
    assert "if self.deterministic:" in code
    assert "dropout(x, self.p, deterministic=self.deterministic, rngs=self.rngs)" in code
    assert "self.rngs = rngs.fork()" in code


def test_a_class_whose_mode_is_read_elsewhere_has_the_flag() -> None:
    code = body("""
    class Net(nn.Module):
        def forward(self, x):
            return finish(self, x)

    def finish(net, x):
        return x if net.training else -x
    """)
    assert "deterministic: bool = False" in code
    assert "return x if not net.deterministic else -x" in code


def test_a_module_of_no_known_class_may_have_no_flag() -> None:
    code = body("""
    def without_training(model, x):
        was = model.training
        model.eval()
        y = model(x)
        model.train(was)
        return y
    """)
    assert "was = is_training(model)" in code
    assert "model.train() if was else model.eval()" in code


@pytest.mark.parametrize("mode", ["train", "eval"])
@pytest.mark.parametrize("chain", ["model.{}()", "model.to('cpu').{}()", "model.{}().cuda()"])
def test_a_model_that_is_assigned_itself_is_switched(mode: str, chain: str) -> None:
    code = body(f"""
    def use(model: nn.Module, x):
        model = {chain.format(mode)}
        return model(x)
    """)
    assert f"    model.{mode}()\n    return model(x)" in code


def test_classes_as_values_are_helper_classes_that_take_rngs() -> None:
    code = body("""
    from functools import partial
    class Net(nn.Module):
        def __init__(self, norm=nn.BatchNorm2d, act=partial(nn.GELU, approximate="tanh")):
            super().__init__()
            self.norm = norm(8)
            self.act = act()

        def forward(self, x):
            return self.act(self.norm(x))
    """)
    assert 'norm=BatchNorm2d, act=partial(GELU, approximate="tanh"), *, rngs\n' in code
    assert "self.norm = norm(8, rngs=rngs)" in code
    assert "self.act = act(rngs=rngs)" in code


def test_initialisation_loops() -> None:
    code = body("""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 2)
            for m in self.modules():
                if isinstance(m, nn.Linear):
                    nn.init.normal_(m.weight, std=0.02)
                    nn.init.zeros_(m.bias)
            self.apply(self._init)

        def _init(self, m):
            if isinstance(m, nn.Embedding):
                nn.init.normal_(m.weight)

        def forward(self, x):
            return self.fc(x)
    """)
    assert "for _, m in nnx.iter_modules(self):" in code
    assert "if isinstance(m, nnx.Linear):" in code
    assert "m.kernel[...] = 0.02 * rngs.params.normal(" in code
    assert "m.bias[...] = 0" in code
    assert "def _init(self, m, *, rngs: nnx.Rngs):" in code
    assert "self._init(module, rngs=rngs)" in code


DOUBLE = """\
import torch
import torch.nn as nn

net = nn.Linear(3, 2)
net.double()
other = nn.Linear(3, 2).to(torch.float64)
third = nn.Linear(3, 2).to("cpu", dtype=torch.float32)
"""


def test_a_model_in_float64_is_in_float32_and_said_to_be() -> None:
    translation = translate(DOUBLE, Options(helpers="import"))
    assert not translation.gaps
    assert "float64" not in translation.code and "\nnet\n" not in translation.code
    assert [(f.span.line, "x64" in f.reason) for f in translation.findings] == [(5, True), (6, True)]


def test_a_model_that_is_to_keep_64_bits_or_to_have_fewer_stays() -> None:
    assert [gap.span.line for gap in translate(DOUBLE, Options(x64=True)).gaps] == [5, 6]
    half = DOUBLE.replace("float64", "float16").replace("net.double()", "net.half()")
    assert [gap.span.line for gap in translate(half, Options()).gaps] == [5, 6]


def test_an_attribute_that_is_none_first_may_hold_data_later() -> None:
    code = body("""
    class Net(nn.Module):
        def __init__(self, deep: bool):
            super().__init__()
            self.extra = None
            if deep:
                self.extra = nn.Linear(2, 2)

        def forward(self, x):
            return x if self.extra is None else self.extra(x)
    """)
    assert "self.extra = nnx.data(None)" in code


@pytest.mark.parametrize(
    ("branches", "data"),
    [
        (
            "if deep:\n            self.extra = None\n            if wide:\n"
            "                self.extra = nn.Linear(2, 2)",
            True,
        ),
        ("if deep:\n            self.extra = None\n        if wide:\n            self.extra = nn.Linear(2, 2)", True),
        ("if deep:\n            self.extra = None\n        else:\n            self.extra = nn.Linear(2, 2)", False),
        ("if deep:\n            self.extra = nn.Linear(2, 2)\n        else:\n            self.extra = None", False),
    ],
    ids=["in the branch", "behind it", "in the other", "before"],
)
def test_an_attribute_that_a_branch_makes_none_is_data_where_it_is_assigned_behind(branches: str, data: bool) -> None:
    """Found in timm's fastvit: NNX refuses a module in an attribute that held None."""
    code = translate(f"""import torch.nn as nn


class Net(nn.Module):
    def __init__(self, deep: bool, wide: bool):
        super().__init__()
        {branches}

    def forward(self, x):
        return x if self.extra is None else self.extra(x)
""").code
    assert ("self.extra = nnx.data(None)" in code) is data
    made: dict[str, Any] = {}
    exec(code, made)
    for wide in (True, False):
        made["Net"](True, wide, rngs=nnx.Rngs(0))


@pytest.mark.parametrize("empty", ["[]", "()", "{}"])
def test_an_attribute_that_is_an_empty_list_first_is_data_and_then_a_tensor(empty: str) -> None:
    code = body(f"""
    class Loss(nn.Module):
        def __init__(self):
            super().__init__()
            self.targets = {empty}  # no memory yet
            self.names = {empty}

        def forward(self, x):
            self.targets = torch.zeros_like(x)
            if self.names:
                self.targets = self.targets.mul(2).add(1)
            return -self.targets.mul(x)
    """)
    assert f"self.targets = nnx.data({empty})  # no memory yet" in code
    assert f"self.names = {empty}\n" in code
    assert "self.targets = self.targets * 2 + 1" in code
    assert "return -(self.targets * x)" in code
