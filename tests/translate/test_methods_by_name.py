"""Methods of tensors by a name that only the run tells."""

from __future__ import annotations

import pytest

from .convert import run


@pytest.mark.parametrize(
    ("code", "gap"),
    [
        ("def f(x: Tensor, mode):\n    return getattr(x, mode)(dim=1)\n", True),
        ("def f(x: Tensor, mode):\n    return getattr(x, mode)()\n", True),
        ("def f(x: Tensor, mode):\n    fn = getattr(x, 'a' + mode)\n    return fn(dim=1)\n", True),
        ("def f(x, mode):\n    fn = getattr(x, mode)\n    return fn(dim=1, keepdim=True) * torch.ones(3)\n", True),
        ("def f(x, mode):\n    return getattr(x, mode)(dim=1)\n", True),
        ("def f(x, mode, d):\n    kw = dict(dim=d) if d else {}\n    return getattr(x, mode)(**kw)\n", True),
        ("def f(x, mode, d):\n    kw = dict(size=d)\n    return getattr(x, mode)(**kw)\n", False),
        ("def f(x, mode):\n    return getattr(x, mode)(1) * torch.ones(3)\n", False),
        ("def f(args, name):\n    return getattr(args, name) * torch.ones(3)\n", False),
        ("class A(nn.Module):\n    def forward(self, x, name):\n        return getattr(self, name)(x)\n", False),
    ],
)
def test_a_method_that_is_not_known_is_left_and_said(code: str, gap: bool) -> None:
    gaps = run(code).gaps
    assert [(one.name, one.code) for one in gaps] == [("getattr", "unsure")] * gap
