"""By hand, the whole step is compiled, with its draws from a key that is passed, and the loss stays on the device. The
conversion compiles the loss and the update; the draws stay outside, and `loss.item()` waits where it did.
"""

import jax
import jax.numpy as jnp
import optax
from flax import nnx

STEPS = 50
BETAS = jnp.linspace(1e-4, 0.02, STEPS)
KEPT = jnp.cumprod(1 - BETAS)


class Denoiser(nnx.Module):
    def __init__(self, features=6, hidden=16, *, rngs: nnx.Rngs):
        self.time = nnx.Embed(STEPS, hidden, rngs=rngs)
        self.layer1 = nnx.Linear(features, hidden, rngs=rngs)
        self.layer2 = nnx.Linear(hidden, features, rngs=rngs)

    def __call__(self, x, t):
        return self.layer2(nnx.silu(self.layer1(x) + self.time(t)))


@nnx.jit
def train_step(model, optimizer, x, key):
    keys = jax.random.split(key)
    t = jax.random.randint(keys[0], (x.shape[0],), 0, STEPS)
    noise = jax.random.normal(keys[1], x.shape)
    kept = KEPT[t][:, None]
    noisy = jnp.sqrt(kept) * x + jnp.sqrt(1 - kept) * noise

    def loss_fn(model):
        return jnp.mean((model(noisy, t) - noise) ** 2)

    loss, grads = nnx.value_and_grad(loss_fn)(model)
    optimizer.update(model, grads)
    return loss


def main():
    rngs = nnx.Rngs(0)
    model = Denoiser(rngs=rngs)
    optimizer = nnx.Optimizer(model, optax.adamw(1e-3, weight_decay=0.01), wrt=nnx.Param)
    for _ in range(20):
        train_step(model, optimizer, rngs.normal((8, 6)), rngs())


if __name__ == "__main__":
    main()
