"""The reasons why helpers stand where JAX, Flax or optax have something alike: of helpers, and of what exists."""

from __future__ import annotations

import importlib
import re
from typing import Any

import jax
import jax.numpy as jnp
import optax
import pytest
from flax import nnx

from t2j_lsp.explain import helper_docs
from t2j_lsp.translate.rule.record import STOCK, RuleError, instead

ROOTS: dict[str, Any] = {"jax": jax, "jnp": jnp, "nnx": nnx, "optax": optax}
DOCS = helper_docs()


def resolved(name: str) -> Any:
    """What a dotted name stands for; modules of jax that it doesn't import itself are imported."""
    root, *parts = name.split(".")
    result = ROOTS[root]
    for index, part in enumerate(parts):
        if not hasattr(result, part) and root == "jax":
            importlib.import_module(".".join(["jax", *parts[: index + 1]]))
        result = getattr(result, part)
    return result


@pytest.mark.parametrize("helper", STOCK)
def test_a_reason_is_about_a_helper_and_names_what_exists(helper: str) -> None:
    assert DOCS[helper].why == STOCK[helper]
    for name in re.findall(r"\b(?:jax|jnp|nnx|optax)(?:\.\w+)+", STOCK[helper]):
        assert resolved(name) is not None, name


def test_a_helper_has_one_reason() -> None:
    with pytest.raises(RuleError, match="interpolate"):
        instead("another one", "interpolate")


def test_a_helper_is_described_by_its_signature_and_first_paragraph() -> None:
    doc = DOCS["expand"]
    assert doc.signature.startswith("expand(x: jax.Array") and doc.about.startswith("Broadcasts x to `shape`")
    assert DOCS["LRScheduler"].signature.startswith("LRScheduler(optimizer: nnx.Optimizer, schedule")
    assert DOCS["uniform_fan_in"].about.startswith("The default of nn.Linear")
