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


@pytest.mark.parametrize("turned", [False, True])
def test_a_function_of_what_may_be_pytorchs_module_is_a_gap(turned: bool) -> None:
    ways = ["import torch.nn.functional as F", "import own.functional as F"]
    first, second = reversed(ways) if turned else ways
    text = (
        f"import torch\n\nFLAG = 1\nif FLAG:\n    {first}\nelse:\n    {second}\n\n\ndef f(x):\n    return F.relu(x)\n"
    )
    done = convert(text)
    assert [gap.name for gap in done.gaps] == ["torch.nn.functional"]
    assert "return F.relu(x)" in done.code


def test_a_module_of_another_package_is_no_tensor_whatever_it_is_asked_for() -> None:
    text = "import torch\nimport own.functional as ops\n\n\ndef f(x):\n    return ops.relu(x), torch.exp(x)\n"
    assert "return ops.relu(x), jnp.exp(x)" in convert(text).code
