"""Code that relies on an error: rows 7, 8, 16 to 19, 39, 132, 167. JAX computes something where torch raises."""

from . import Trap


def _guarded(condition: str, then: str) -> str:
    """A right conversion: values are looked at where there are any, which is outside ``jit``."""
    return f"if {condition}:\n    raise ValueError('as torch does')\n{then}"


def _concrete(name: str, condition: str, then: str) -> str:
    return _guarded(f"not isinstance({name}, jax.core.Tracer) and bool({condition})", then)


TRAPS = [
    Trap(
        7,
        'x=f32[4], raises={"x": i64[4] < 9}',
        "return x.mean()",
        _guarded("not jnp.issubdtype(x.dtype, jnp.inexact)", "return x.mean()"),
        "return x.mean()",
    ),
    Trap(
        8,
        'x=-9 <= i64[4] < 9, y=1 <= i64[4] < 5, raises={"y": 0 <= i64[4] < 1}',
        "return x // y",
        _concrete("y", "(y == 0).any()", "return x // y"),
        "return x // y",
    ),
    Trap(
        16,
        'x=f32[5], i=i64[3] < 5, raises={"i": 5 <= i64[3] < 9}',
        "return x[i] * 2",
        _concrete("i", "(i >= 5).any()", "return x[i] * 2"),
        "return x[i] * 2",
    ),
    Trap(
        17,
        'x=f32[5, 3], i=i64[4] < 5, raises={"i": 5 <= i64[4] < 9}',
        "return x.index_select(0, i)",
        _concrete("i", "(i >= 5).any()", "return jnp.take(x, i, axis=0)"),
        "return jnp.take(x, i, axis=0)",
    ),
    Trap(
        17,
        "x=f32[5, 3], i=i64[4] < 9",
        "return x.index_select(0, i.clamp(max=4))",
        "return jnp.take(x, i, axis=0, mode='clip')",
        "return jnp.take(x, i, axis=0)",
    ),
    Trap(
        18,
        'x=f32[5], i=0 <= i64[1] < 5, raises={"i": 5 <= i64[1] < 9}',
        "y = x.clone()\ny[i] = 7.0\nreturn y",
        _concrete("i", "(i >= 5).any()", "return x.at[i].set(7.0)"),
        "return x.at[i].set(7.0)",
    ),
    Trap(
        19,
        'x=f32[3, 5], i=i64[3, 2] < 5, raises={"i": -5 <= i64[3, 2] < 0}',
        "return x.gather(1, i)",
        _concrete("i", "(i < 0).any()", "return jnp.take_along_axis(x, i, axis=1)"),
        "return jnp.take_along_axis(x, i, axis=1)",
    ),
    Trap(
        39,
        'x=f32[1, 4], raises={"x": f32[3, 4]}',
        "return x.t().view(-1)",
        _guarded("min(x.shape) > 1", "return x.T.reshape(-1)"),
        "return x.T.reshape(-1)",
    ),
    Trap(
        132,
        'x=f32[3, 3], scale=1.0, raises={"scale": 0.0}',
        "return torch.linalg.inv(x * scale)",
        "y = x * scale\n" + _concrete("y", "jnp.linalg.det(y) == 0", "return jnp.linalg.inv(y)"),
        "return jnp.linalg.inv(x * scale)",
    ),
    Trap(
        132,
        'x=f32[3, 3], shift=9.0, raises={"shift": -9.0}',
        "return torch.linalg.cholesky(x @ x.T + shift * torch.eye(3))",
        "y = jnp.linalg.cholesky(x @ x.T + shift * jnp.eye(3))\n" + _concrete("y", "jnp.isnan(y).any()", "return y"),
        "return jnp.linalg.cholesky(x @ x.T + shift * jnp.eye(3))",
    ),
    Trap(
        167,
        'x=f32[7], step=2, raises={"step": -1}',
        "return x[::step]",
        _guarded("step < 1", "return x[::step]"),
        "return x[::step]",
    ),
]
