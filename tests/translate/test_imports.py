"""Classes that come from a neighbouring file are known when its text can be had."""

from __future__ import annotations

import pytest

from t2j_lsp.contract import Options
from t2j_lsp.translate import translate

LAYER = """
import torch


class Noise(torch.nn.Module):
    def forward(self, x):
        return x + torch.randn_like(x)
"""


@pytest.mark.parametrize(
    ("line", "files"),
    [
        ("from .noise import Noise", {(1, "noise"): LAYER}),
        ("from ..ops.noise import Noise", {(2, "ops.noise"): LAYER}),
        ("from pack.noise import Noise", {(0, "pack.noise"): LAYER}),
        ("from pack import Noise", {(0, "pack"): "from .noise import Noise", (0, "pack.noise"): LAYER}),
        ("from ..ops import Noise", {(2, "ops"): "from .noise import Noise", (2, "ops.noise"): LAYER}),
        ("from .a import Noise", {(1, "a"): "from .noise import Noise", (1, "noise"): LAYER}),
    ],
)
def test_a_module_class_of_another_file_takes_rngs(line: str, files: dict[tuple[int, str], str]) -> None:
    source = f"import torch\n{line}\n\n\ndef build():\n    return Noise()\n"
    code = translate(source, Options(resolve=lambda level, name: files.get((level, name)))).code
    assert "def build(*, rngs: nnx.Rngs):\n    return Noise(rngs=rngs)" in code


def test_without_the_other_file_nothing_is_assumed() -> None:
    source = "import torch\nfrom .noise import Noise\n\n\ndef build():\n    return Noise()\n"
    assert "return Noise()" in translate(source).code


def test_files_that_import_each_other_end() -> None:
    files = {(1, "a"): "from .b import B\nimport torch\n", (1, "b"): "from .a import A\nimport torch\n"}
    source = "import torch\nfrom .a import B\nx = torch.zeros(2)\n"
    assert "jnp.zeros(2)" in translate(source, Options(resolve=lambda level, name: files.get((level, name)))).code


def test_imports_that_are_there_are_not_added_again() -> None:
    source = "from functools import partial\n\nimport jax.numpy as jnp\nimport torch\n\nx = torch.zeros(2)\n"
    code = translate(source).code
    assert code.count("import jax.numpy as jnp") == 1
    assert "import torch" not in code
