"""Generators that only draws are given: to seed one is to seed ``rngs``."""

from __future__ import annotations

import pytest

from t2j_lsp.contract import Options
from t2j_lsp.translate import translate

DRAWS = "x = torch.randn((3, 4), generator=g)\nix = torch.randint(0, 3, (8,), generator=g)\n"
DRAWN = "x = rngs.normal((3, 4))\nix = rngs.randint((8,), 0, 3)\n"


@pytest.mark.parametrize(
    ("made", "seeded"),
    [
        ("g = torch.Generator().manual_seed(2147483647)", "rngs = nnx.Rngs(2147483647)"),
        ("g = torch.Generator(device='cpu').manual_seed(3)", "rngs = nnx.Rngs(3)"),
        ("g = torch.Generator()\ng.manual_seed(3 + 10)", "rngs = nnx.Rngs(3 + 10)"),
    ],
)
def test_a_generator_of_draws_is_rngs(made: str, seeded: str) -> None:
    translation = translate(f"import torch\n\n{made}\n{DRAWS}", Options())
    assert not translation.gaps
    assert translation.code.endswith(f"\n{seeded}\n{DRAWN}")


def test_a_generator_that_is_seeded_again_seeds_rngs_again() -> None:
    again = "g = torch.Generator().manual_seed(4)\ny = torch.rand(2, generator=g)\n"
    translation = translate(f"import torch\n\ng = torch.Generator().manual_seed(3)\n{DRAWS}{again}", Options())
    assert not translation.gaps
    assert translation.code.endswith(f"rngs = nnx.Rngs(3)\n{DRAWN}rngs = nnx.Rngs(4)\ny = rngs.uniform((2,))\n")


@pytest.mark.parametrize(
    "other",
    [
        "state = g.get_state()",
        "print(g)",
        "loader = torch.utils.data.DataLoader([1, 2], shuffle=True, generator=g)",
        "def f():\n    g = torch.Generator().manual_seed(0)\n    return torch.rand(2, generator=g)",
        "h = g",
    ],
)
def test_a_generator_with_other_uses_is_left(other: str) -> None:
    source = f"import torch\n\ng = torch.Generator().manual_seed(3)\n{DRAWS}{other}\n"
    translation = translate(source, Options())
    assert "g = torch.Generator().manual_seed(3)\n" in translation.code
