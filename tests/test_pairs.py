"""The twelve pairs of ``docs/pairs/``: they convert whole, and the programs by hand give what conversions give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from flax import nnx

from docs import build
from t2j_lsp import convert

IMAGES = jnp.ones((2, 16, 16, 3))
TOKENS = jnp.zeros((2, 7), int)
GRAPH = (jnp.ones((6, 5)), jnp.array([[0, 1, 2, 3, 4, 4], [1, 2, 0, 4, 3, 1]]))
MODULES: dict[str, tuple[str, tuple[Any, ...]]] = {
    "residual_cnn": ("ResNet", (IMAGES,)),
    "vit": ("ViT", (IMAGES,)),
    "lstm_tagger": ("Tagger", (TOKENS,)),
    "seq2seq": ("Seq2Seq", (TOKENS, TOKENS)),
    "unet": ("UNet", (IMAGES,)),
    "vae": ("VAE", (jnp.ones((2, 20)),)),
    "transformer_lm": ("LanguageModel", (TOKENS,)),
    "gnn": ("GNN", GRAPH),
    "siamese": ("Siamese", (jnp.ones((2, 8)), jnp.ones((2, 8)))),
}
PROGRAMS = {"gan": "train", "dqn": "train", "diffusion_step": "main"}


def definitions(text: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "pair"}
    exec(compile(text, "<pair>", "exec"), names)
    return names


def texts(pair: str) -> tuple[str, str, str]:
    """Source, conversion, and the program by hand."""
    folder = build.DOCS / "pairs" / pair
    source = (folder / "torch_source.py").read_text(encoding="utf-8")
    return source, convert(source).code, (folder / "by_hand.py").read_text(encoding="utf-8")


def channels_first(x: jax.Array) -> jax.Array:
    return jnp.moveaxis(x, -1, 1) if x.ndim == 4 else x


@pytest.mark.parametrize("pair", build.PAIRS)
def test_pairs_convert_without_gaps(pair: str) -> None:
    source, code, _ = texts(pair)
    assert convert(source).gaps == () and "torch" not in build.without(code, set()).replace("PyTorch", "").split()
    assert pair in {**MODULES, **PROGRAMS}


@pytest.mark.parametrize("pair", MODULES)
def test_by_hand_and_converted_give_arrays_of_the_same_shapes(pair: str) -> None:
    name, inputs = MODULES[pair]
    _, code, by_hand = texts(pair)

    def shapes(text: str, turned: Callable[[jax.Array], jax.Array]) -> list[tuple[int, ...]]:
        module = definitions(text)[name](rngs=nnx.Rngs(0))
        return [x.shape for x in jax.tree.leaves(module(*map(turned, inputs)))]

    expected = [channels_first(jnp.zeros(shape)).shape for shape in shapes(by_hand, lambda x: x)]
    assert shapes(code, channels_first) == expected


@pytest.mark.parametrize("pair", PROGRAMS)
def test_both_programs_train(pair: str) -> None:
    _, code, by_hand = texts(pair)
    for text in (code, by_hand):
        definitions(text)[PROGRAMS[pair]]()
