"""Types that have a name: what they say of parameters is known, and what they are made of is as in annotations."""

from __future__ import annotations

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from t2j_lsp import convert
from t2j_lsp.files.sources import neighbours

from .convert import body, run
from .side_by_side import sides

TYPING = "from typing import Dict, List, Optional, Tuple, Union\n"


@pytest.mark.parametrize(
    ("alias", "written"),
    [
        ("Union[None, int, str, torch.device]", "Union[None, int, str, jax.Device]"),
        ("torch.device | str", "jax.Device | str"),
        ("Optional[torch.dtype]", "Optional[jnp.dtype]"),
        ("Union[int, torch.Size]", "Union[int, tuple[int, ...]]"),
        ("tuple[Tensor, torch.Generator]", "tuple[jax.Array, nnx.Rngs]"),
        ("Dict[str, List[Union[Tensor, torch.device]]]", "Dict[str, List[Union[jax.Array, jax.Device]]]"),
    ],
)
def test_what_stands_in_a_named_type_is_as_in_annotations(alias: str, written: str) -> None:
    assert f"Kind = {written}" in body(f"{TYPING}Kind = {alias}\n")
    assert f"def f(x: {written})" in body(f"{TYPING}def f(x: {alias}):\n    return x\n")


@pytest.mark.parametrize(
    ("alias", "value"),
    [
        ("Tuple[torch.Tensor, ...]", "sum(x.mean(dim=0) for x in xs)"),
        ("list[torch.Tensor]", "xs[0].max(1)[0] + xs[1].view(2, -1).permute(1, 0)[:2].sum(1)"),
        ("tuple[torch.Tensor, torch.Tensor]", "xs[0].norm(dim=1) * xs[1].clamp(min=0).sum(dim=1)"),
        ("Optional[List[torch.Tensor]]", "None if xs is None else torch.stack([x.std(1) for x in xs]).median(0)[0]"),
    ],
)
def test_a_named_type_tells_what_is_annotated_with_it(alias: str, value: str) -> None:
    text = f"{TYPING}import torch\n\nTensors = {alias}\n\n\ndef f(xs: Tensors):\n    return {value}\n"
    both = sides(text, "aliases")
    assert both.gaps() == []
    arrays = [np.random.default_rng(seed).normal(size=(2, 6)) for seed in range(2)]
    wanted = both.torch.f([torch.tensor(a) for a in arrays])
    np.testing.assert_allclose(both.jax.f([jnp.asarray(a) for a in arrays]), wanted, rtol=1e-6)


def test_a_named_type_of_another_file_tells_as_much(tmp_path: Path) -> None:
    (tmp_path / "kinds.py").write_text(f"{TYPING}import torch\n\nTensors = Tuple[torch.Tensor, ...]\n")
    path = tmp_path / "user.py"
    path.write_text(
        "import torch\nfrom .kinds import Tensors\n\n\ndef move(xs: Tensors, input_device):\n"
        "    return tuple(x.to(input_device) for x in xs)\n"
    )
    assert "tuple(x for x in xs)" in convert(path.read_text(), resolve=neighbours(path)).code


def test_a_variable_that_hides_a_type_is_none() -> None:
    """What is asked for by an index is a part of it then, and ``|`` of arrays is a number's."""
    code = body("def f(list, x: Tensor, m: Tensor):\n    a = list[0]\n    b = (x > 0) | (m > 0)\n    return a, b\n")
    assert "a = list[0]" in code and "b = (x > 0) | (m > 0)" in code


@pytest.mark.parametrize("kind", ["nn.Linear | nn.Conv2d", "(nn.Linear, nn.Conv2d)"])
def test_types_that_something_is_asked_for_stay_classes(kind: str) -> None:
    code = run(f"def f(m):\n    return isinstance(m, {kind})\n").code
    assert "nnx.Linear" in code and "nnx.Conv" in code and "jax.Device" not in code
