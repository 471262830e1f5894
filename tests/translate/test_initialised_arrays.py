"""torch.nn.init of arrays that are no parameters yet: in front of ``nn.Parameter``, inside of it, in a function."""

from __future__ import annotations

import inspect

import pytest

from t2j_lsp import convert

SOURCE = """\
import torch
from torch import nn
from torch.nn import init


def made(*shape):
    t = torch.empty(shape)
    init.kaiming_uniform_(t)
    return t


def fill(t):
    init.xavier_normal_(t)


def filled(t, std=1.0):
    return init.normal_(t, std=std)


def net(n, m):
    {statements}
    return w
"""
RANDOM = [
    "w = torch.empty(n, m)\n    init.xavier_uniform_(w)",
    "w = torch.empty(n, m)\n    nn.init.kaiming_normal_(w, mode='fan_out', nonlinearity='relu')",
    "w = init.trunc_normal_(torch.zeros(n, m), std=0.02)",
    "w = init.uniform_(torch.empty(size=(n, m)), -1, 3)",
    "w = nn.Parameter(init.xavier_normal_(torch.empty(n, m)))",
    "w = nn.Parameter(nn.init.normal_(torch.Tensor(n, m), 2.0, 0.5)).data",
    "w = made(n, m)",
    "w = torch.zeros(n, m)\n    fill(w)",
    "w = filled(torch.empty(n, m), std=3.0)",
    "w = torch.zeros(n, m)\n    init.normal_(w[1:])",
    "v = torch.empty(n, m)\n    w = init.kaiming_uniform_(v, a=1) * 2",
]
EXACT = [
    "w = init.constant_(torch.empty(n), 1)",
    "w = torch.ones(n)\n    init.zeros_(w)",
    "w = torch.empty(n, m)\n    init.eye_(w)",
    "w = torch.empty(n, m)\n    init.orthogonal_(w)\n    w = w @ w.T",
]


def both(statements: str):  # type: ignore[no-untyped-def]
    import numpy as np
    import torch
    from flax import nnx

    source = SOURCE.format(statements=statements)
    done = convert(source)
    assert not done.gaps, done.gaps
    before, after = {}, {}  # type: ignore[var-annotated]
    exec(source, before)
    exec(done.code, after)
    torch.manual_seed(0)
    options = {"rngs": nnx.Rngs(0)} if "rngs" in inspect.signature(after["net"]).parameters else {}
    return before["net"](40, 300).detach().numpy(), np.asarray(after["net"](40, 300, **options))


@pytest.mark.parametrize("statements", RANDOM)
def test_an_array_is_drawn_as_in_pytorch(statements: str) -> None:
    torch_values, jax_values = both(statements)
    assert torch_values.shape == jax_values.shape
    assert torch_values.dtype == jax_values.dtype
    for measured in ("mean", "std"):
        expected, value = getattr(torch_values, measured)(), getattr(jax_values, measured)()
        assert abs(expected - value) < 0.05 * torch_values.std(), measured
    assert abs(torch_values.max() - jax_values.max()) < 0.5 * torch_values.std()


@pytest.mark.parametrize("statements", EXACT)
def test_an_array_is_filled_as_in_pytorch(statements: str) -> None:
    import numpy as np

    torch_values, jax_values = both(statements)
    assert torch_values.dtype == jax_values.dtype
    np.testing.assert_allclose(torch_values, jax_values, atol=1e-5)


@pytest.mark.parametrize(
    "statements",
    [
        "v = w = torch.empty(n, m)\n    init.normal_(v)",
        "w = [torch.empty(n, m) for _ in range(2)]\n    for v in w:\n        init.normal_(v)",
    ],
)
def test_what_another_name_sees_is_left_and_marked(statements: str) -> None:
    assert [gap.code for gap in convert(SOURCE.format(statements=statements)).gaps] == ["in-place-shared"]
