"""By hand, `jax.nn.dot_product_attention` takes (batch, length, heads, width), so that no axes are swapped. The
conversion keeps PyTorch's order of axes with `scaled_dot_product_attention`, and the epsilon and exact variance of
its layer norms.
"""

import jax
import jax.numpy as jnp
from flax import nnx


class Block(nnx.Module):
    def __init__(self, dim, heads, dropout, *, rngs: nnx.Rngs):
        self.heads = heads
        self.norm1 = nnx.LayerNorm(dim, rngs=rngs)
        self.qkv = nnx.Linear(dim, 3 * dim, rngs=rngs)
        self.out = nnx.Linear(dim, dim, rngs=rngs)
        self.norm2 = nnx.LayerNorm(dim, rngs=rngs)
        self.mlp = nnx.Sequential(
            nnx.Linear(dim, 4 * dim, rngs=rngs),
            nnx.gelu,
            nnx.Linear(4 * dim, dim, rngs=rngs),
            nnx.Dropout(dropout, rngs=rngs),
        )

    def __call__(self, x):
        q, k, v = jnp.split(self.qkv(self.norm1(x)), 3, axis=-1)
        q, k, v = (t.reshape(*t.shape[:2], self.heads, -1) for t in (q, k, v))
        y = jax.nn.dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.reshape(x.shape))
        return x + self.mlp(self.norm2(x))


class LanguageModel(nnx.Module):
    def __init__(self, words=30, length=16, dim=12, depth=2, heads=3, dropout=0.1, *, rngs: nnx.Rngs):
        self.tokens = nnx.Embed(words, dim, rngs=rngs)
        self.places = nnx.Embed(length, dim, rngs=rngs)
        self.blocks = nnx.List([Block(dim, heads, dropout, rngs=rngs) for _ in range(depth)])
        self.norm = nnx.LayerNorm(dim, rngs=rngs)
        self.head = nnx.Linear(dim, words, use_bias=False, rngs=rngs)

    def __call__(self, tokens):
        x = self.tokens(tokens) + self.places(jnp.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))
