"""Mutants that are no mistakes: the same computation, shown by equal jaxprs, or said why.

A jaxpr is the list of operations that JAX would run. Where the mutant has the same ones as the right conversion, with
the same constants, for an output in evaluation and in training mode, no input of that shape can tell them apart.
"""

from __future__ import annotations

import ast
from typing import Any

import jax
import numpy as np
from flax import nnx

from t2j_lsp.check.inputs import ArraySpec, comments_for, draw, map_values

from .mutants_objects import Subject


def same_computation(subject: Subject, text: str) -> bool:
    """Whether a mutated text does what the right conversion does."""
    try:
        return _jaxprs(subject, text) == _jaxprs(subject, subject.converted)
    except Exception:  # noqa: BLE001 - a mutant that raises is another computation
        return False


def _jaxprs(subject: Subject, text: str) -> list[Any]:
    namespace: dict[str, Any] = {"__name__": "mutant"}
    exec(compile(text, str(subject), "exec"), namespace)
    source = subject.path.read_text()
    node = next(n for n in ast.parse(source).body if getattr(n, "name", "") == subject.name)
    entries = comments_for(source, node)  # type: ignore[arg-type]
    args = entries.pop("args", ())
    rng = np.random.default_rng(0)
    inputs = map_values(entries, lambda e: draw(e, rng) if isinstance(e, ArraySpec) else e)
    target = namespace[subject.name]
    if not isinstance(target, type):
        return [_described(jax.make_jaxpr(lambda **given: target(**given))(**inputs))]
    model = target(*args, rngs=nnx.Rngs(0))
    state = [np.asarray(v) for v in jax.tree.leaves(nnx.state(model, nnx.Not(nnx.RngKey)))]
    traced: list[Any] = [a.tobytes() for a in state]
    for mode in (model.train, model.eval):
        mode()
        graph, values = nnx.split(model)

        def call(values: Any, inputs: Any, graph: Any = graph) -> Any:
            merged = nnx.merge(graph, values)
            output = merged(**inputs)
            return output, nnx.state(merged)

        traced.append(_described(jax.make_jaxpr(call)(values, inputs)))
    return traced


def _described(jaxpr: Any) -> Any:
    return str(jaxpr.jaxpr), [np.asarray(c).tobytes() for c in jaxpr.consts]


_SCALAR = "a matrix product with a scaled factor is the scaled product"
_CONSTANT = "no gradient flows through it in any case"
_EVEN = "only its absolute value or its square is used"
_CLAMPED = "JAX takes the last element for an index beyond the end"
_CENTRED = "the other factor of the correlation is centred, so a shift of this one is lost"
_COUNT = "whole numbers, exact in both types and promoted when used"

