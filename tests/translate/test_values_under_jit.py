"""What is said of values that are not known under jit, and of methods that only a tensor can have."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

HEAD = "import numpy as np\nimport torch\nfrom typing import Optional, Union\n\n\n"


def noted(text: str) -> bool:
    """Whether a conversion says that a value is not known under jit."""
    codes = {finding.code for finding in convert(HEAD + text).findings}
    return bool(codes & {"value-needed", "tensor-branch"})


SAID = {
    "a function of a number": "def f(n: int):\n    return torch.linspace(0, 1, n).tolist()\n",
    "a function of what is only passed on": (
        "def g(n):\n    return torch.ones(n)\n\n\ndef f(n):\n    x = g(n)\n    assert torch.all(x > 0)\n    return x\n"
    ),
    "what may be a tensor, by its annotation": (
        "def f(x: list | torch.Tensor):\n    return x.tolist() if isinstance(x, torch.Tensor) else list(x)\n"
    ),
    "what may be a tensor, in older words": (
        "def f(x: Union[np.ndarray, Optional[torch.Tensor]]):\n    return None if x is None else x.tolist()\n"
    ),
    "what a comparison of unknown values says": (
        "def f(g, x: torch.Tensor):\n    low, high = g(x[0]), g(x[1])\n"
        "    if not ((low <= 0) & (high > 0)).all():\n        raise ValueError\n    return x.clone()\n"
    ),
    "a slice that is written to": (
        "def f(n: int):\n    x = torch.linspace(0, 1, n)\n    i = torch.argmin(x - 0.3)\n    x[:i] = 1\n    return x\n"
    ),
}
UNSAID = {
    "a loop over a loader": (
        "def evaluate(model, loader):\n    return sum(torch.ones(2).sum().item() for batch in loader)\n"
    ),
    "a program's settings": "def main(args):\n    print(torch.ones(args.n).sum().item())\n",
    "numpy's arrays": (
        "def f(x: torch.Tensor):\n    low = np.ones(3)\n    return x.clone() if (low <= 0).all() else x.clone()\n"
    ),
    "lists of tensors": "def f(x: list[torch.Tensor]):\n    return x.tolist()\n",
}


@pytest.mark.parametrize("text", SAID.values(), ids=SAID)
def test_a_value_that_jit_does_not_know_is_said(text: str) -> None:
    assert noted(text)


@pytest.mark.parametrize("text", UNSAID.values(), ids=UNSAID)
def test_nothing_is_said_where_nobody_compiles(text: str) -> None:
    assert not noted(text)


@pytest.mark.parametrize("receiver", ["x", "x.abs()"])
def test_a_method_gives_what_only_a_tensors_gives_where_torch_takes_it(receiver: str) -> None:
    code = convert(HEAD + f"def f(model, x):\n    return torch.mean({receiver}.var(axis=0))\n").code
    assert "ddof=1" in code


def test_a_list_of_axes_is_one_of_a_tensor() -> None:
    assert "x.var(axis=(0, 2), ddof=1)" in convert(HEAD + "def f(x):\n    return x.var(axis=[0, 2])\n").code
