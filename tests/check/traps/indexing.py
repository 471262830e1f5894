"""Numerics, indexing, in-place changes: rows 4 to 31."""

from . import Trap

TRAPS = [
    Trap(
        5,
        "x=1500000000 <= i32[3] < 2000000000",
        "return x.sum().float() / 7",
        "return jnp.sum(x.astype(jnp.float32)) / 7",
        "return jnp.sum(x).astype(jnp.float32) / 7",
    ),
    Trap(
        6,
        "x=f16[3, 4], scale=f32",
        "return x * scale",
        "return x * scale.astype(x.dtype)",
        "return x * scale",
    ),
    Trap(9, "x=-9 <= i64[7] < 9", "return torch.fmod(x, 4)", "return jnp.fmod(x, 4)", "return jnp.remainder(x, 4)"),
    Trap(9, "x=-9 <= i64[7] < 9", "return x % 4", "return x % 4", "return lax.rem(x, jnp.full_like(x, 4))"),
    Trap(
        10,
        "x=-9 <= i64[7] < 9",
        "return torch.div(x, 4, rounding_mode='trunc')",
        "return lax.div(x, jnp.full_like(x, 4))",
        "return x // 4",
    ),
    Trap(
        11,
        "x=f32[30]",
        "return torch.sign((x / x.abs()).detach())",
        "y = lax.stop_gradient(x / jnp.abs(x))\nreturn jnp.where(jnp.isnan(y), 0.0, jnp.sign(y))",
        "return jnp.sign(lax.stop_gradient(x / jnp.abs(x)))",
    ),
    Trap(
        20,
        "x=f32[4, 5]",
        "y = x.clone()\ny[0] = 1.0\nreturn y",
        "return x.at[0].set(1.0)",
        "y = x\ny[0] = 1.0\nreturn y",
    ),
    Trap(
        21,
        "x=f32[4, 5]",
        "x = x * 2\ny = x[0]\ny.add_(1)\nreturn x",
        "x = x * 2\nx = x.at[0].add(1)\nreturn x",
        "x = x * 2\ny = x[0]\ny = y + 1\nreturn x",
    ),
    Trap(
        22,
        "x=f32[4, 5]",
        "h = x * 1\nF.relu_(h)\nreturn h + 1",
        "h = x * 1\nh = jax.nn.relu(h)\nreturn h + 1",
        "h = x * 1\njax.nn.relu(h)\nreturn h + 1",
    ),
    Trap(
        23,
        "x=i64[5] < 9, v=1 <= i64[4] < 9",
        "i = torch.tensor([0, 2, 2, 3])\nx = x.clone()\nx[i] += v[:1]\nreturn x",
        "i = jnp.array([0, 2, 2, 3])\nreturn x.at[i].set(x[i] + v[:1])",
        "i = jnp.array([0, 2, 2, 3])\nreturn x.at[i].add(v[:1])",
    ),
    Trap(
        24,
        "x=f32[3, 4], v=f32[3, 2]",
        "i = torch.tensor([[0, 1], [1, 1], [3, 0]])\nreturn x.scatter_add(1, i, v)",
        "i = jnp.array([[0, 1], [1, 1], [3, 0]])\nreturn x.at[jnp.arange(3)[:, None], i].add(v)",
        "i = jnp.array([[0, 1], [1, 1], [3, 0]])\nreturn x.at[jnp.arange(3)[:, None], i].set(v)",
    ),
    Trap(
        25,
        "x=f32[4], v=f32[6]",
        "i = torch.tensor([0, 1, 1, 3, 0, 3])\nreturn x.scatter_reduce(0, i, v, 'amax')",
        "i = jnp.array([0, 1, 1, 3, 0, 3])\nreturn x.at[i].max(v)",
        "i = jnp.array([0, 1, 1, 3, 0, 3])\nreturn jax.ops.segment_max(v, i, 4)",
    ),
    Trap(
        26,
        "x=f32[4, 5]",
        "return x[x > 0].sum()",
        "return jnp.where(x > 0, x, 0.0).sum()",
        "return x[x > 0].sum()",
    ),
    Trap(
        27,
        "x=f32[4, 5]",
        "if x.sum() > 0:\n    return x * 2\nreturn x * 3",
        "return jnp.where(x.sum() > 0, x * 2, x * 3)",
        "if x.sum() > 0:\n    return x * 2\nreturn x * 3",
    ),
    Trap(
        28,
        "x=f32[4, 5]",
        "return x * x.max().item()",
        "return x * lax.stop_gradient(x.max())",
        "return x * float(x.max())",
    ),
    Trap(
        29,
        "x=f32[2, 3]",
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("steps", torch.zeros(()))
            def forward(self, x):
                self.steps += 1
                return x * self.steps
        """,
        """
        class Buffer(nnx.Variable):
            pass
        class Net(nnx.Module):
            def __init__(self, *, rngs=None):
                self.steps = Buffer(jnp.zeros(()))
            def __call__(self, x):
                self.steps[...] = self.steps[...] + 1
                return x * self.steps[...]
        """,
        """
        class Buffer(nnx.Variable):
            pass
        class Net(nnx.Module):
            def __init__(self, *, rngs=None):
                self.steps = Buffer(jnp.zeros(()))
            def __call__(self, x):
                steps = self.steps[...] + 1
                return x * steps
        """,
    ),
    Trap(30, "x=f32[4, 5]", "return x * x.detach()", "return x * lax.stop_gradient(x)", "return x * jnp.asarray(x)"),
    Trap(
        31,
        "x=f32[4, 5]",
        "with torch.no_grad():\n    scale = x.abs().max()\nreturn x / scale",
        "scale = lax.stop_gradient(jnp.abs(x).max())\nreturn x / scale",
        "scale = jnp.abs(x).max()\nreturn x / scale",
    ),
]
