"""Contexts without gradient that a condition chooses, and passes of code that isn't in sight under such a context."""

from __future__ import annotations

import pytest

from .convert import body, run
from .test_regressions import equal

HEAD = "from contextlib import nullcontext\nimport torch\nfrom torch import nn\n"
CHOSEN = """
class A(nn.Module):
    def __init__(self, frozen={frozen}):
        super().__init__()
        self.frozen = frozen
        self.net, self.head = nn.Linear(4, 3), nn.Linear(3, 3)

    def forward(self, x):
        context = {context}
        with context():
            y = self.net(x)
            z = y * 2
        for step in range(3):
            last = step == 2
            inner = nullcontext if last else torch.no_grad
            with inner():
                z = z + self.head(z)
        return self.head(y) + z
"""
STOPS, PASSES = (
    "torch.no_grad if self.frozen else nullcontext",
    "nullcontext if not self.frozen else torch.inference_mode",
)


@pytest.mark.parametrize("frozen", [True, False])
@pytest.mark.parametrize("context", [STOPS, PASSES])
def test_gradients_stop_under_the_condition(frozen: bool, context: str) -> None:
    source = HEAD + CHOSEN.format(frozen=frozen, context=context)
    equal(source.replace("inference_mode", "no_grad"), "chosen_context", 2, 4)
    code = body(source)
    assert "if self.frozen:\n            y, z = jax.lax.stop_gradient((y, z))\n" in code
    assert "if not last:\n                z = jax.lax.stop_gradient(z)\n" in code and "context" not in code


def test_contexts_that_change_nothing_go() -> None:
    code = body(
        HEAD + "def f(x: torch.Tensor, trains: bool):\n    context = torch.enable_grad if trains else nullcontext\n"
        "    with context():\n        y = x * 2\n    return y + x\n"
    )
    assert code.endswith("def f(x: jax.Array, trains: bool):\n    y = x * 2\n    return y + x")


@pytest.mark.parametrize(
    "lines",
    [
        "with context():\n        return x * 2",  # what is returned from inside
        "with context():\n        y = x * 2\n    frozen = False\n    return y + x",  # another condition by then
        "with context() as c:\n        y = x * 2\n    return y + x",
        "g(context)\n    with context():\n        y = x * 2\n    return y + x",
    ],
)
def test_what_has_no_sure_form_stays(lines: str) -> None:
    code = f"def f(x: torch.Tensor, frozen, g):\n    context = torch.no_grad if frozen else nullcontext\n    {lines}\n"
    result = run(HEAD + code)
    assert [gap.name for gap in result.gaps] == ["torch.no_grad"]
    assert "context = torch.no_grad if frozen else nullcontext" in result.code


GIVEN = """
class A(nn.Module):
    def __init__(self, net=nn.Linear(4, 3)):
        super().__init__()
        self.net, self.head = net, nn.Linear(3, 3)

    @torch.no_grad()
    def features(self, x):
        return self.net(x), x * 2

    def forward(self, x):
        with torch.no_grad():
            y, n = self.net(x), len(x)
            first = self.net(x)[0]
        a, _ = self.features(x)
        return self.head(y) + a * first + n
"""


def test_a_module_that_is_given_has_no_gradient_either() -> None:
    code = body(HEAD + GIVEN)
    assert "y = jax.lax.stop_gradient(y)\n        first = jax.lax.stop_gradient(first)\n" in code, code
    assert "return jax.lax.stop_gradient((self.net(x), x * 2))" in code
    equal(
        HEAD + GIVEN.replace("net=nn.Linear(4, 3)", "net=nn.Tanh()").replace("nn.Linear(3, 3)", "nn.Linear(4, 4)"),
        "given",
        2,
        4,
    )
