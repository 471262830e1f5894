"""Lines that belong behind a statement of which nothing is left: they stand where that was."""

from __future__ import annotations

import pytest

from t2j_lsp.api import convert

GOES = (
    "torch.cuda.empty_cache()",
    "if x.device.type == 'cuda':\n        torch.cuda.empty_cache()",
    "if x.device.type == 'cuda':\n        torch.cuda.empty_cache()\n    else:\n        torch.cuda.synchronize()",
    "device = x.device",
    "x.requires_grad_(True)",
    "torch.cuda.synchronize()\n\n    # done\n    torch.cuda.empty_cache()",
)


@pytest.mark.parametrize("last", GOES)
@pytest.mark.parametrize("behind", ["", "\n\nz = 1\n", "\n    # the end\n"])
def test_what_a_function_fills_is_returned(last: str, behind: str) -> None:
    """Else its caller would go on with the old array, in silence."""
    done = convert(f"import torch\n\n\ndef f(x: torch.Tensor):\n    x.sub_(1)\n    {last}\n{behind}")
    assert not done.gaps
    assert "    return x\n" in done.code.partition("    x = x - 1\n")[2]
    assert (behind.strip() in done.code) and "cuda" not in done.code


@pytest.mark.parametrize("last", [GOES[0], GOES[1].replace("\n", "\n    "), GOES[3]])
def test_what_is_computed_without_gradients_has_none(last: str) -> None:
    head = "import torch\n\n\ndef f(x: torch.Tensor):\n    with torch.no_grad():\n        y = x * 2\n        "
    code = convert(f"{head}{last}\n    return x * y\n").code
    assert (
        "    y = jax.lax.stop_gradient(y)\n    return x * y\n" in code
        or "    y = jax.lax.stop_gradient(x * 2)\n" in code
    )
