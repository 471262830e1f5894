"""By hand, both updates are one compiled step. The conversion compiles an update for each optimizer, where PyTorch's
program calls `backward`; images that both need are computed twice, of noise that is drawn once.
"""

import jax
import jax.numpy as jnp
import optax
from flax import nnx

LATENT = 4


class Generator(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs):
        self.net = nnx.Sequential(nnx.Linear(LATENT, 16, rngs=rngs), nnx.relu, nnx.Linear(16, 6, rngs=rngs), nnx.tanh)

    def __call__(self, z):
        return self.net(z)


class Discriminator(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs):
        self.layer1, self.layer2 = nnx.Linear(6, 16, rngs=rngs), nnx.Linear(16, 1, rngs=rngs)

    def __call__(self, x):
        return self.layer2(nnx.leaky_relu(self.layer1(x), 0.2)).squeeze(1)


@nnx.jit
def train_step(generator, discriminator, optimizer_g, optimizer_d, real, z):
    def loss_d(discriminator):
        on_real, on_fake = discriminator(real), discriminator(jax.lax.stop_gradient(generator(z)))
        losses = [optax.sigmoid_binary_cross_entropy(on_real, jnp.ones_like(on_real))]
        losses += [optax.sigmoid_binary_cross_entropy(on_fake, jnp.zeros_like(on_fake))]
        return sum(jnp.mean(loss) for loss in losses)

    def loss_g(generator):
        on_fake = discriminator(generator(z))
        return jnp.mean(optax.sigmoid_binary_cross_entropy(on_fake, jnp.ones_like(on_fake)))

    optimizer_d.update(discriminator, nnx.grad(loss_d)(discriminator))
    optimizer_g.update(generator, nnx.grad(loss_g)(generator))


def train(steps=20, batch=8):
    rngs = nnx.Rngs(0)
    generator, discriminator = Generator(rngs=rngs), Discriminator(rngs=rngs)
    optimizer_g = nnx.Optimizer(generator, optax.adam(2e-4, b1=0.5), wrt=nnx.Param)
    optimizer_d = nnx.Optimizer(discriminator, optax.adam(2e-4, b1=0.5), wrt=nnx.Param)
    for step in range(steps):
        real, z = rngs.normal((batch, 6)), rngs.normal((batch, LATENT))
        train_step(generator, discriminator, optimizer_g, optimizer_d, real, z)
    return generator


if __name__ == "__main__":
    train()
