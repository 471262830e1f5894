"""Embedding tables with PyTorch's constructors, padding index and initialisation.

An index outside the table gives NaN, where PyTorch raises. `sparse` has no form here.
Source: https://docs.pytorch.org/docs/stable/nn.html#sparse-layers
"""

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from .container import Buffer
from .math import vector_norm


def renormalised(weight: jax.Array, ids: jax.Array, max_norm: float, norm_type: float = 2.0) -> jax.Array:
    """A table (rows, features) in which the rows at `ids` have norms of at most `max_norm`.

    PyTorch writes so into its table before a lookup, without gradients: those of the table are what they were.
    """
    norms = vector_norm(weight, norm_type, -1, keepdims=True)
    asked = jnp.isin(jnp.arange(weight.shape[0]), ids)[:, None]
    scale = jnp.where(asked & (norms > max_norm), max_norm / (norms + 1e-7), 1)
    return weight + jax.lax.stop_gradient(weight * scale - weight)


def by_frequency(rows: jax.Array, ids: jax.Array, num_embeddings: int) -> jax.Array:
    """The rows (*ids.shape, features) at `ids`, with gradients divided by how often each id is there."""
    counts = jnp.zeros(num_embeddings, rows.dtype).at[ids.reshape(-1)].add(1)
    scale = 1 / counts[ids][..., None]
    return rows * scale + jax.lax.stop_gradient(rows - rows * scale)


def embedding(
    ids: jax.Array, weight: jax.Array, padding_idx: int | None = None, scale_grad_by_freq: bool = False
) -> jax.Array:
    """`F.embedding`: the rows of weight (rows, features) at `ids`; row `padding_idx` gets no gradient.

    Args:
      ids: integers of any shape.
      weight: (rows, features).
      padding_idx: may be negative, counted from the end.
      scale_grad_by_freq: whether gradients are divided by how often an id is there.

    Returns:
      (*ids.shape, features).
    """
    rows = jnp.take(weight, ids, axis=0)
    if scale_grad_by_freq:
        rows = by_frequency(rows, ids, weight.shape[0])
    if padding_idx is None:
        return rows
    is_padding = (ids == padding_idx % weight.shape[0])[..., None]
    return jnp.where(is_padding, jax.lax.stop_gradient(rows), rows)


def embedding_of_bounded_rows(
    ids: jax.Array,
    table: nnx.Variable[jax.Array],
    max_norm: float | None,
    norm_type: float = 2.0,
    padding_idx: int | None = None,
    scale_grad_by_freq: bool = False,
) -> jax.Array:
    """`F.embedding` with `max_norm`: the rows of a module's table that are looked up are made shorter in it."""
    if max_norm is not None:
        table[...] = renormalised(table[...], ids, max_norm, norm_type)
    return embedding(ids, table[...], padding_idx, scale_grad_by_freq)


def one_hot(ids: jax.Array, num_classes: int = -1) -> jax.Array:
    """`F.one_hot`: integers 0 and 1; num_classes=-1 takes the largest id plus 1, and so needs values, not tracers."""
    return jax.nn.one_hot(ids, int(ids.max()) + 1 if num_classes == -1 else num_classes, dtype=int)


