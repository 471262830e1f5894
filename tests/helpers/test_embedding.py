"""Embedding helpers against torch: repeated ids, padding rows, empty bags, fresh tables."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from flax import nnx

from t2j_lsp.rules.helpers import embedding
from tests.helpers.compare import array, copy_state, randomize, same_distribution, same_function, same_module

IDS = np.array([[1, 3, 3], [0, 6, 1]])


RENORMALISED = [{"max_norm": 1.0}, {"max_norm": 2.5, "norm_type": 1.0}, {"max_norm": 0.5, "norm_type": float("inf")}]
"""Tables that are written into: what `same_module` compares afterwards, too."""


@pytest.mark.parametrize("options", [*RENORMALISED, {"scale_grad_by_freq": True, "padding_idx": 3}])
def test_tables_that_are_renormalised_or_trained_by_frequency_agree_with_torch(options: dict[str, Any]) -> None:
    module = embedding.Embedding(7, 4, **options, rngs=nnx.Rngs(0))
    reference = torch.nn.Embedding(7, 4, **options)
    same_module(module, reference, IDS, jit=True)
    copy_state(randomize(reference), module)
    with jax.enable_x64(True):
        np.testing.assert_allclose(module(jnp.asarray(IDS)), reference(torch.from_numpy(IDS)).detach(), rtol=1e-12)
        np.testing.assert_allclose(module.embedding[...], reference.weight.detach(), rtol=1e-12)
    if "max_norm" in options:
        norms = np.linalg.norm(module.embedding[...], options.get("norm_type", 2), axis=-1)
        assert (norms[np.unique(IDS)] <= options["max_norm"] + 1e-12).all() and norms.max() > options["max_norm"]


@pytest.mark.parametrize("padding_idx", [None, 3, -1])
def test_embedding_agrees_with_torch(padding_idx: int | None) -> None:
    module = embedding.Embedding(7, 4, padding_idx, rngs=nnx.Rngs(0))
    reference = torch.nn.Embedding(7, 4, padding_idx)
    same_module(module, reference, IDS)
    same_module(module, reference, IDS, jit=True)
    assert (module.num_embeddings, module.embedding_dim) == (7, 4)
    assert module.padding_idx == reference.padding_idx
    assert module.weight is module.embedding
    assert isinstance(module, nnx.Embed)


def test_fresh_table_is_normal_with_a_zero_row_for_padding() -> None:
    torch.manual_seed(0)
    same_distribution(embedding.Embedding(500, 40, rngs=nnx.Rngs(0)), torch.nn.Embedding(500, 40))
    same_distribution(embedding.EmbeddingBag(500, 40, rngs=nnx.Rngs(0)), torch.nn.EmbeddingBag(500, 40))
    for name in ("Embedding", "EmbeddingBag"):
        table = getattr(embedding, name)(5, 4, padding_idx=-2, rngs=nnx.Rngs(0)).weight[...]
        assert np.flatnonzero(np.asarray(table == 0).all(1)).tolist() == [3]


def test_one_row_table_and_one_id() -> None:
    same_module(embedding.Embedding(1, 3, rngs=nnx.Rngs(0)), torch.nn.Embedding(1, 3), np.array(0))


def test_function_agrees_with_torch() -> None:
    def with_padding(w: Any, module: Any, ids: Any) -> Any:
        return module.embedding(ids, w, padding_idx=-1) + module.embedding(ids, w, scale_grad_by_freq=True)

    same_function(
        lambda w: with_padding(w, embedding, jnp.asarray(IDS)),
        lambda w: with_padding(w, F, torch.from_numpy(IDS)),
        array(7, 4), jit=True,
    )  # fmt: skip


def test_index_outside_the_table_gives_nan() -> None:
    assert bool(jnp.isnan(embedding.embedding(jnp.array([7]), jnp.ones((7, 2)))).all())


def test_one_hot_counts_classes_as_torch() -> None:
    same_function(embedding.one_hot, F.one_hot, IDS)
    same_function(lambda x: embedding.one_hot(x, 9), lambda x: F.one_hot(x, 9), IDS, jit=True)


FLAT = np.array([1, 3, 3, 0, 6, 1, 2])
BAGS: dict[str, tuple[dict[str, Any], list[np.ndarray]]] = {
    "rows": ({}, [IDS]),
    "rows, sum": ({"mode": "sum"}, [IDS]),
    "rows, max": ({"mode": "max"}, [IDS]),
    "offsets with an empty bag": ({}, [FLAT, np.array([0, 3, 3, 5])]),
    "offsets, max with empty bags": ({"mode": "max"}, [FLAT, np.array([0, 0, 3, 7])]),
    "last offset": ({"mode": "sum", "include_last_offset": True}, [FLAT, np.array([0, 2, 7])]),
    "padding": ({"padding_idx": 3}, [FLAT, np.array([0, 1, 3, 5])]),
    "padding, max": ({"padding_idx": 3, "mode": "max"}, [FLAT, np.array([0, 1, 3, 5])]),
    "padding rows": ({"padding_idx": -4, "mode": "sum"}, [IDS]),
    "renormalised": ({"max_norm": 1.0, "mode": "sum"}, [FLAT, np.array([0, 1, 3, 5])]),
}


@pytest.mark.parametrize("case", BAGS)
def test_embedding_bag_agrees_with_torch(case: str) -> None:
    options, inputs = BAGS[case]
    module = embedding.EmbeddingBag(7, 4, **options, rngs=nnx.Rngs(0))
    same_module(module, torch.nn.EmbeddingBag(7, 4, **options), *inputs, jit=True)


def test_embedding_bag_weighs_its_samples() -> None:
    module = embedding.EmbeddingBag(7, 4, mode="sum", rngs=nnx.Rngs(0))
    reference = torch.nn.EmbeddingBag(7, 4, mode="sum")
    copy_state(randomize(reference), module)
    same_function(
        lambda w: module(jnp.asarray(IDS), None, w),
        lambda w: reference(torch.from_numpy(IDS), None, w),
        array(2, 3),
    )  # fmt: skip