EXPLAINED: dict[tuple[str, str], str] = {
    (
        "attention.SelfAttention",
        "q @ k.swapaxes(-2, -1) * self.scale -> q @ (k.swapaxes(-2, -1) * self.scale)",
    ): _SCALAR,
    (
        "attention.masked_attention",
        "q @ k.swapaxes(-2, -1) / math.sqrt(q.shape[-1]) -> q @ (k.swapaxes(-2, -1) / math.sqrt(q.shape[-1]))",
    ): _SCALAR,
    (
        "attention.CrossAttention",
        "q @ k.swapaxes(1, 2) * jnp.exp(self.temperature[...]) -> "
        "q @ (k.swapaxes(1, 2) * jnp.exp(self.temperature[...]))",
    ): _SCALAR,
    ("losses.info_nce", "a @ b.T / 0.2 -> a @ (b.T / 0.2)"): _SCALAR,
    (
        "attention.masked_attention",
        "math.sqrt(q.shape[-1]) -> jax.lax.stop_gradient(math.sqrt(q.shape[-1]))",
    ): _CONSTANT,
    ("losses.masked_cross_entropy", "keep.sum() -> jax.lax.stop_gradient(keep.sum())"): _CONSTANT,
    (
        "losses.top2_accuracy",
        "hit.astype(jnp.float32).mean() -> jax.lax.stop_gradient(hit.astype(jnp.float32).mean())",
    ): _CONSTANT,
    (
        "sequence.TimeEmbedding",
        "jnp.exp(-2.0 * jnp.arange(half) / half) -> jax.lax.stop_gradient(jnp.exp(-2.0 * jnp.arange(half) / half))",
    ): _CONSTANT,
    (
        "sequence.VAE",
        "self.rngs.normal(mu.shape, mu.dtype) -> jax.lax.stop_gradient(self.rngs.normal(mu.shape, mu.dtype))",
    ): _CONSTANT,
    ("tensors.outliers", "mask.sum() -> jax.lax.stop_gradient(mask.sum())"): _CONSTANT,
    (
        "tensors.outliers",
        "absolute(x - median).mean(axis=1, keepdims=True) -> "
        "jax.lax.stop_gradient(absolute(x - median).mean(axis=1, keepdims=True))",
    ): _CONSTANT,
    ("tensors.q_sample", "jnp.sqrt(a) -> jax.lax.stop_gradient(jnp.sqrt(a))"): _CONSTANT,
    (
        "attention.masked_attention",
        "jnp.where(~mask, -10000.0, scores) -> jnp.where(~mask, -9000.0, scores)",
    ): "its exponential is zero in either case, and a row of it is uniform",
    ("losses.focal_loss", "1 - pt -> pt - 1"): _EVEN,
    (
        "losses.total_variation",
        "pred[:, :, 1:, :] - pred[:, :, :-1, :] -> pred[:, :, :-1, :] - pred[:, :, 1:, :]",
    ): _EVEN,
    (
        "losses.total_variation",
        "pred[:, :, :, 1:] - pred[:, :, :, :-1] -> pred[:, :, :, :-1] - pred[:, :, :, 1:]",
    ): _EVEN,
    ("tensors.outliers", "x - median -> median - x"): _EVEN,
    (
        "tensors.windows",
        "parts - parts.mean(axis=-1, keepdims=True) -> parts.mean(axis=-1, keepdims=True) - parts",
    ): _EVEN,
    ("losses.box_iou", "b[:, 3] -> b[:, 4]"): _CLAMPED,
    ("sequence.LSTMEncoder", "c[0] -> c[1]"): _CLAMPED,
    ("sequence.LSTMEncoder", "h[0] -> h[1]"): _CLAMPED,
    (
        "losses.barlow_twins",
        "z1.mean(axis=0) -> z1.mean(axis=0).astype(jnp.int32)",
    ): _CENTRED,
    (
        "losses.label_smoothing",
        "squeeze(jnp.take_along_axis(logp, target[:, None], axis=1), axis=1) -> "
        "squeeze(jnp.take_along_axis(logp, target[:, None], axis=1), axis=0)",
    ): "the mean over all pairs of a sum is the sum of the means",
    (
        "sequence.VectorQuantizer",
        "(z ** 2).sum(axis=1, keepdims=True) -> (z ** 2).mean(axis=1, keepdims=True)",
    ): "the same number for every code, which argmin does not see",
    ("sequence.VectorQuantizer", "z ** 2 -> z ** 3"): "the same number for every code, which argmin does not see",
    ("tensors.aggregate", "jnp.zeros(x.shape[0]).astype(x.dtype) -> jnp.zeros(x.shape[0]).astype(jnp.int32)"): _COUNT,
    (
        "tensors.aggregate",
        "jnp.ones(target.shape[0]).astype(x.dtype) -> jnp.ones(target.shape[0]).astype(jnp.int32)",
    ): _COUNT,
    (
        "tensors.one_hot_gate",
        "jax.nn.one_hot(i, 5, dtype=jnp.int32).astype(x.dtype) -> "
        "jax.nn.one_hot(i, 5, dtype=jnp.int32).astype(jnp.int32)",
    ): _COUNT,
    (
        "tensors.whiten",
        "x.mean(axis=0, keepdims=True) -> x.mean(axis=0, keepdims=False)",
    ): "broadcasting adds the axis again",
    ("attention.CausalAttention", "math.sqrt(q.shape[-1]) -> jax.lax.stop_gradient(math.sqrt(q.shape[-1]))"): _CONSTANT,
    ("losses.triplet", "anchor - positive -> positive - anchor"): _EVEN,
    ("losses.huber", "pred - target -> target - pred"): _EVEN,
    (
        "losses.distillation",
        "jax.nn.softmax(jax.lax.stop_gradient(target) / 3.0, axis=1) -> "
        "jax.lax.stop_gradient(jax.nn.softmax(jax.lax.stop_gradient(target) / 3.0, axis=1))",
    ): _CONSTANT,
    ("losses.barlow_twins", "z1.mean(axis=0) -> jax.lax.stop_gradient(z1.mean(axis=0))"): _CENTRED,
    ("losses.barlow_twins", "z2.mean(axis=0) -> jax.lax.stop_gradient(z2.mean(axis=0))"): _CENTRED,
    ("sequence.RunningNorm", "x.mean(axis=0) -> jax.lax.stop_gradient(x.mean(axis=0))"): _CONSTANT,
    (
        "sequence.RunningNorm",
        "jnp.sqrt(self.var + 0.0001) -> jax.lax.stop_gradient(jnp.sqrt(self.var + 0.0001))",
    ): _CONSTANT,
    ("sequence.VectorQuantizer", "2 * z @ w.T -> 2 * (z @ w.T)"): _SCALAR,
    ("tensors.whiten", "x.T @ x / (x.shape[0] - 1) -> x.T @ (x / (x.shape[0] - 1))"): _SCALAR,
}
"""Why a mutant is no mistake, by object and mutation, where the jaxprs differ."""

_NEAR = "the features that reach the norm are near zero, or what is added to its result is larger than the error"
_TIE = "differs only where two computed numbers are equal to the last bit"

UNSEEN: dict[tuple[str, str], str] = {
    (
        "attention.LayerScaleBlock",
        "nnx.LayerNorm(dim, epsilon=1e-05, use_fast_variance=False, rngs=rngs) -> "
        "nnx.LayerNorm(dim, epsilon=1e-05, rngs=rngs)",
    ): _NEAR,
    (
        "attention.LayerScaleBlock",
        "nnx.LayerNorm(dim, epsilon=1e-05, use_fast_variance=False, rngs=rngs) -> "
        "nnx.LayerNorm(dim, epsilon=1e-05, use_fast_variance=True, rngs=rngs)",
    ): _NEAR,
    (
        "sequence.TiedLM",
        "nnx.LayerNorm(dim, epsilon=1e-05, use_fast_variance=False, rngs=rngs) -> "
        "nnx.LayerNorm(dim, epsilon=1e-05, rngs=rngs)",
    ): _NEAR,
    (
        "sequence.TiedLM",
        "nnx.LayerNorm(dim, epsilon=1e-05, use_fast_variance=False, rngs=rngs) -> "
        "nnx.LayerNorm(dim, epsilon=1e-05, use_fast_variance=True, rngs=rngs)",
    ): _NEAR,
    ("tensors.nucleus", "cumulative - sorted_probs > 0.7 -> cumulative - sorted_probs >= 0.7"): _TIE,
    ("tensors.outliers", "absolute(x - median) > 1.2 * mad -> absolute(x - median) >= 1.2 * mad"): _TIE,
}
"""Why a mutant is a mistake and yet not seen: it counts as a survivor."""
