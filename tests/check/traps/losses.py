"""Losses, reductions, linear algebra, overloads: rows 90 to 99, 124 to 133, 162 to 169."""

from . import Trap

NLL = "l = -jnp.take_along_axis(jax.nn.log_softmax(x), y[:, None], 1)[:, 0]\n"

TRAPS = [
    Trap(
        90,
        "x=f32[5, 4], y=i64[5] < 4",
        "y = torch.where(y == 0, -100, y)\nreturn F.cross_entropy(x, y)",
        f"""
        k = y != 0
        {NLL.strip()}
        return jnp.where(k, l, 0.0).sum() / k.sum()
        """,
        f"""
        k = y != 0
        {NLL.strip()}
        return jnp.where(k, l, 0.0).mean()
        """,
    ),
    Trap(
        91,
        "x=f32[5, 4], y=i64[5] < 4, w=0.1 <= f32[4] < 2",
        "return F.cross_entropy(x, y, weight=w)",
        f"{NLL}return (w[y] * l).sum() / w[y].sum()",
        f"{NLL}return (w[y] * l).mean()",
    ),
    Trap(
        92,
        "x=f32[5, 4, 3], y=i64[5, 3] < 4",
        "return F.cross_entropy(x, y)",
        "return optax.softmax_cross_entropy_with_integer_labels(jnp.moveaxis(x, 1, -1), y).mean()",
        "return optax.softmax_cross_entropy_with_integer_labels(x.reshape(5, 3, 4), y).mean()",
    ),
    Trap(
        93,
        "x=f32[5, 4], y=f32[5, 4]",
        "return F.mse_loss(x, y)",
        "return optax.squared_error(x, y).mean()",
        "return optax.squared_error(x, y)",
    ),
    Trap(
        94,
        "x=f32[5, 4], y=f32[5, 4]",
        "return F.mse_loss(x, y)",
        "return optax.squared_error(x, y).mean()",
        "return optax.l2_loss(x, y).mean()",
    ),
    Trap(
        95,
        "x=f32[5, 4], y=f32[5, 4]",
        "return F.smooth_l1_loss(x, y, beta=0.5)",
        "return optax.huber_loss(x, y, delta=0.5).mean() / 0.5",
        "return optax.huber_loss(x, y, delta=0.5).mean()",
    ),
    Trap(
        96,
        "x=f32[5, 4]",
        "p = (x > 0).float()\nreturn F.binary_cross_entropy(p, 1 - p)",
        """
        p = (x > 0).astype(x.dtype)
        a, b = jnp.maximum(jnp.log(p), -100), jnp.maximum(jnp.log1p(-p), -100)
        return -((1 - p) * a + p * b).mean()
        """,
        "p = (x > 0).astype(x.dtype)\nreturn -((1 - p) * jnp.log(p) + p * jnp.log1p(-p)).mean()",
    ),
    Trap(
        97,
        "x=f32[5, 4], y=0.1 <= f32[5, 4] < 1",
        "return F.kl_div(x, y, reduction='mean')",
        "return (y * (jnp.log(y) - x)).mean()",
        "return optax.kl_divergence(x, y).mean()",
    ),
    Trap(
        98,
        "x=f32[2, 3, 4], y=f32[2, 3, 4]",
        "return F.cosine_similarity(x, y)",
        """
        n = jnp.sqrt((x * x).sum(1)) * jnp.sqrt((y * y).sum(1))
        return (x * y).sum(1) / jnp.maximum(n, 1e-8)
        """,
        "return optax.cosine_similarity(x, y)",
    ),
    Trap(
        99,
        "x=f32[4, 3], y=f32[4, 3]",
        "return F.pairwise_distance(x, y)",
        "return jnp.linalg.norm(x - y + 1e-6, axis=-1)",
        "return jnp.linalg.norm(x - y, axis=-1)",
    ),
    Trap(124, "x=f32[4, 5]", "return x.std(1)", "return x.std(1, ddof=1)", "return x.std(1)"),
    Trap(
        125,
        "x=f32[4, 6]",
        "return x.median(dim=1).values",
        "return jnp.sort(x, axis=1)[:, 2]",
        "return jnp.median(x, axis=1)",
    ),
    Trap(
        127,
        "x=f32[7, 3]",
        "return x.topk(2, dim=0, largest=False).values",
        "return -lax.top_k(-x.T, 2)[0].T",
        "return lax.top_k(x.T, 2)[0].T",
    ),
    Trap(
        128,
        "x=i64[9] < 3",
        "return torch.argsort(x, descending=True, stable=True)",
        "return jnp.argsort(x, descending=True)",
        "return jnp.flip(jnp.argsort(x))",
    ),
    Trap(
        129,
        "x=f32[4, 3]",
        "return torch.norm(x, p=2)",
        "return jnp.sqrt((x * x).sum())",
        "return jnp.linalg.norm(x, 2)",
    ),
    Trap(
        131,
        "x=f32[4, 3]",
        "u, s, v = torch.svd(x)\nreturn u.abs(), s, v.abs()",
        "u, s, vh = jnp.linalg.svd(x, full_matrices=False)\nreturn jnp.abs(u), s, jnp.abs(vh.T)",
        "u, s, vh = jnp.linalg.svd(x, full_matrices=False)\nreturn jnp.abs(u), s, jnp.abs(vh)",
    ),
    Trap(
        133,
        "x=f32[6]",
        "return x * torch.hann_window(6)",
        "return x * jnp.hanning(7)[:-1]",
        "return x * jnp.hanning(6)",
    ),
    Trap(
        162,
        "x=f32[4, 3]",
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.randn(3, 3))
            def forward(self, x):
                return F.linear(x, self.weight)
        """,
        """
        class Net(nnx.Module):
            def __init__(self, *, rngs):
                self.weight = nnx.Param(jax.random.normal(rngs.params(), (3, 3)))
            def __call__(self, x):
                return x @ self.weight.T
        """,
        """
        class Net(nnx.Module):
            def __init__(self, *, rngs):
                self.weight = nnx.Param(jax.random.normal(rngs.params(), (3, 3)))
            def __call__(self, x):
                return x @ self.weight[...]
        """,
    ),
    Trap(
        163,
        "x=f32[4], y=f32[4]",
        "return torch.max(x, y)",
        "return jnp.where(x > y, x, jnp.where(y > x, y, (x + y) / 2))",
        "return jnp.max(x, y)",
    ),
    Trap(
        164,
        "x=f32[4]",
        "return x.sum() + torch.tensor([1, 2]).sum()",
        "return x.sum() + jnp.array([1, 2]).sum()",
        "return x.sum() + jnp.sum([1, 2])",
    ),
    Trap(165, "x=f32[4, 3]", "return x.sum(dim=1)", "return x.sum(axis=1)", "return x.sum(dim=1)"),
    Trap(
        169,
        "x=f32[4]",
        "return x.repeat_interleave(torch.tensor([1, 0, 2, 1]))",
        "return jnp.repeat(x, jnp.array([1, 0, 2, 1]), total_repeat_length=4)",
        "return jnp.repeat(x, (x * 0 + jnp.array([1, 0, 2, 1])).astype(int))",
    ),
]
