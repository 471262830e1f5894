"""Shapes and activations: rows 32 to 60."""

from . import Trap

TRAPS = [
    Trap(32, "x=f32[6, 5]", "return x.split(2)", "return tuple(jnp.split(x, (2, 4)))", "return tuple(jnp.split(x, 2))"),
    Trap(
        33,
        "x=f32[7, 5]",
        "return x.chunk(3)",
        "return tuple(jnp.split(x, (3, 6)))",
        "return tuple(jnp.array_split(x, 3))",
    ),
    Trap(34, "x=f32[3]", "return x.repeat(2)", "return jnp.tile(x, 2)", "return jnp.repeat(x, 2)"),
    Trap(
        35,
        "x=f32[3, 1]",
        "return x.expand(-1, 4)",
        "return jnp.broadcast_to(x, (x.shape[0], 4))",
        "return jnp.broadcast_to(x, (-1, 4))",
    ),
    Trap(
        36,
        "x=f32[3, 4]",
        "return x.squeeze(1)",
        "return x.squeeze(1) if x.shape[1] == 1 else x",
        "return x.squeeze(1)",
    ),
    Trap(
        37,
        "x=f32[2, 3, 4]",
        "return x.transpose(1, 2)",
        "return jnp.swapaxes(x, 1, 2)",
        "return jnp.transpose(x, (1, 2, 0))",
    ),
    Trap(38, "x=f32[2, 3, 4]", "return x.mT", "return x.mT", "return x.T"),
    Trap(
        40,
        "x=f32[3], y=f32[4]",
        "return torch.meshgrid(x, y, indexing='ij')",
        "return tuple(jnp.meshgrid(x, y, indexing='ij'))",
        "return tuple(jnp.meshgrid(x, y))",
    ),
    Trap(
        41,
        "x=f32[3, 4]",
        "return x.sort(1)",
        "i = jnp.argsort(x, axis=1)\nreturn jnp.take_along_axis(x, i, 1), i",
        "return jnp.sort(x, axis=1)",
    ),
    Trap(43, "x=f32[3, 4]", "return x.cumsum(0)", "return jnp.cumsum(x, axis=0)", "return jnp.cumsum(x)"),
    Trap(
        44,
        "x=f32[3, 4]",
        "return F.pad(x, (1, 0, 2, 3))",
        "return jnp.pad(x, ((2, 3), (1, 0)))",
        "return jnp.pad(x, ((1, 0), (2, 3)))",
    ),
    Trap(45, "x=f32[3, 6]", "return F.pad(x, (-1, -2))", "return x[:, 1:-2]", "return jnp.pad(x, ((0, 0), (-1, -2)))"),
    Trap(
        46,
        "x=f32[3, 6]",
        "return F.pad(x, (2, 1), mode='reflect')",
        "return jnp.pad(x, ((0, 0), (2, 1)), mode='reflect')",
        "return jnp.pad(x, ((0, 0), (2, 1)), mode='symmetric')",
    ),
    Trap(
        47,
        "x=i64[6] < 5",
        "return F.one_hot(x, 5)",
        "return jax.nn.one_hot(x, 5).astype(jnp.int32)",
        "return jax.nn.one_hot(x, 5)",
    ),
    Trap(
        48,
        "x=0 <= i64[9] < 5",
        "return torch.bucketize(x, torch.arange(5))",
        "return jnp.searchsorted(jnp.arange(5), x, side='left')",
        "return jnp.digitize(x, jnp.arange(5))",
    ),
    Trap(
        49,
        "x=f32[3, 4]",
        "return F.gelu(x)",
        "return jax.nn.gelu(x, approximate=False)",
        "return jax.nn.gelu(x)",
    ),
    Trap(
        50,
        "x=f32[2, 3, 4]",
        "return F.softmax(x)",
        "return jax.nn.softmax(x, axis=0)",
        "return jax.nn.softmax(x)",
    ),
    Trap(
        51,
        "x=f32[4, 6]",
        "return F.leaky_relu(x, 0.2)",
        "return jnp.where(x > 0, x, 0.2 * x)",
        "return jax.nn.leaky_relu(x, 0.2)",
    ),
    Trap(52, "x=f32[4, 6]", "return F.relu(x)", "return jax.nn.relu(x)", "return jnp.maximum(x, 0)"),
    Trap(
        53,
        "x=f32[4, 6]",
        "return x.clamp(0, 1)",
        "return jnp.where((x >= 0) & (x <= 1), x, lax.stop_gradient(jnp.clip(x, 0, 1)))",
        "return jnp.clip(x, 0, 1)",
    ),
    Trap(
        54,
        "x=f32[4, 6]",
        "return (x * (x > 9)).norm(dim=1)",
        "y = x * (x > 9)\ns = (y * y).sum(1)\nreturn jnp.where(s > 0, jnp.sqrt(jnp.where(s > 0, s, 1)), 0)",
        "return jnp.sqrt(((x * (x > 9)) ** 2).sum(1))",
    ),
    Trap(
        55,
        "x=f32[4, 6]",
        "x = x + (x.sign() - x).detach()\nreturn x.max(dim=1).values",
        """
        x = x + lax.stop_gradient(jnp.sign(x) - x)
        return jnp.take_along_axis(x, x.argmax(1)[:, None], 1)[:, 0]
        """,
        "x = x + lax.stop_gradient(jnp.sign(x) - x)\nreturn x.max(axis=1)",
    ),
    Trap(
        57,
        "x=f32[4, 6]",
        "return torch.cdist(x, x)",
        """
        d = ((x[:, None] - x[None]) ** 2).sum(-1)
        return jnp.where(d > 0, jnp.sqrt(jnp.where(d > 0, d, 1)), 0)
        """,
        "return jnp.sqrt(((x[:, None] - x[None]) ** 2).sum(-1))",
    ),
    Trap(
        58,
        "x=f32[4, 6]",
        "return F.softplus(x * 9, beta=2.0)",
        "return jnp.where(x * 18 > 20, x * 9, jax.nn.softplus(x * 18) / 2)",
        "return jax.nn.softplus(x * 9)",
    ),
    Trap(
        59,
        "args=(3,), x=f32[2, 3, 5]",
        """
        class Net(nn.Module):
            def __init__(self, n):
                super().__init__()
                self.act = nn.PReLU(n)
            def forward(self, x):
                return self.act(x)
        """,
        """
        class PReLU(nnx.Module):
            def __init__(self, n):
                self.weight = nnx.Param(jnp.full(n, 0.25))
            def __call__(self, x):
                return jnp.where(x > 0, x, self.weight[:, None] * x)
        class Net(nnx.Module):
            def __init__(self, n, *, rngs=None):
                self.act = PReLU(n)
            def __call__(self, x):
                return self.act(x)
        """,
        """
        class Net(nnx.Module):
            def __init__(self, n, *, rngs=None):
                self.act = nnx.PReLU()
            def __call__(self, x):
                return self.act(x)
        """,
    ),
    Trap(
        60,
        "x=f32[2, 3, 4]",
        "return F.normalize(x)",
        "n = jnp.sqrt((x * x).sum(1, keepdims=True))\nreturn x / jnp.maximum(n, 1e-12)",
        "n = jnp.sqrt((x * x).sum(-1, keepdims=True))\nreturn x / jnp.maximum(n, 1e-12)",
    ),
]
