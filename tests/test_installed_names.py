"""Conversions name nothing of jax, flax and optax that the installed packages don't have."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.installed_names import unknown_names
from t2j_lsp import convert
from t2j_lsp.files.sources import neighbours

ROOT = Path(__file__).parents[1]
FOLDERS = ("tests/translate/models", "tests/translate/scripts", "examples")
FILES = [path for folder in FOLDERS for path in sorted((ROOT / folder).glob("*.py"))]
HEAD = "import jax, optax\nimport jax.numpy as jnp\nfrom flax import nnx\n"


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("jnp.concatenate([1], axis=0), nnx.Linear(1, 2, rngs=nnx.Rngs(0)), optax.adam(1e-3), jax.nn.relu(1)", 0),
        ("jnp.cat([1])", 1),
        ("jnp.concatenate([1], dim=0)", 1),
        ("nnx.Linear(1, 2, 3, rngs=nnx.Rngs(0))", 1),
        ("nnx.Linear(1, 2)", 1),
        ("nnx.Linear(*sizes), optax.adam(**options)", 0),
        ("optax.Adam(1e-3)", 1),
        ("jax.lax.cond.nothing, jax.nn.no_such(1)", 1),
        ("from jax import nothing", 1),
        ("import jax.nothing", 1),
        ("from jax.nn import relu as r\nr(1, 2, 3)", 1),
        ("def f(jnp):\n    return jnp.anything", 0),
    ],
)
def test_what_the_packages_do_not_have_is_found(code: str, count: int) -> None:
    assert len(unknown_names(HEAD + code)) == count


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_conversion_names_what_there_is(path: Path) -> None:
    assert unknown_names(convert(path.read_text(encoding="utf-8"), resolve=neighbours(path)).code) == []


def test_conversions_of_every_folder_are_looked_at() -> None:
    assert {path.parent.name for path in FILES} == {Path(folder).name for folder in FOLDERS}