def embedding_bag(
    ids: jax.Array,
    weight: jax.Array,
    offsets: jax.Array | None = None,
    mode: str = "mean",
    per_sample_weights: jax.Array | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> jax.Array:
    """`F.embedding_bag`: the sum, mean or maximum of the rows of each bag; a bag without rows gives zeros.

    Args:
      ids: (bags, length), or (total,) with `offsets`.
      weight: (rows, features).
      offsets: (bags,), where each bag starts in `ids`.
      mode: "sum", "mean" or "max".
      per_sample_weights: factors in the shape of `ids`, for the mode "sum".
      include_last_offset: whether `offsets` also has where the last bag ends.
      padding_idx: ids of this value are left out.

    Returns:
      (bags, features).
    """
    if offsets is None:
        bags = ids.shape[0]
        bag = jnp.repeat(jnp.arange(bags), ids.shape[1])
    else:
        bags = offsets.size - 1 if include_last_offset else offsets.size
        bag = jnp.searchsorted(offsets[:bags], jnp.arange(ids.size), side="right") - 1
        bag = jnp.where(ids < 0, bags, bag)  # negative ids fill the row up, and are in no bag
    flat = ids.reshape(-1)
    if padding_idx is not None:
        bag = jnp.where(flat == padding_idx % weight.shape[0], bags, bag)  # out of range: dropped
    rows = weight[flat]
    if mode == "max":
        best = jax.ops.segment_max(rows, bag, bags)
        return jnp.where(jnp.isneginf(best), 0, best)
    if per_sample_weights is not None:
        rows *= per_sample_weights.reshape(-1, 1)
    total = jax.ops.segment_sum(rows, bag, bags)
    if mode == "sum":
        return total
    counts = jax.ops.segment_sum(jnp.ones_like(flat), bag, bags)
    return total / jnp.maximum(counts, 1)[:, None]


def padded_ids(ids: jax.Array) -> np.ndarray:
    """The ids of a batch of bags in one row, filled with -1 up to a power of two: few lengths are compiled."""
    row = np.asarray(ids)
    return np.pad(row, (0, (1 << (row.size - 1).bit_length()) - row.size), constant_values=-1)


class Embedding(nnx.Embed):
    """PyTorch's `nn.Embedding`: rows from N(0, 1), row `padding_idx` zero and without gradient."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        *,
        rngs: nnx.Rngs,
    ):
        super().__init__(num_embeddings, embedding_dim, embedding_init=jax.random.normal, rngs=rngs)
        self.embedding_dim = embedding_dim
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        if padding_idx is None:
            self.padding_idx = None
        else:
            self.padding_idx = padding_idx % num_embeddings
            self.embedding[...] = self.embedding[...].at[self.padding_idx].set(0)

    @property
    def weight(self) -> nnx.Param:
        """PyTorch's name of `embedding`."""
        return self.embedding

    def __call__(self, ids: jax.Array) -> jax.Array:
        """Looks up `ids`, of any shape: (*ids.shape, embedding_dim)."""
        if self.max_norm is not None:
            self.embedding[...] = renormalised(self.embedding[...], ids, self.max_norm, self.norm_type)
        rows = jnp.take(self.embedding[...], ids, axis=0)
        if self.scale_grad_by_freq:
            rows = by_frequency(rows, ids, self.num_embeddings)
        if self.padding_idx is None:
            return rows
        is_padding = (ids == self.padding_idx)[..., None]
        return jnp.where(is_padding, jax.lax.stop_gradient(rows), rows)


class PretrainedEmbed(nnx.Embed):
    """PyTorch's `nn.Embedding.from_pretrained`: rows that are given, and are not trained where they `freeze`."""

    def __init__(self, embeddings: jax.Array, freeze: bool = True, *, rngs: nnx.Rngs | None = None):
        super().__init__(*embeddings.shape, embedding_init=nnx.initializers.zeros, rngs=rngs or nnx.Rngs(0))
        table = jnp.asarray(embeddings)
        self.embedding_dim = table.shape[1]
        self.embedding = Buffer(table) if freeze else nnx.Param(table)

    @property
    def weight(self) -> nnx.Variable[jax.Array]:
        """PyTorch's name of `embedding`."""
        return self.embedding


class EmbeddingBag(nnx.Module):
    """PyTorch's `nn.EmbeddingBag`, with `weight` (num_embeddings, embedding_dim)."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        *,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        mode: str = "mean",
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        rngs: nnx.Rngs,
    ):
        self.num_embeddings, self.embedding_dim, self.mode = num_embeddings, embedding_dim, mode
        self.max_norm, self.norm_type = max_norm, norm_type
        self.include_last_offset, self.padding_idx = include_last_offset, padding_idx
        weight = jax.random.normal(rngs.params(), (num_embeddings, embedding_dim), jnp.float32)
        self.weight = nnx.Param(weight if padding_idx is None else weight.at[padding_idx].set(0))

    def __call__(
        self, ids: jax.Array, offsets: jax.Array | None = None, per_sample_weights: jax.Array | None = None
    ) -> jax.Array:
        """Reduces the rows of each bag; see `embedding_bag`."""
        if self.max_norm is not None:
            self.weight[...] = renormalised(self.weight[...], ids, self.max_norm, self.norm_type)
        return embedding_bag(
            ids, self.weight[...], offsets, self.mode, per_sample_weights, self.include_last_offset, self.padding_idx
        )
