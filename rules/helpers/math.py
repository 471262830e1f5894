"""Elementwise functions and norms whose gradients PyTorch defines at points where jax.numpy's differ."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from flax import nnx


def absolute(x: jax.Array) -> jax.Array:
    """|x| as `torch.abs`: the gradient at 0 is 0, where that of jnp.abs is 1."""
    return jnp.where(x == 0, 0, jnp.abs(x))


def angle_of(z: jax.Array) -> jax.Array:
    """Angle of complex numbers as `torch.angle`: the gradient at 0 is 0, where that of jnp.angle is NaN."""
    zero = z == 0
    at_zero = jax.lax.stop_gradient(jnp.angle(z)) if jnp.iscomplexobj(z) else 0.0
    return jnp.where(zero, at_zero, jnp.angle(jnp.where(zero, 1, z)))


def clamp(x: jax.Array, min: jax.Array | float | None = None, max: jax.Array | float | None = None) -> jax.Array:
    """Limits x to [min, max] as `torch.clamp`: values on a bound keep their gradient, where jnp.clip halves it."""
    if min is not None:
        x = jnp.where(x < min, min, x)
    if max is not None:
        x = jnp.where(x > max, max, x)
    return x


def clamp_to(x: jax.Array, min: jax.Array | None = None, max: jax.Array | None = None) -> jax.Array:
    """`clamp` with arrays for bounds, of which a NaN makes NaN, as in `torch.clamp`; a lower one that is the upper
    has no gradient.
    """
    if min is not None:
        low = min if max is None else jnp.where(min == max, jax.lax.stop_gradient(min), min)
        x = jnp.where((x < min) | jnp.isnan(min), low, x)
    if max is not None:
        x = jnp.where((x > max) | jnp.isnan(max), max, x)
    return x


def power(base: jax.Array, exponent: jax.Array) -> jax.Array:
    """`torch.pow`: the base has no gradient where the exponent is 0; in JAX that may be NaN."""
    constant = jax.lax.stop_gradient(jnp.where(base == 0, 1, base))
    return jnp.where(exponent == 0, constant, base) ** exponent


def arctan2(y: jax.Array, x: jax.Array) -> jax.Array:
    """The angle of (x, y) as `torch.atan2`: the gradient at (0, 0) is 0, where that of jnp.arctan2 is NaN."""
    zero = (x == 0) & (y == 0)
    return jnp.where(zero, jax.lax.stop_gradient(jnp.arctan2(y, x)), jnp.arctan2(y, jnp.where(zero, 1, x)))


def copysign(x: jax.Array, y: jax.Array | float) -> jax.Array:
    """|x| with the sign of y as `torch.copysign`: the gradient at 0 is 0, where that of jnp.copysign is 1 or -1."""
    return jnp.where(x == 0, jax.lax.stop_gradient(jnp.copysign(x, y)), jnp.copysign(x, y))


def fmax(x: jax.Array, y: jax.Array) -> jax.Array:
    """The larger, or what is no NaN, as `torch.fmax`: of equal values the first has the gradient."""
    return jnp.where((x >= y) | jnp.isnan(y), x, y)


def fmin(x: jax.Array, y: jax.Array) -> jax.Array:
    """The smaller, or what is no NaN, as `torch.fmin`: of equal values the first has the gradient."""
    return jnp.where((x <= y) | jnp.isnan(y), x, y)


def trunc_divide(x: jax.Array, y: jax.Array | float) -> jax.Array:
    """Divides and rounds towards zero, integers exactly, as `torch.div(x, y, rounding_mode="trunc")`."""
    if jnp.issubdtype(jnp.result_type(x, y), jnp.integer):
        return jnp.sign(x) * jnp.sign(y) * (jnp.abs(x) // jnp.abs(y))
    return jnp.trunc(x / y)


def standard_deviation(
    x: jax.Array, axis: int | Sequence[int] | None = None, ddof: float = 1, keepdims: bool = False
) -> jax.Array:
    """Standard deviation as `torch.std`: the gradient of equal values is 0, where that of jnp.std is NaN."""
    variance = jnp.var(x, axis=axis, ddof=ddof, keepdims=keepdims)
    return jnp.where(variance == 0, 0, jnp.sqrt(jnp.where(variance == 0, 1, variance)))


def euclidean_norm(x: jax.Array, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> jax.Array:
    """Square root of the sum of squares, as `torch.norm`; over `axis`, or over all of x.

    The gradient of a zero vector is 0, where that of jnp.linalg.norm is NaN.
    """
    total = jnp.sum(jnp.square(jnp.abs(x)), axis=axis, keepdims=keepdims)
    return jnp.where(total == 0, 0, jnp.sqrt(jnp.where(total == 0, 1, total)))


def vector_norm(
    x: jax.Array, ord: float | str = 2, axis: int | Sequence[int] | None = None, keepdims: bool = False
) -> jax.Array:
    """The `ord`-norm of x over `axis` as one vector (of all of x for None), as `torch.linalg.vector_norm`.

    The gradient of zeros is 0. "fro" is the norm of order 2.
    """
    order = 2.0 if ord == "fro" else float(ord)
    if order == 2 and (axis is None or isinstance(axis, int)):
        return optax.safe_norm(x, 0, axis=axis, keepdims=keepdims)
    nonzero = jnp.asarray(x) != 0  # of a parameter, too: a Variable is compared as a whole
    if order == 0:
        return jnp.sum(nonzero, axis=axis, keepdims=keepdims).astype(jnp.abs(x).dtype)
    size = jnp.where(nonzero, jnp.abs(x), 0)
    if order == float("inf"):
        return jnp.max(size, axis=axis, keepdims=keepdims)
    if order == float("-inf"):
        return jnp.min(size, axis=axis, keepdims=keepdims)
    powers = jnp.where(nonzero, jnp.where(nonzero, size, 1) ** order, 0.0 if order > 0 else float("inf"))
    total = jnp.sum(powers, axis=axis, keepdims=keepdims)
    if order == 1:
        return total
    regular = (total != 0) & jnp.isfinite(total)
    return jnp.where(regular, jnp.where(regular, total, 1) ** (1 / order), total if order > 0 else 1 / total)


def norm_of_order(
    x: jax.Array, ord: float | str, axis: int | Sequence[int] | None = None, keepdims: bool = False
) -> jax.Array:
    """`torch.linalg.norm` with an order: of vectors over one axis, of matrices over two.

    The gradient of zeros is 0, but where the order is 2, -2 or "nuc" and asks for singular values.
    """
    axes = tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    if len(axes) < 2:
        return vector_norm(x, ord, axes or None, keepdims)
    if ord == "fro":
        return euclidean_norm(x, axes, keepdims)
    if ord in ("nuc", 2, -2):
        return jnp.linalg.norm(x, ord, axis=axes, keepdims=keepdims)
    (rows, columns), order = (one % x.ndim for one in axes), float(ord)
    added, taken = (rows, columns) if abs(order) == 1 else (columns, rows)
    sums = jnp.sum(absolute(x), axis=added, keepdims=True)
    norm = jnp.max(sums, taken, keepdims=True, initial=0) if order > 0 else jnp.min(sums, taken, keepdims=True)
    return norm if keepdims else jnp.squeeze(norm, (rows, columns))


def cdist(x1: jax.Array, x2: jax.Array, p: float = 2.0) -> jax.Array:
    """Distances between all rows of x1 (..., P, M) and x2 (..., R, M), as `torch.cdist`: (..., P, R).

    The gradient of equal rows is 0.
    """
    return vector_norm(x1[..., :, None, :] - x2[..., None, :, :], p, axis=-1)


def pdist(x: jax.Array, p: float = 2.0) -> jax.Array:
    """Distances between the rows of x of which one stands above the other, as `F.pdist`, in one row."""
    above, below = jnp.triu_indices(x.shape[0], 1)
    return vector_norm(x[above] - x[below], p, axis=-1)


def matrix_exp(x: jax.Array) -> jax.Array:
    """Exponential of square matrices (..., n, n), as `torch.linalg.matrix_exp`.

    jax.scipy.linalg.expm halves a matrix once less than its approximant needs, so that up to 0.5 % is wrong in float32;
    here it gets matrices of norm 3 at most, which are squared up again.
    """
    norm = jnp.max(jnp.sum(jnp.abs(jax.lax.stop_gradient(x)), axis=-2, keepdims=True), axis=-1, keepdims=True)
    halvings = jnp.clip(jnp.ceil(jnp.log2(norm / 3)), 0, 16)

    def squared(i: int, y: jax.Array) -> jax.Array:
        return jnp.where(i < halvings, y @ y, y)

    return jax.lax.fori_loop(0, 16, squared, jax.scipy.linalg.expm(x / 2**halvings))


def affine(x: jax.Array, weight: jax.Array, bias: jax.Array | None = None) -> jax.Array:
    """`F.linear`: x @ weight.T + bias, with weight (out, in) in PyTorch's layout."""
    y = x @ weight.T
    return y if bias is None else y + bias


