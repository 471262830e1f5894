"""By hand, the attention is Flax's own layer, with a projection for each of query, key and value. The conversion keeps
`in_proj_weight` under its name, so that PyTorch's checkpoints load, which costs a class `MultiheadAttention`.
"""

import jax.numpy as jnp
from flax import nnx


class Block(nnx.Module):
    def __init__(self, dim, heads, *, rngs: nnx.Rngs):
        self.norm1 = nnx.LayerNorm(dim, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(heads, dim, decode=False, rngs=rngs)
        self.norm2 = nnx.LayerNorm(dim, rngs=rngs)
        self.mlp = nnx.Sequential(nnx.Linear(dim, 4 * dim, rngs=rngs), nnx.gelu, nnx.Linear(4 * dim, dim, rngs=rngs))

    def __call__(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class ViT(nnx.Module):
    def __init__(self, image=16, patch=4, dim=12, depth=2, heads=3, classes=5, *, rngs: nnx.Rngs):
        self.embed = nnx.Conv(3, dim, (patch, patch), strides=patch, padding="VALID", rngs=rngs)
        self.token = nnx.Param(jnp.zeros((1, 1, dim)))
        self.places = nnx.Param(jnp.zeros((1, (image // patch) ** 2 + 1, dim)))
        self.blocks = nnx.Sequential(*[Block(dim, heads, rngs=rngs) for _ in range(depth)])
        self.norm = nnx.LayerNorm(dim, rngs=rngs)
        self.head = nnx.Linear(dim, classes, rngs=rngs)

    def __call__(self, images):
        x = self.embed(images).reshape(images.shape[0], -1, self.token.shape[-1])
        token = jnp.broadcast_to(self.token[...], (x.shape[0], 1, x.shape[-1]))
        x = jnp.concatenate([token, x], axis=1) + self.places
        return self.head(self.norm(self.blocks(x))[:, 0])
