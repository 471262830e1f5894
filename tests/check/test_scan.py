"""Stacks of layers that ``nnx.scan`` runs are compared layer by layer, with the dropout masks of each."""

from __future__ import annotations

import pytest

from t2j_lsp import convert
from t2j_lsp.contract import VerdictKind

from .conftest import Check

NET = """
class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.BatchNorm1d(dim)
        self.fc = nn.Linear(dim, dim)
        self.drop = nn.Dropout(0.3)

    def forward(self, x):
        return x + self.drop(torch.tanh(self.fc(self.norm(x))))


# t2j: x=f32[5, 3]
class Net(nn.Module):
    def __init__(self, dim=6):
        super().__init__()
        self.first = nn.Linear(3, dim)
        self.blocks = nn.ModuleList([Block(dim) for _ in range(3)])

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return x
"""
MISTAKES = {
    "the layers in the wrong order": ("out_axes=nnx.Carry)", "out_axes=nnx.Carry, reverse=True)"),
    "another computation in each": ("return x + self.drop(", "return x - self.drop("),
}


@pytest.fixture(scope="module")
def code() -> str:
    made = convert(f"import torch\nfrom torch import nn\n{NET}", scan=True)
    assert "@nnx.scan" in made.code and not made.findings
    return made.code


def test_a_scan_is_equivalent_with_gradients_statistics_and_steps(code: str, check: Check) -> None:
    verdict = check(NET, code, "Net")
    assert verdict.verdict is VerdictKind.EQUIVALENT, verdict.reason
    assert all(stage.result == "pass" for stage in verdict.stages.values())


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_a_scan_is_found(name: str, code: str, check: Check) -> None:
    right, wrong = MISTAKES[name]
    assert right in code
    verdict = check(NET, code.replace(right, wrong), "Net", eager=False, initial=False, causes=False)
    assert verdict.verdict is VerdictKind.DIFFERENT, verdict.reason
