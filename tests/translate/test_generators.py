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
        "def f():\n    return use(g)",
        "h = g",
    ],
)
def test_a_generator_with_other_uses_is_left(other: str) -> None:
    source = f"import torch\n\ng = torch.Generator().manual_seed(3)\n{DRAWS}{other}\n"
    translation = translate(source, Options())
    assert "g = torch.Generator().manual_seed(3)\n" in translation.code


FUNCTIONS = {
    "chained": ("g = torch.Generator().manual_seed(seed)", "g = nnx.Rngs(seed)"),
    "of a device": ("g = torch.Generator(device='cpu').manual_seed(seed + 1)", "g = nnx.Rngs(seed + 1)"),
    "seeded next": ("g = torch.Generator()\n    g.manual_seed(seed)", "g = nnx.Rngs(seed)"),
}


@pytest.mark.parametrize(("made", "wanted"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_generator_that_a_function_makes_for_its_draws_is_one_of_its_own(made: str, wanted: str) -> None:
    draws = "return torch.randn(n, 4, generator=g), torch.randperm(n, generator=g), torch.empty(n).normal_(generator=g)"
    translation = translate(f"import torch\n\n\ndef split(n, seed):\n    {made}\n    {draws}\n", Options())

    assert not translation.gaps
    assert f"def split(n, seed):\n    {wanted}\n    return g.normal((n, 4)), g.permutation(n), g." in translation.code


def test_functions_inside_draw_from_it_and_steps_are_given_what_is_drawn() -> None:
    translation = translate(
        "import torch\nfrom torch import nn\n\n\ndef train(steps):\n    g = torch.Generator().manual_seed(5)\n"
        "    model = nn.Linear(3, 2)\n    opt = torch.optim.SGD(model.parameters(), lr=0.1)\n\n    def batch():\n"
        "        return torch.randn(8, 3, generator=g)\n\n    for step in range(steps):\n        x = batch()\n"
        "        noise = torch.rand(8, 2, generator=g)\n        loss = ((model(x) - noise) ** 2).mean()\n"
        "        opt.zero_grad()\n        loss.backward()\n        opt.step()\n\n\ntrain(2)\n",
        Options(),
    )

    assert not translation.gaps
    assert "return g.normal((8, 3))" in translation.code
    assert "        noise = g.uniform((8, 2))\n        bound_train_step(x, noise)\n" in translation.code


LEFT = {
    "handed on": "g = torch.Generator().manual_seed(0)\n    use(g)\n    return torch.rand(n, generator=g)",
    "asked for its state": "g = torch.Generator().manual_seed(0)\n    return torch.rand(n, generator=g), g.get_state()",
    "seeded later": "g = torch.Generator()\n    print(n)\n    g.manual_seed(0)\n    return torch.rand(n, generator=g)",
    "not seeded": "g = torch.Generator()\n    return torch.rand(n, generator=g)",
    "of a loader": "g = torch.Generator().manual_seed(0)\n    return torch.utils.data.DataLoader(n, generator=g)",
    "perhaps none": "g = torch.Generator().manual_seed(0)\n    g = n or g\n    return torch.rand(n, generator=g)",
}


@pytest.mark.parametrize("body", LEFT.values(), ids=LEFT)
def test_a_generator_of_a_function_with_other_uses_is_no_rngs(body: str) -> None:
    code = translate(f"import torch\n\n\ndef drawn(n):\n    {body}\n", Options()).code

    assert "g = nnx.Rngs(" not in code
    assert "g.uniform" not in code


def test_a_generator_of_the_file_is_told_from_one_of_a_function() -> None:
    translation = translate(
        "import torch\n\n\ndef drawn(n):\n    g = torch.Generator().manual_seed(0)\n"
        "    return torch.rand(n, generator=g)\n"
        f"\n\ng = torch.Generator().manual_seed(1)\n{DRAWS}",
        Options(),
    )

    assert not translation.gaps
    assert translation.code.endswith(f"\nrngs = nnx.Rngs(1)\n{DRAWN}")
