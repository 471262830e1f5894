"""Inputs whose axes are long enough to tell: mistakes along a batch that lengths of 1 and 2 hide."""

from __future__ import annotations

import pytest

from t2j_lsp.check.inputs import Arguments, ArraySpec
from t2j_lsp.check.workers.torch_side.lengths import unpaired
from t2j_lsp.contract import VerdictKind

from .conftest import Check

LAYER = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 4)
    def forward(self, x):{comment}
        return {torch}
"""
FLAX = """
class Net(nnx.Module):
    def __init__(self, *, rngs):
        self.fc = nnx.Linear(6, 4, rngs=rngs)
    def __call__(self, x):
        return {jax}
"""
PAIRS = [
    ("torch.roll(x, 1, 0)", "jnp.roll(x, 1, axis=0)", "x[::-1]"),
    ("torch.roll(x, 1, 0)", "jnp.roll(x, 1, axis=0)", "jnp.roll(x, -1, axis=0)"),
    ("torch.flip(x, (0,))", "x[::-1]", "jnp.roll(x, 1, axis=0)"),
    ("x - x.mean(0)", "x - x.mean(axis=0)", "(x - x[::-1]) / 2"),
    ("x[-1]", "x[-1]", "x[1]"),
]
"""PyTorch, the right conversion, and one that does the same to two rows."""


@pytest.mark.parametrize(("torch", "right", "wrong"), PAIRS)
@pytest.mark.parametrize(
    "comment", ["", "# t2j: x=f32[2, 6]\n", "# t2j: x=f32[1, 6]\n"], ids=["no comment", "two rows", "one row"]
)
def test_a_function_of_the_batch_is_tried_with_three_rows(
    check: Check, comment: str, torch: str, right: str, wrong: str
) -> None:
    source = f"{comment}def f(x):\n    return {torch}\n"
    verdict = check(source, f"def f(x):\n    return {right}\n", "f", eager=False)
    assert verdict.verdict is VerdictKind.EQUIVALENT, verdict.reason
    verdict = check(source, f"def f(x):\n    return {wrong}\n", "f", eager=False)
    assert verdict.verdict is VerdictKind.DIFFERENT, verdict.reason


@pytest.mark.parametrize("comment", ["", " # t2j: x=f32[2, 6]", " # t2j: x=f32[1, 6]"])
@pytest.mark.parametrize(
    ("torch", "right", "wrong"),
    [
        ("torch.roll(self.fc(x), 1, 0)", "jnp.roll(self.fc(x), 1, axis=0)", "jnp.flip(self.fc(x), 0)"),
        ("self.fc(x) @ self.fc(x).T", "self.fc(x) @ self.fc(x).T", "(self.fc(x) @ self.fc(x).T)[::-1, ::-1].T"),
    ],
)
def test_a_module_is_tried_with_a_batch_of_three(
    check: Check, comment: str, torch: str, right: str, wrong: str
) -> None:
    source = LAYER.format(comment=comment, torch=torch)
    verdict = check(source, FLAX.format(jax=right), eager=False, initial=False)
    assert verdict.verdict is VerdictKind.EQUIVALENT, verdict.reason
    verdict = check(source, FLAX.format(jax=wrong), eager=False, initial=False)
    assert verdict.verdict is VerdictKind.DIFFERENT, verdict.reason


def test_a_batch_of_one_in_a_call_is_no_longer_the_only_one(check: Check) -> None:
    source = LAYER.format(comment="", torch="torch.roll(self.fc(x), 1, 0)")
    source += "\ndef main():\n    net = Net()\n    x = torch.randn(1, 6)\n    print(net(x))\n"
    verdict = check(source, FLAX.format(jax="jnp.flip(self.fc(x), 0)"), "Net", eager=False, initial=False)
    assert verdict.verdict is VerdictKind.DIFFERENT, verdict.reason


def test_an_inner_axis_of_two_is_tried_longer(check: Check) -> None:
    source = "def f(x):\n    return torch.roll(x, 1, 1)\n\nf(torch.randn(3, 2, 5))\n"
    verdict = check(source, "def f(x):\n    return jnp.flip(x, 1)\n", eager=False)
    assert verdict.verdict is VerdictKind.DIFFERENT, verdict.reason


def test_what_takes_only_pairs_is_still_checked(check: Check) -> None:
    source = "def f(x):\n    a, b = x\n    return a - b\n"
    verdict = check(source, source, "f", eager=False)
    assert verdict.verdict is VerdictKind.EQUIVALENT, verdict.reason


def test_lengths_are_longer_and_unlike_the_others() -> None:
    given = Arguments([ArraySpec("float32", (2, 3, 2)), ArraySpec("int64", (2,), 0, 4)])
    everywhere, first = unpaired(given)
    assert [s.shape for s in everywhere.args] == [(4, 3, 5), (4,)]
    assert [s.shape for s in first.args] == [(4, 3, 2), (4,)]
    assert not unpaired(Arguments([ArraySpec("float32", (3, 5))]))
