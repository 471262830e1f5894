"""Comparisons, logic and bits: ``torch.eq``, ``Tensor.logical_not``, ``torch.where``, ``torch.allclose``, ..."""

from __future__ import annotations

from dataclasses import replace

from t2j_lsp.translate.rule.facts import Fact, ListOf, Tensor
from t2j_lsp.translate.rule.record import Call, Piece, Row, rule

from ._facts import broadcast, broadcast_bool, same

for name, (operator, alias) in {
    "eq": ("==", None),
    "ne": ("!=", "not_equal"),
    "lt": ("<", "less"),
    "le": ("<=", "less_equal"),
    "gt": (">", "greater"),
    "ge": (">=", "greater_equal"),
}.items():
    aliases = [f"torch.{alias}", f"torch.Tensor.{alias}"] if alias else []
    Row(
        f"torch.{name}(input, other)",
        f"{{input}} {operator} {{other}}",
        method=True,
        aliases=aliases,
        result=broadcast_bool,
    )

for name in ("isnan", "isinf", "isfinite", "isposinf", "isneginf", "isreal", "signbit", "logical_not"):
    Row(f"torch.{name}(input)", f"jnp.{name}({{input}})", method=True, result=broadcast_bool)
for name in ("logical_and", "logical_or", "logical_xor"):
    Row(f"torch.{name}(input, other)", f"jnp.{name}({{input}}, {{other}})", method=True, result=broadcast_bool)

for name, operator in {
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
    "bitwise_left_shift": "<<",
    "bitwise_right_shift": ">>",
}.items():
    Row(f"torch.{name}(input, other)", f"{{input}} {operator} {{other}}", method=True, result=broadcast)
Row("torch.bitwise_not(input)", "~{input}", method=True, result=same)

for name in ("isclose", "allclose"):
    Row(
        f"torch.{name}(input, other, rtol=1e-05, atol=1e-08, equal_nan=False)",
        f"jnp.{name}({{input}}, {{other}}, rtol={{rtol?}}, atol={{atol?}}, equal_nan={{equal_nan?}})",
        method=True,
        result=broadcast_bool if name == "isclose" else "bool tensor",
    )
Row("torch.equal(input, other)", "jnp.array_equal({input}, {other})", method=True, result="bool tensor")
Row(
    "torch.isin(elements, test_elements, *, assume_unique=False, invert=False)",
    "jnp.isin({elements}, {test_elements}, assume_unique={assume_unique?}, invert={invert?})",
    result="bool tensor",
)


def _where_fact(call: Call) -> Fact:
    """One form chooses between two tensors, the other lists where the condition holds, axis by axis."""
    if "input" not in call.arguments:
        return ListOf(Tensor(1, "int"))
    chosen = broadcast(replace(call, arguments={name: call[name] for name in ("input", "other")}))
    ranks = [fact.rank if isinstance(fact, Tensor) else None for fact in (chosen, call["condition"].fact)]
    dtype = chosen.dtype if isinstance(chosen, Tensor) else None
    return Tensor(None if None in ranks else max(rank for rank in ranks if rank is not None), dtype)


@rule(
    "torch.where(condition)",
    "torch.where(condition, input, other)",
    jax="jnp.where(condition, x, y)",
    result=_where_fact,
)
def where(call: Call) -> Piece:
    if "input" in call.arguments:
        return call.emit("jnp.where({condition}, {input}, {other})")
    call.note("The size of the result depends on the values: under jax.jit give jnp.nonzero a size=.")
    return call.emit("jnp.nonzero({condition})")


Row("torch.Tensor.where(self, condition, other)", "jnp.where({condition}, {self}, {other})", result=broadcast)