def gumbel_softmax(
    logits: jax.Array, tau: float = 1.0, hard: bool = False, axis: int = -1, *, rngs: nnx.Rngs
) -> jax.Array:
    """`F.gumbel_softmax`: a sample of the relaxed categorical distribution, one-hot with its gradient where `hard`."""
    noise = jax.random.gumbel(rngs(), logits.shape, logits.dtype)
    soft = jax.nn.softmax((logits + noise) / tau, axis)
    if not hard:
        return soft
    one_hot = jax.nn.one_hot(jnp.argmax(soft, axis), soft.shape[axis], dtype=soft.dtype, axis=axis)
    return one_hot + soft - jax.lax.stop_gradient(soft)


def of_triangle(x: jax.Array, UPLO: str = "L") -> jax.Array:
    """The symmetric (Hermitian) matrix with one triangle of x, which is all that `torch.linalg.eigh` reads.

    jnp.linalg.eigh takes the mean of both. The gradient is that of the matrix, for every element of x.
    """
    lower = jnp.tri(x.shape[-1], dtype=bool)
    whole = jnp.where(lower if UPLO == "L" else lower.T, x, x.conj().mT)
    return x + jax.lax.stop_gradient(whole - x)


class Eigen(NamedTuple):
    """What `torch.linalg.eig` returns."""

    eigenvalues: jax.Array
    eigenvectors: jax.Array


