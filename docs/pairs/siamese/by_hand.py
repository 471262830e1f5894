"""By hand, the distance is the root of a sum, with a small number under it that keeps its gradient finite at 0. The
conversion adds 1e-6 to the difference, as `F.pairwise_distance` does, and its norm has PyTorch's gradient at 0.
"""

import jax.numpy as jnp
from flax import nnx


class Siamese(nnx.Module):
    def __init__(self, features=8, hidden=16, dim=4, *, rngs: nnx.Rngs):
        self.encoder = nnx.Sequential(
            nnx.Linear(features, hidden, rngs=rngs), nnx.relu, nnx.Linear(hidden, dim, rngs=rngs)
        )

    def __call__(self, left, right):
        return self.encoder(left), self.encoder(right)


def contrastive_loss(left, right, same, margin=1.0):
    distance = jnp.sqrt(jnp.sum((left - right) ** 2, axis=-1) + 1e-12)
    return jnp.mean(same * distance**2 + (1 - same) * nnx.relu(margin - distance) ** 2)
