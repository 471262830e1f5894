"""Precision: rows 1, 3, 4, 12 to 15, 170. Most of these show only in the user's precision, not in float64."""

from . import Trap

_X64 = "jax.config.update('jax_enable_x64', True)\n"

TRAPS = [
    Trap(
        1,
        "x=f32[4, 30], w=f32[30, 5]",
        "return x @ w",
        "return x @ w",
        "return jnp.matmul(x.astype(jnp.bfloat16), w.astype(jnp.bfloat16), preferred_element_type=x.dtype)",
    ),
    Trap(
        1,
        "x=f32[4, 30], w=f32[30, 5]",
        "return x @ w",
        "return jnp.matmul(x, w, precision='highest')",
        "return (x.astype(jnp.float16) @ w.astype(jnp.float16)).astype(jnp.float32)",
    ),
    Trap(
        1,
        "x=f32[6]",
        "return x / (x > 0).sum()",
        "return x / (x > 0).sum()",
        "return x / (x > 0).sum().astype(jnp.bfloat16)",
    ),
    Trap(
        3,
        "x=f32[4]",
        "return x.double() * 0.1",
        f"{_X64}def f(x):\n    return x.astype(jnp.float64) * 0.1",
        f"{_X64}def f(x):\n    return x.astype(jnp.float32) * 0.1",
    ),
    Trap(
        3,
        "x=f32[4]",
        "return ((x.double() + 1e-9) - x.double()) * 1e9",
        f"{_X64}def f(x):\n    return ((x.astype(jnp.float64) + 1e-9) - x.astype(jnp.float64)) * 1e9",
        "return ((x.astype(jnp.float64) + 1e-9) - x.astype(jnp.float64)) * 1e9",
    ),
    Trap(
        4,
        "x=3000000000 <= i64[5] < 4000000000",
        "return x % 1000",
        f"{_X64}def f(x):\n    return x % 1000",
        "return x % 1000",
    ),
    Trap(
        12,
        "x=f32[7]",
        "return (x * 500).int().to(torch.uint8)",
        "return (x * 500).astype(jnp.int32).astype(jnp.uint8)",
        "return (x * 500).astype(jnp.uint8)",
    ),
    Trap(13, "x=f32[7]", "return (x * 1e-40) > 0", "return x > 0", "return (x * 1e-40) > 0"),
    Trap(13, "x=f32[7]", "return x * 1e-40, x", "return x * 1e-40, x", "return x * 1e-40, jnp.sign(x)"),
    Trap(
        14,
        "x=bf16[3, 9]",
        "return F.softmax(x * 16, dim=-1)",
        "return jax.nn.softmax((x * 16).astype(jnp.float32), axis=-1).astype(x.dtype)",
        "return jax.nn.softmax(x * 16, axis=-1)",
    ),
    Trap(
        15,
        "z=c64[5]",
        "z = z.detach().requires_grad_()\n(z ** 2).real.sum().backward()\nreturn z.grad",
        "return jnp.conj(jax.grad(lambda z: (z ** 2).real.sum())(lax.stop_gradient(z)))",
        "return jax.grad(lambda z: (z ** 2).real.sum())(lax.stop_gradient(z))",
    ),
    Trap(
        170,
        "x=100 <= f32[20000] < 101",
        "return x.cumsum(0)",
        "return jnp.cumsum(x)",
        "return jnp.cumsum(x.astype(jnp.bfloat16)).astype(x.dtype)",
    ),
    Trap(
        170,
        "x=100 <= f32[20000] < 101",
        "return x.unfold(0, 4, 1).mean(-1)",
        "return (x[:-3] + x[1:-2] + x[2:-1] + x[3:]) / 4",
        "s = jnp.cumsum(jnp.pad(x, (1, 0)))\nreturn (s[4:] - s[:-4]) / 4",
    ),
]
