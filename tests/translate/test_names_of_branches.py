"""A name that an import of PyTorch binds in a branch, and something else in another one: its use is a gap."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

OTHERS = {
    "a file of the project": "    from .helpers import fftshift\n",
    "a function": "    def fftshift(x, dim):\n        return x\n",
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("head", ['if "fftshift" in dir(torch.fft):', "if FLAG:"])
def test_a_use_of_what_may_be_pytorchs_function_is_a_gap(head: str, other: str) -> None:
    text = (
        f"import torch\nimport torch.fft\n\nFLAG = True\n{head}\n    from torch.fft import fftshift\nelse:\n{other}\n\n"
    )
    done = convert(text + "def f(x):\n    x = fftshift(x, dim=1)\n    return torch.fft.fft(x), fftshift(x, dim=2)\n")
    assert [gap.name for gap in done.gaps] == ["torch.fft.fftshift"] * 2


def test_a_fallback_is_pytorchs_function() -> None:
    text = "try:\n    from torch import logaddexp\nexcept ImportError:\n    from .helpers import logaddexp\n\n\n"
    done = convert(text + "def f(x):\n    return logaddexp(x, x)\n")
    assert "jnp.logaddexp(x, x)" in done.code and not done.gaps


def test_a_parameter_of_that_name_is_the_callers() -> None:
    text = "import torch\nFLAG = 1\nif FLAG:\n    from torch import relu\nelse:\n    from .own import relu\n\n\n"
    assert not convert(text + "def f(x: torch.Tensor, relu):\n    return relu(x.exp())\n").gaps
