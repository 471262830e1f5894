"""Layers that are alike and run one behind the other: with ``--scan``, one stack that ``nnx.scan`` runs."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest
import torch

from t2j_lsp import convert, load_torch_state, torch_state

BLOCK = """
import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, dim, act=F.gelu):
        super().__init__()
        self.norm = nn.BatchNorm1d(dim)
        self.fc = nn.Linear(dim, dim)
        self.drop = nn.Dropout(0.1)
        self.act = act

    def forward(self, x, scale=1.0):
        return x + scale * self.drop(self.act(self.fc(self.norm(x))))


class Narrow(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.conv = nn.Conv1d(dim, dim, 3, stride=2)

    def forward(self, x):
        return self.conv(x)


class Counting(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x + self.calls

"""
NET = """
class Net(nn.Module):
    def __init__(self, dim, depth, act):
        super().__init__()
        self.first = nn.Linear(3, dim)
        self.blocks = {made}

    def forward(self, x, scale):
        x = self.first(x)
{run}
        return x
"""
LIST, LOOP = "nn.ModuleList([Block(dim) for _ in range(depth)])", "for block in self.blocks:\n    x = block(x)"


def source(made: str = LIST, run: str = LOOP, more: str = "") -> str:
    return BLOCK + NET.format(made=made, run=textwrap.indent(run, " " * 8)) + more


def scanned(text: str) -> tuple[str, list[str]]:
    done = convert(text, scan=True)
    return done.code, [finding.reason for finding in done.findings]


def test_layers_are_made_by_vmap_and_run_by_scan() -> None:
    code, reasons = scanned(source())
    assert not reasons
    assert (
        """
        @nnx.split_rngs(splits=depth)
        @nnx.vmap
        def create_layer(rngs: nnx.Rngs):
            return Block(dim, rngs=rngs)

        self.blocks = create_layer(rngs)
        self.blocks.stacked_layers = depth  # index i of each array is that of layer i

    def __call__(self, x, scale):
        x = self.first(x)

        @nnx.scan(in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
        def run_layers(x, block):
            return block(x)

        x = run_layers(x, self.blocks)
        return x
"""
        in code
    )
    assert "scan" not in convert(source()).code


SCANNED = {
    "a sequence of them": ("nn.Sequential(*[Block(dim) for _ in range(depth)])", "x = self.blocks(x)"),
    "a call inside of others": ("nn.Sequential(*(Block(dim) for _ in range(3)))", "x = x + F.relu(self.blocks(x))"),
    "more arguments": (LIST, "for block in self.blocks:\n    x = block(x, scale=scale)"),
    "a residual in the loop": (
        "nn.ModuleList(nn.Linear(dim, dim) for _ in range(4))",
        "for layer in self.blocks:\n    x = x + torch.relu(layer(x))",
    ),
    "layers of PyTorch": (
        "nn.ModuleList([nn.TransformerEncoderLayer(dim, 4) for _ in range(depth)])",
        "for block in self.blocks:\n    x = block(x, src_mask=scale)",
    ),
    "an activation that holds nothing": ("nn.ModuleList([Block(dim, nn.ReLU()) for _ in range(depth)])", LOOP),
    "a name that another loop binds": (
        LIST,
        "for block in self.blocks:\n    x = block(x)\nfor block in range(3):\n    x = x * block",
    ),
}


@pytest.mark.parametrize("case", SCANNED)
def test_scanned(case: str) -> None:
    code, reasons = scanned(source(*SCANNED[case]))
    assert not reasons and "@nnx.vmap" in code and ", self.blocks)" in code


LEFT = {
    "made with the index": ("nn.ModuleList([Block(dim * i) for i in range(depth)])", LOOP, "index i"),
    "another shape": ("nn.ModuleList([Narrow(dim) for _ in range(depth)])", LOOP, "of the shape that it is given"),
    "an attribute that is assigned": ("nn.ModuleList([Counting(dim) for _ in range(depth)])", LOOP, "self.calls"),
    "what may be a shared module": ("nn.ModuleList([Block(dim, act) for _ in range(depth)])", LOOP, "module act"),
    "a new object for each": ("nn.ModuleList([Block(dim, nn.PReLU()) for _ in range(depth)])", LOOP, "nn.PReLU()"),
    "outputs of each": (LIST, "xs = []\nfor b in self.blocks:\n    x = b(x)\n    xs.append(x)", "one array"),
    "an index": (LIST, LOOP + "\nx = self.blocks[0](x)", "more than running"),
    "a number of each": (LIST, "for i, b in enumerate(self.blocks):\n    x = b(x)", "more than running"),
    "another array": (LIST, "y = x\nfor b in self.blocks:\n    x = b(y)", "what the loop carries"),
    "the last layer": (LIST, LOOP + "\nx = block.fc(x)", "read outside"),
    "one layer": ("nn.ModuleList([Block(dim) for _ in range(1)])", LOOP, "how many"),
    "a module in the loop": (LIST, "for b in self.blocks:\n    x = self.first(b(x))", "self.first"),
}


@pytest.mark.parametrize("case", LEFT)
def test_left_with_a_reason(case: str) -> None:
    made, run, reason = LEFT[case]
    text = source(made, run)
    code, reasons = scanned(text)
    assert code == convert(text).code
    assert len(reasons) == 1 and reasons[0].startswith("these layers are not scanned: ") and reason in reasons[0]


WALKS = {
    "for p in net.parameters():\n    print(p.shape)": "net.parameters()",
    "groups = [p for n, p in net.named_parameters() if p.ndim > 1]": "net.named_parameters()",
    "net.apply(print)": "net.apply()",
    "print(net.blocks[0])": "net.blocks is used",
    'print(getattr(net, "blocks"))': "'blocks'",
}


@pytest.mark.parametrize("walk", WALKS)
def test_what_looks_at_parts_one_by_one_would_find_stacks(walk: str) -> None:
    code, reasons = scanned(source(more=f"\nnet = Net(4, 3, None)\n{walk}\n"))
    assert "nnx.scan" not in code and any(WALKS[walk] in reason for reason in reasons)


def test_what_takes_all_parameters_alike_may_have_them() -> None:
    more = """
net = Net(4, 3, None)
print(sum(p.numel() for p in net.parameters()))
optimizer = torch.optim.Adam(net.parameters())
torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
"""
    assert "nnx.scan" in scanned(source(more=more))[0]


def test_weights_go_into_the_stack_layer_by_layer_and_back() -> None:
    text = source()
    sides: list[dict[str, object]] = [{}, {}]
    exec(text, sides[0])
    exec(scanned(text)[0], sides[1])
    from flax import nnx

    torch_side = sides[0]["Net"](4, 3, None).eval()  # type: ignore[operator]
    jax_side = sides[1]["Net"](4, 3, None, rngs=nnx.Rngs(0))  # type: ignore[operator]
    state = {n: torch.rand_like(v) if v.is_floating_point() else v for n, v in torch_side.state_dict().items()}
    torch_side.load_state_dict(state)
    load_torch_state(jax_side, state)
    assert jax_side.blocks.fc.kernel.shape == (3, 4, 4)
    assert {n: v.tolist() for n, v in torch_state(jax_side).items()} == {n: v.tolist() for n, v in state.items()}
    x = torch.randn(5, 3)
    jax_side.eval()
    np.testing.assert_allclose(jax_side(x.numpy(), 1.0), torch_side(x, 1.0).detach().numpy(), rtol=1e-5, atol=1e-6)
