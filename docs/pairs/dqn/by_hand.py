"""By hand, the loss is optax's `huber_loss`, and the target network an `nnx.clone` of the policy. The conversion finds
the same compiled step; its `smooth_l1_loss` and maximum have PyTorch's gradients where values are equal.
"""

import jax
import jax.numpy as jnp
import optax
from flax import nnx

GAMMA = 0.9


class QNetwork(nnx.Module):
    def __init__(self, states=4, actions=2, hidden=16, *, rngs: nnx.Rngs):
        self.net = nnx.Sequential(
            nnx.Linear(states, hidden, rngs=rngs), nnx.relu, nnx.Linear(hidden, actions, rngs=rngs)
        )

    def __call__(self, state):
        return self.net(state)


@nnx.jit
def train_step(policy, target, optimizer, state, action, reward, after):
    wanted = reward + GAMMA * target(after).max(axis=1)

    def loss_fn(policy):
        value = jnp.take_along_axis(policy(state), action, axis=1).squeeze(1)
        return jnp.mean(optax.huber_loss(value, wanted))

    loss, grads = nnx.value_and_grad(loss_fn)(policy)
    optimizer.update(policy, grads)
    return loss


def train(steps=20, batch=8):
    rngs = nnx.Rngs(0)
    policy = QNetwork(rngs=rngs)
    target = nnx.clone(policy)
    optimizer = nnx.Optimizer(policy, optax.adam(1e-3), wrt=nnx.Param)
    for step in range(steps):
        state, after, reward = rngs.normal((batch, 4)), rngs.normal((batch, 4)), rngs.normal((batch,))
        action = jax.random.randint(rngs(), (batch, 1), 0, 2)
        train_step(policy, target, optimizer, state, action, reward, after)
        if step % 10 == 9:
            nnx.update(target, nnx.state(policy))
    return policy


if __name__ == "__main__":
    train()
