"""What is known of a tensor before anything runs is true of PyTorch's: where tensors come from plain numbers.

Calls on tensors are compared in ``drive``, with every sample of every rule.
"""

from __future__ import annotations

import pytest
import torch

from t2j_lsp.plugins import load_rules
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.facts import Tensor
from t2j_lsp.translate.source.text import Source

from .drive import untrue

MADE = (
    *("torch.linspace(-1, 1, 5)", "torch.linspace(0, 4, 5, dtype=torch.int64)", "torch.logspace(0, 2, 3)"),
    *("torch.arange(5)", "torch.arange(1, 5, 2)", "torch.arange(0.0, 1, 0.5)", "torch.arange(3, dtype=torch.float32)"),
    *("torch.full((2, 3), 1)", "torch.full((2,), 0.5)", "torch.full((2,), True)", "torch.full((), 7)"),
    *("torch.zeros(2, 3)", "torch.ones((4,), dtype=torch.bool)", "torch.eye(3)", "torch.empty(2, 0)"),
    *("torch.tensor([1, 2])", "torch.tensor([[1.0], [2.0]])", "torch.tensor(True)", "torch.tensor(3)"),
    *("torch.randint(0, 3, (4,))", "torch.randperm(4)", "torch.rand(2, 2)", "torch.randn(3)"),
    *("torch.hann_window(4)", "torch.tril_indices(3, 3)", "torch.cartesian_prod(torch.arange(2), torch.arange(2))"),
    *("torch.arange(4) / 2", "torch.arange(4) // 2", "torch.arange(4) * 0.5", "torch.arange(4) ** 2"),
    *("torch.arange(4).float()", "torch.arange(4) > 1", "torch.linspace(0, 1, 4).sum()", "torch.ones(3).mean()"),
    *("torch.ones(3).bool().sum()", "torch.ones(2, 3).argmax(dim=1)", "torch.ones(2, 3).long()", "-torch.arange(3)"),
)


@pytest.mark.parametrize("expression", MADE)
def test_facts_are_true(expression: str) -> None:
    load_rules()
    fact = Inference(Source(f"import torch\nmade = {expression}\n"), None).env["made"]
    assert isinstance(fact, Tensor)
    assert untrue(fact, eval(expression, {"torch": torch}).numpy()) is None


def test_what_is_not_true_is_told() -> None:
    value = torch.ones(2, 3).numpy()
    assert untrue(Tensor(2, "float"), value) is None and untrue(Tensor(), value) is None
    assert "axes" in str(untrue(Tensor(1, "float"), value))
    assert "int is expected" in str(untrue(Tensor(2, "int"), value))
