"""Sparse matrices in coordinates: what is made, read and multiplied is as in PyTorch; all else is a gap."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from t2j_lsp import convert

HEAD = """
import torch

places = torch.tensor([[0, 1, 2, 0], [1, 0, 2, 1]])
values = torch.tensor([1.0, 2.0, 3.0, 4.0])
adj = torch.sparse_coo_tensor(places, values, (3, 4))
x = torch.arange(8.0).reshape(4, 2)
y = torch.arange(6.0).reshape(3, 2)
"""
SAME = [
    "adj.to_dense()",
    "torch.sparse.FloatTensor(places, values, torch.Size([3, 4])).to_dense()",
    "torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 2), dtype=torch.float32, device='cpu').to_dense()",
    "torch.sparse.mm(adj, x)",
    "torch.spmm(adj, x)",
    "torch.mm(adj, x)",
    "torch.matmul(adj, x)",
    "adj.mm(x)",
    "adj @ x",
    "(2 * adj) @ x",
    "adj.t() @ y",
    "torch.sparse.mm(adj, adj.t()).to_dense()",
    "adj.coalesce().to_dense()",
    "adj.coalesce().indices()",
    "adj.coalesce().values()",
    "adj._indices()",
    "adj._values()",
    "torch.tensor(adj._nnz())",
    "torch.tensor(adj.coalesce()._nnz())",
    "torch.tensor(adj.shape)",
    "torch.tensor(adj.size(1))",
    "adj.to('cpu').cpu().to(torch.device('cpu')).to_dense()",
]
REFUSED = {
    "adj + 1": "only products are taken of a sparse matrix",
    "x.t() * adj": "only products are taken of a sparse matrix",
    "torch.relu(adj)": "takes no sparse matrix",
    "torch.nn.functional.dropout(adj, 0.5)": "takes no sparse matrix",
    "adj.sum(1)": "no rule for torch.sparse.FloatTensor.sum",
    "adj.float()": "no rule for torch.sparse.FloatTensor.float",
    "adj.is_sparse": "no rule for torch.sparse.FloatTensor.is_sparse",
    "adj.to(torch.float64)": "keeps its dtype",
    "torch.sparse_coo_tensor(places, values)": "BCOO needs the shape",
    "torch.sparse_coo_tensor(places, values, (3, 4), requires_grad=True)": "differentiate its values",
    "torch.sparse.LongTensor(places, values, torch.Size([3, 4]))": "with another interface",
}
STEP = """
import torch
from torch import nn

adj = torch.sparse_coo_tensor([[0, 1, 2], [1, 2, 0]], torch.ones(3), (3, 3))
x = torch.eye(3)
net = nn.Linear(3, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    loss = torch.sparse.mm(adj, net(x)).pow(2).sum()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.filterwarnings(
    "ignore:Sparse invariant checks are implicitly disabled", "ignore:Sparse CSR tensor support"
)
@pytest.mark.filterwarnings("ignore:torch.sparse.SparseTensor")
@pytest.mark.parametrize("expression", SAME)
def test_sparse_matrices_are_as_in_pytorch(expression: str) -> None:
    text = f"{HEAD}\nresult = {expression}\n"
    converted = convert(text)
    assert converted.gaps == ()
    expected: dict[str, Any] = {}
    exec(text, expected)
    names: dict[str, Any] = {}
    exec(converted.code, names)
    np.testing.assert_array_equal(names["result"], expected["result"].numpy())


@pytest.mark.parametrize("expression", REFUSED)
def test_what_jax_takes_no_sparse_matrix_for_is_said(expression: str) -> None:
    gaps = convert(f"{HEAD}\nresult = {expression}\n").gaps
    assert any(REFUSED[expression] in gap.reason for gap in gaps), gaps


def test_a_train_step_is_given_the_matrix() -> None:
    converted = convert(STEP)
    assert converted.gaps == ()
    assert "def train_step(net, optimizer, adj, x):" in converted.code
    assert "    train_step(adj, x)" in converted.code


def test_a_step_that_joins_equal_places_is_not_compiled() -> None:
    converted = convert(STEP.replace("torch.sparse.mm(adj,", "torch.sparse.mm(adj.coalesce(),"))
    assert "@nnx.jit" not in converted.code
