"""Lists of Python's truth values as indices: a mask of NumPy's, whose values are known where JAX traces."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
import torch

from t2j_lsp import convert

HEAD = "import torch\nfrom torch import Tensor\n\n\n"


@pytest.mark.parametrize(
    "lines",
    [
        ("keep = [n != 'H' for n in names]", "return x[keep]"),
        ("return x[[not n.startswith('H') for n in names]]",),
        ("keep = [n in ('C', 'O') and len(n) > 0 for n in names]", "return x[:, keep].sum(0)"),
        ("return x[[True, False, True]]",),
        ("x = x.clone()", "x[[n == 'H' for n in names]] = 0", "return x"),
    ],
)
def test_a_mask_of_pythons_own_truths_picks_under_jit(lines: tuple[str, ...]) -> None:
    text = HEAD + "def f(x: Tensor, names: list):\n" + "".join(f"    {line}\n" for line in lines)
    translation = convert(text)
    assert not translation.findings and "np.array(" in translation.code
    sides: list[dict[str, Any]] = [{}, {}]
    exec(text, sides[0])
    exec(translation.code, sides[1])
    x, names = np.arange(9.0, dtype=np.float32).reshape(3, 3), ["C", "H", "O"]
    wanted = sides[0]["f"](torch.tensor(x), names).numpy()
    np.testing.assert_array_equal(jax.jit(lambda given: sides[1]["f"](given, names))(x), wanted)


@pytest.mark.parametrize("truth", ["y.sum() > 0", "y > 0"])
def test_a_mask_of_what_arrays_compare_is_said_to_need_values(truth: str) -> None:
    translation = convert(HEAD + f"def f(x: Tensor, ys: list[Tensor]):\n    return x[[{truth} for y in ys]]\n")
    assert [f.code for f in translation.findings] == ["value-needed"] and "jnp.array([" in translation.code


def test_a_list_of_places_is_jaxs() -> None:
    assert "x[jnp.array(ids)]" in convert(HEAD + "def f(x: Tensor, ids: list[int]):\n    return x[ids]\n").code
