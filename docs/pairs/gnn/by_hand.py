"""By hand, messages are added by `jax.ops.segment_sum`, JAX's name for a scatter by groups. The conversion writes
`.at[].add`, which is what `index_add_` says, and clamps with PyTorch's gradient at the bound.
"""

import jax
import jax.numpy as jnp
from flax import nnx


class GraphConv(nnx.Module):
    def __init__(self, inputs, outputs, *, rngs: nnx.Rngs):
        self.own = nnx.Linear(inputs, outputs, rngs=rngs)
        self.neighbours = nnx.Linear(inputs, outputs, use_bias=False, rngs=rngs)

    def __call__(self, x, edges):
        source, target = edges
        gathered = jax.ops.segment_sum(self.neighbours(x)[source], target, num_segments=x.shape[0])
        degree = jax.ops.segment_sum(jnp.ones(target.shape[0]), target, num_segments=x.shape[0])
        return self.own(x) + gathered / jnp.maximum(degree, 1)[:, None]


class GNN(nnx.Module):
    def __init__(self, features=5, hidden=8, classes=3, *, rngs: nnx.Rngs):
        self.conv1 = GraphConv(features, hidden, rngs=rngs)
        self.conv2 = GraphConv(hidden, classes, rngs=rngs)

    def __call__(self, x, edges):
        return self.conv2(nnx.relu(self.conv1(x, edges)), edges)
