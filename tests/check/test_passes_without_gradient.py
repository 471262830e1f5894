"""Modules that are given and run without gradient, and inputs after a call that failed."""

from __future__ import annotations

from t2j_lsp.api import convert
from t2j_lsp.contract import VerdictKind

from .conftest import TORCH, Check

PROBE = """
class Probe(nn.Module):
    def __init__(self, net=nn.Tanh(), frozen={frozen}):
        super().__init__()
        self.net, self.frozen, self.head = net, frozen, nn.Linear(4, 3)

    # t2j: x=f32[2, 4]
    def forward(self, x):
        context = torch.no_grad if self.frozen else nullcontext
        with context():
            first = self.net(x)
        with torch.no_grad():
            second = self.net(x + 1)
        return self.head(first * x) + self.head(second)
"""
HEAD = "from contextlib import nullcontext\n"


def test_a_given_module_without_gradient(check: Check) -> None:
    for frozen in (True, False):
        source = HEAD + PROBE.format(frozen=frozen)
        code = convert(TORCH + source).code
        verdict = check(source, code, stage="numeric")
        assert verdict.verdict is VerdictKind.EQUIVALENT, verdict.reason
        second = "        second = jax.lax.stop_gradient(second)\n"
        first = ("        if self.frozen:\n            first = jax.lax.stop_gradient(first)\n", "")
        other = first if frozen else (first[0], first[0].replace("if", "if not"))
        for right, wrong in ((second, ""), other):
            assert right in code, code
            assert check(source, code.replace(right, wrong), stage="numeric").verdict is VerdictKind.DIFFERENT


def test_what_fails_with_other_inputs_leaves_the_first_in_place(check: Check) -> None:
    body = "class F(nn.Module):\n    # t2j: x=f32[3, 4]\n    def forward(self, x):\n        return x * 2\n"
    code = "class F(nnx.Module):\n    def __init__(self, *, rngs): ...\n    def __call__(self, x):\n"
    code += "        if x.shape[0] == 1 and isinstance(x, jax.core.Tracer):\n            raise ValueError('one')\n"
    verdict = check(body, f"{code}        return x * 2\n")
    assert verdict.verdict is VerdictKind.DIFFERENT and "one" in (verdict.reason or ""), verdict.reason
    assert "has shape" not in (verdict.reason or "")
