"""``torch.func`` and ``torch.cond``: JAX's own transformations of functions (https://docs.pytorch.org/docs/stable/func.html)."""

from __future__ import annotations

from t2j_lsp.translate.rule.record import Call, Piece, Refusal, Row, refuse, rule

Row(
    "torch.func.grad(func, argnums=0, has_aux=False)",
    "jax.grad({func}, argnums={argnums?}, has_aux={has_aux?})",
    result="function",
)
Row("torch.func.hessian(func, argnums=0)", "jax.hessian({func}, argnums={argnums?})", result="function")
Row(
    "torch.func.jacrev(func, argnums=0, *, has_aux=False, chunk_size=None, _preallocate_and_copy=False)",
    "jax.jacrev({func}, argnums={argnums?}, has_aux={has_aux?})",
    ignore=["chunk_size", "_preallocate_and_copy"],
    result="function",
)
Row(
    "torch.func.jacfwd(func, argnums=0, has_aux=False, *, randomness='error')",
    "jax.jacfwd({func}, argnums={argnums?}, has_aux={has_aux?})",
    result="function",
)
Row(
    "torch.func.jvp(func, primals, tangents, *, strict=False, has_aux=False)",
    "jax.jvp({func}, {primals}, {tangents}, has_aux={has_aux?})",
    result="unknown",
)


@rule("torch.func.vjp(func, *primals, has_aux=False)", jax="jax.vjp(f, *primals)", result="unknown")
def vjp(call: Call) -> Piece:
    primals = ", ".join(item.text for item in call["primals"].items)
    return call.emit("jax.vjp({func}, {primals}, has_aux={has_aux?})", primals=primals)


@rule("torch.func.linearize(func, *primals)", jax="jax.linearize(f, *primals)", result="unknown")
def linearize(call: Call) -> Piece:
    return call.emit("jax.linearize({func}, {primals})", primals=", ".join(i.text for i in call["primals"].items))


@rule(
    "torch.vmap(func, in_dims=0, out_dims=0, randomness='error', *, chunk_size=None)",
    jax="jax.vmap(f, in_axes, out_axes)",
    aliases=["torch.func.vmap"],
    result="function",
)
def vmap(call: Call) -> Piece | Refusal:
    if call.given("randomness"):
        return call.refuse("Draws under jax.vmap depend on the keys: split the keys, and map over them.")
    if not call["chunk_size"].is_none:
        return call.refuse("In chunks that is jax.lax.map(f, xs, batch_size=n).")
    axes = {name: call.axes(name) if call.given(name) else None for name in ("in_dims", "out_dims")}
    return call.emit("jax.vmap({func}, in_axes={in_dims?}, out_axes={out_dims?})", **axes)


@rule("torch.cond(pred, true_fn, false_fn, operands=())", jax="jax.lax.cond(pred, f, g, *operands)", result="unknown")
def cond(call: Call) -> Piece:
    if not call.given("operands"):
        return call.emit("jax.lax.cond({pred}, {true_fn}, {false_fn})")
    return call.emit("jax.lax.cond({pred}, {true_fn}, {false_fn}, *{operands})")


refuse(
    "torch.while_loop",
    "jax.lax.while_loop hands the state over as one value: write cond(state) and body(state) on a tuple.",
)
refuse("torch.func.grad_and_value", "jax.value_and_grad gives the value first: exchange the two where they are read.")
refuse("torch.func.functionalize", "JAX arrays can't be written, so that functions are functional already.")
refuse("torch.func.stack_module_state", "Make the modules by nnx.vmap over their constructor, with split rngs.")
refuse("torch.func.replace_all_batch_norm_modules_", "Under jax.vmap batch norm works: give it axis_name instead.")
refuse("torch.func.*", "An inner function of torch.func: see jax.vmap, jax.jvp and jax.vjp.")