def eig(x: jax.Array) -> Eigen:
    """`torch.linalg.eig`: vectors of length 1, with gradients for what doesn't ask for their phases."""
    values, vectors = jax.lax.linalg.eig(x, compute_left_eigenvectors=False, enable_eigvec_derivs=True)
    return Eigen(values, vectors / jnp.linalg.norm(vectors, axis=-2, keepdims=True))


def full_svd(x: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """`torch.linalg.svd`, whose gradient is that of the thin matrices, the only one that JAX has."""
    u, s, vh = jnp.linalg.svd(x, full_matrices=False)
    if x.shape[-2] == x.shape[-1]:
        return u, s, vh
    full_u, _, full_vh = jnp.linalg.svd(jax.lax.stop_gradient(x))
    n = s.shape[-1]
    return jnp.concatenate([u, full_u[..., n:]], axis=-1), s, jnp.concatenate([vh, full_vh[..., n:, :]], axis=-2)


class SVD(NamedTuple):
    """What `torch.svd` returns: V, where jnp.linalg.svd returns its conjugate transpose."""

    U: jax.Array
    S: jax.Array
    V: jax.Array


def svd_with_v(x: jax.Array, full_matrices: bool = False) -> SVD:
    """`torch.svd`: x = U @ diag(S) @ V^H, thin unless `full_matrices`."""
    u, s, vh = full_svd(x) if full_matrices else jnp.linalg.svd(x, full_matrices=False)
    return SVD(u, s, vh.conj().mT)


def minimum_of(dtype: jnp.dtype) -> float | int:
    """The least value of a dtype: -inf, or the least integer."""
    return -jnp.inf if jnp.issubdtype(dtype, jnp.inexact) else int(jnp.iinfo(dtype).min)


def maximum_of(dtype: jnp.dtype) -> float | int:
    """The greatest value of a dtype: inf, or the greatest integer."""
    return jnp.inf if jnp.issubdtype(dtype, jnp.inexact) else int(jnp.iinfo(dtype).max)


def renorm(x: jax.Array, p: float, axis: int, maxnorm: float) -> jax.Array:
    """Scales the slices of x along `axis` whose p-norm is above `maxnorm` down to it, as `torch.renorm`."""
    others = tuple(i for i in range(x.ndim) if i != axis % x.ndim)
    norm = vector_norm(x, p, others, keepdims=True)
    return x * jnp.where(norm > maxnorm, maxnorm / (norm + 1e-7), 1)


def cumulative_trapezoid(y: jax.Array, x: jax.Array | None = None, dx: Any = None, axis: int = -1) -> jax.Array:
    """`torch.cumulative_trapezoid`: the running integral of y along an axis, by its coordinates x or its step."""
    y = jnp.moveaxis(y, axis, -1)
    areas = (y[..., 1:] + y[..., :-1]) / 2
    if x is not None:
        areas = areas * jnp.diff(x if x.ndim == 1 else jnp.moveaxis(x, axis, -1))
    areas = areas if dx is None else areas * dx
    return jnp.moveaxis(jnp.cumsum(areas, axis=-1), -1, axis)


def gradient(x: jax.Array, spacing: Any = 1, axis: int | Sequence[int] | None = None, edge_order: int = 1) -> list[Any]:
    """`torch.gradient`: slopes along each axis; `spacing` is one number, or a number or coordinates for each axis."""
    axes = range(x.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    spacing = 1 if spacing is None else spacing
    spacings = spacing if isinstance(spacing, list | tuple) else [spacing] * len(axes)
    return [slopes(x, step, one, edge_order) for step, one in zip(spacings, axes, strict=True)]


def slopes(x: jax.Array, spacing: Any, axis: int, edge_order: int) -> jax.Array:
    """Slopes along an axis by differences of second order, at the ends of order `edge_order`."""
    x = jnp.moveaxis(x, axis, -1)
    steps = jnp.diff(spacing) if jnp.ndim(spacing) else jnp.full(x.shape[-1] - 1, spacing, jnp.result_type(x, 1.0))
    rates = jnp.diff(x) / steps
    before, after = steps[:-1], steps[1:]
    inner = (rates[..., :-1] * after + rates[..., 1:] * before) / (before + after)
    first, last = rates[..., :1], rates[..., -1:]
    if edge_order == 2:
        bent = (rates[..., 1:] - rates[..., :-1]) / (before + after)
        first, last = first - bent[..., :1] * steps[:1], last + bent[..., -1:] * steps[-1:]
    return jnp.moveaxis(jnp.concatenate((first, inner, last), axis=-1), -1, axis)
