"""Optimizers and schedules: rows 136 to 157. Each runs a few steps and gives the parameters or learning rates."""

from . import Trap

_TORCH = """
p = w.detach().clone().requires_grad_()
optimizer = torch.optim.OPTIMIZER
for _ in range(STEPS):
    optimizer.zero_grad()
    ((p - 1) ** 2 * x).sum().backward()
    optimizer.step()
return p.detach()
"""
_JAX = """
p = lax.stop_gradient(w)
optimizer = OPTIMIZER
state = optimizer.init(p)
for _ in range(STEPS):
    g = jax.grad(lambda p: ((p - 1) ** 2 * lax.stop_gradient(x)).sum())(p)
    updates, state = optimizer.update(g, state, p)
    p = p + updates
return p
"""


def _steps(row: int, torch: str, right: str, wrong: str, steps: int = 3) -> Trap:
    def jax(optimizer: str) -> str:
        return _JAX.replace("OPTIMIZER", optimizer).replace("STEPS", str(steps))

    text = _TORCH.replace("OPTIMIZER", torch).replace("STEPS", str(steps))
    return Trap(row, "w=f32[5], x=0.5 <= f32[5] < 2", text, jax(right), jax(wrong))


def _rates(row: int, torch: str, right: str, wrong: str) -> Trap:
    """Schedules as a list of learning rates, multiplied by the input."""
    text = f"""
        p = torch.zeros(1, requires_grad=True)
        optimizer = torch.optim.SGD([p], lr=0.5)
        scheduler = torch.optim.lr_scheduler.{torch}
        rates = []
        for _ in range(9):
            rates.append(optimizer.param_groups[0]['lr'])
            optimizer.step()
            scheduler.step()
        return x * torch.tensor(rates)
        """
    jax = "schedule = {}\nreturn x * jnp.array([schedule(i) for i in range(9)])"
    return Trap(row, "x=f32[9]", text, jax.format(right), jax.format(wrong))


TRAPS = [
    _steps(
        136,
        "Adam([p], lr=0.1, weight_decay=0.3)",
        "optax.chain(optax.add_decayed_weights(0.3), optax.adam(0.1))",
        "optax.adamw(0.1, weight_decay=0.3)",
    ),
    _steps(137, "AdamW([p], lr=0.1)", "optax.adamw(0.1, weight_decay=0.01)", "optax.adamw(0.1)"),
    _steps(
        140,
        "SGD([p], lr=0.1, momentum=0.9, dampening=0.0)",
        "optax.sgd(0.1, momentum=0.9)",
        "optax.chain(optax.ema(0.9, debias=False), optax.scale(-0.1))",
    ),
    _steps(
        141,
        "SGD([p], lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.2)",
        "optax.chain(optax.add_decayed_weights(0.2), optax.sgd(0.1, momentum=0.9, nesterov=True))",
        "optax.chain(optax.trace(0.9, nesterov=True), optax.add_decayed_weights(0.2), optax.scale(-0.1))",
    ),
    _steps(
        142,
        "RMSprop([p], lr=0.1)",
        "optax.rmsprop(0.1, decay=0.99, eps=1e-8, eps_in_sqrt=False)",
        "optax.rmsprop(0.1)",
    ),
    _steps(
        144,
        "Adagrad([p], lr=0.1, eps=0.0)",
        "optax.adagrad(0.1, initial_accumulator_value=0.0, eps=0.0)",
        "optax.adagrad(0.1)",
    ),
    _steps(145, "Adadelta([p])", "optax.adadelta(1.0, rho=0.9, eps=1e-6)", "optax.adadelta(0.1, rho=0.9, eps=1e-6)"),
    _steps(146, "Adam([p], lr=0.1)", "optax.adam(0.1)", "optax.nadam(0.1)"),
    Trap(
        149,
        "w=f32[5], x=f32[5]",
        """
        p, q = w.detach().clone().requires_grad_(), x.detach().clone().requires_grad_()
        optimizer = torch.optim.AdamW([p, q], lr=0.1, weight_decay=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            (p ** 2).sum().backward()
            optimizer.step()
        return p.detach(), q.detach()
        """,
        """
        p, q = lax.stop_gradient(w), lax.stop_gradient(x)
        optimizer = optax.adamw(0.1, weight_decay=0.1)
        state = optimizer.init(p)
        for _ in range(2):
            updates, state = optimizer.update(2 * p, state, p)
            p = p + updates
        return p, q
        """,
        """
        p = lax.stop_gradient(w), lax.stop_gradient(x)
        optimizer = optax.adamw(0.1, weight_decay=0.1)
        state = optimizer.init(p)
        for _ in range(2):
            updates, state = optimizer.update((2 * p[0], jnp.zeros(5)), state, p)
            p = optax.apply_updates(p, updates)
        return p
        """,
    ),
    Trap(
        151,
        "w=f32[5]",
        """
        p = (w.detach() * 1e-4).requires_grad_()
        (p ** 2).sum().backward()
        torch.nn.utils.clip_grad_norm_([p], 1e-5)
        return p.grad
        """,
        """
        g = lax.stop_gradient(w) * 2e-4
        return g * jnp.minimum(1e-5 / (jnp.sqrt((g * g).sum()) + 1e-6), 1)
        """,
        """
        g = lax.stop_gradient(w) * 2e-4
        return g * jnp.minimum(1e-5 / jnp.sqrt((g * g).sum()), 1)
        """,
    ),
    Trap(
        152,
        "w=f32[5]",
        """
        p = w.detach().clone().requires_grad_()
        (p ** 2).sum().backward()
        (p ** 3).sum().backward()
        return p.grad
        """,
        "p = lax.stop_gradient(w)\nreturn 2 * p + 3 * p ** 2",
        "p = lax.stop_gradient(w)\nreturn (2 * p + 3 * p ** 2) / 2",
    ),
    _rates(
        154,
        "CosineAnnealingLR(optimizer, 4)",
        "lambda i: 0.5 * (1 + math.cos(math.pi * i / 4)) / 2",
        "optax.cosine_decay_schedule(0.5, 4)",
    ),
    _rates(
        155,
        "StepLR(optimizer, 3, gamma=0.5)",
        "optax.exponential_decay(0.5, 3, 0.5, staircase=True)",
        "optax.exponential_decay(0.5, 3, 0.5)",
    ),
    _steps(
        157,
        "Adam([p], lr=0.1, maximize=True)",
        "optax.chain(optax.scale(-1.0), optax.adam(0.1))",
        "optax.adam(0.1)",
    ),
]
