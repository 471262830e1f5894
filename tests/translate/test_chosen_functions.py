"""Functions that a condition chooses are called by their names where they have other arguments in JAX."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from t2j_lsp import convert

from .side_by_side import sides

HEAD = "import torch\n\n\ndef f(x: torch.Tensor, y: torch.Tensor, sharp: bool):\n"
CHOICE = "    mm = torch.addmm if sharp else torch.baddbmm\n"


def test_each_is_called_by_its_name() -> None:
    body = (
        "    mm = torch.addmm if x.ndim == 2 else torch.baddbmm\n    out = torch.zeros_like(y)\n    x = x[None]\n"
        "    mm(y, y, y, beta=0.5, out=out)\n    return mm(out, y, y, alpha=0.5)\n"
    )
    both = sides(HEAD + body, "chosen")
    assert not both.gaps()
    code = both.translation.code
    assert "    use_addmm = x.ndim == 2\n" in code
    assert "    if use_addmm:\n        out = 0.5 * y + y @ y\n    else:\n" in code
    for shape in ((3, 3), (2, 3, 3)):
        given = np.linspace(-1, 1, int(np.prod(shape))).reshape(shape)
        wanted = both.torch.f(torch.tensor(given), torch.tensor(given), True).numpy()
        np.testing.assert_allclose(both.jax.f(jnp.array(given), jnp.array(given), True), wanted, rtol=1e-5)


@pytest.mark.parametrize(
    "body",
    [
        f"{CHOICE}    out = mm(x, y, y, beta=0.0, other=2)\n    return mm\n",
        f"{CHOICE}    mm = torch.baddbmm\n    return mm(x, y, y, other=2)\n",
        f"{CHOICE}    return mm(x, mm(x, y, y, other=2), y, other=2)\n",
        f"{CHOICE}    return mm(x, (z := y), z, other=2)\n",
        f"{CHOICE}    return list(map(mm, [x], [y], [y])), mm(x, y, y, other=2)\n",
    ],
)
def test_what_is_not_only_called_stays(body: str) -> None:
    done = convert(HEAD + body)
    assert done.gaps
    assert "use_" not in done.code


def test_a_condition_of_several_lines_stays() -> None:
    choice = "    mm = (torch.addmm if sharp\n          and x is not None else torch.baddbmm)\n"
    done = convert(f"{HEAD}{choice}    return mm(x, y, y, beta=0.5)\n")
    assert "use_" not in done.code
