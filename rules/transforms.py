"""``torch.func``, ``torch.autograd.functional``, ``torch.cond``: JAX's own transformations of functions (https://docs.pytorch.org/docs/stable/func.html)."""

from __future__ import annotations

import ast
import re
from dataclasses import replace

from t2j_lsp.translate.rule.definitions import Instance
from t2j_lsp.translate.rule.facts import STR, Fact, ListOf, Tensor, Transformed, Tuple
from t2j_lsp.translate.rule.library import Trait, trait
from t2j_lsp.translate.rule.record import CLOSE, Call, Piece, Refusal, Row, refuse, rule

from ._arguments import part_texts, parts


def _gradient(call: Call) -> Fact:
    """A gradient by one argument is of that argument's kind."""
    argnums = call.literal("argnums") if call.given("argnums") else 0
    alone = isinstance(argnums, int) and argnums >= 0 and not call.given("has_aux")
    return Transformed(call["func"].fact, argnums if alone else None)


def _other(call: Call) -> Fact:
    """A function of which it isn't known what it gives."""
    return Transformed(call["func"].fact)


def _mapped(call: Call) -> Fact:
    """What is mapped over a batch gives the same kind of value, with one axis more."""
    inner = call["func"].fact
    return Transformed(inner, inner.like, inner.with_value) if isinstance(inner, Transformed) else Transformed(inner)


Row(
    "torch.func.grad(func, argnums=0, has_aux=False)",
    "jax.grad({func}, argnums={argnums?}, has_aux={has_aux?})",
    result=_gradient,
)
Row(
    "torch.func.grad_and_value(func, argnums=0, has_aux=False)",
    "grad_and_value({func}, argnums={argnums?}, has_aux={has_aux?})",
    result=lambda call: (
        replace(gradient, with_value=True) if isinstance(gradient := _gradient(call), Transformed) else gradient
    ),
)
Row("torch.func.hessian(func, argnums=0)", "jax.hessian({func}, argnums={argnums?})", result=_other)
Row(
    "torch.func.jacrev(func, argnums=0, *, has_aux=False, chunk_size=None, _preallocate_and_copy=False)",
    "jax.jacrev({func}, argnums={argnums?}, has_aux={has_aux?})",
    ignore=["chunk_size", "_preallocate_and_copy"],
    result=_gradient,
)
Row(
    "torch.func.jacfwd(func, argnums=0, has_aux=False, *, randomness='error')",
    "jax.jacfwd({func}, argnums={argnums?}, has_aux={has_aux?})",
    result=_gradient,
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
    result=_mapped,
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


@rule(
    "torch.while_loop(cond_fn, body_fn, carried_inputs)",
    jax="jax.lax.while_loop(lambda state: cond(*state), lambda state: body(*state), inputs)",
    result="unknown",
)
def while_loop(call: Call) -> Piece | Refusal:
    """JAX hands the state over as one value."""
    if any(re.search(r"\bstate\b", call[name].text) for name in ("cond_fn", "body_fn")):
        return call.refuse("jax.lax.while_loop hands the state over as one value: write cond(state) and body(state).")
    inputs = "{carried_inputs}" if isinstance(call["carried_inputs"].node, ast.Tuple) else "tuple({carried_inputs})"
    return call.emit(
        f"jax.lax.while_loop(lambda state: {{cond_fn}}(*state), lambda state: {{body_fn}}(*state), {inputs})"
    )


# torch.autograd.functional --------------------------------------------------------------------------------------

ONE_TENSOR = "can't tell whether its inputs are one tensor or a tuple of tensors"


def _arguments(call: Call, name: str) -> tuple[str, int] | None:
    """A tensor or a tuple of tensors as arguments of a call, and how many these are; None where that isn't known."""
    given = call[name]
    if isinstance(given.fact, Tensor):
        return given.text, 1
    items = part_texts(given) if isinstance(given.node, ast.Tuple) and parts(given) else None
    return (", ".join(items), len(items)) if items else None


def _detached(call: Call, template: str, **extra: str) -> Piece:
    """Without ``create_graph=True`` PyTorch's result carries no gradient."""
    kept = call["create_graph"].literal is True
    return call.emit(template if kept else f"jax.lax.stop_gradient({template})", **extra)


for name, transform in (("jacobian", "jacrev"), ("hessian", "hessian")):
    strategy = "strategy='reverse-mode'" if name == "jacobian" else "outer_jacobian_strategy='reverse-mode'"

    @rule(
        f"torch.autograd.functional.{name}(func, inputs, create_graph=False, strict=False, vectorize=False,"
        f" {strategy})",
        jax=f"jax.{transform}(f)(x)",
        ignore=["strict", "vectorize", strategy.partition("=")[0]],
        result="unknown",
    )
    def derivative(call: Call, transform: str = transform) -> Piece | Refusal:
        arguments = _arguments(call, "inputs")
        if arguments is None:
            return call.refuse(ONE_TENSOR)
        text, number = arguments
        one = isinstance(call["inputs"].fact, Tensor)
        argnums = "" if one else f", argnums=({', '.join(map(str, range(number)))}{',' if number == 1 else ''})"
        return _detached(call, f"jax.{transform}({{func}}{argnums})({{inputs_given}})", inputs_given=text)


for name in ("jvp", "hvp", "vhp"):

    @rule(
        f"torch.autograd.functional.{name}(func, inputs, v=None, create_graph=False, strict=False)",
        jax="jax.jvp(f, (x,), (v,))" if name == "jvp" else "(f(x), jax.jvp(jax.grad(f), (x,), (v,))[1])",
        ignore=["strict"],
        result="unknown",
    )
    def product(call: Call, name: str = name) -> Piece | Refusal:
        """A vector times the Hessian, which is symmetric, from either side."""
        if not all(isinstance(call[n].fact, Tensor) for n in ("inputs", "v")):
            return call.refuse("inputs and v must be one tensor each: for several jax.jvp has a tuple of both.")
        if name == "jvp":
            return _detached(call, "jax.jvp({func}, ({inputs},), ({v},))")
        if not isinstance(call["func"].node, ast.Name | ast.Attribute):
            return call.refuse("Give the function a name: jax.jvp(jax.grad(f), (x,), (v,)) is its Hessian times v.")
        both = "{func}({inputs}), jax.jvp(jax.grad({func}), ({inputs},), ({v},))[1]"
        return call.emit(both) if call["create_graph"].literal is True else _detached(call, f"({both})")


@rule(
    "torch.autograd.functional.vjp(func, inputs, v=None, create_graph=False, strict=False)",
    jax="vector_jacobian_product(f, x, v)",
    ignore=["strict"],
    result="unknown",
)
def product_of_vector(call: Call) -> Piece:
    given = ", {v}" if call.given("v") else ""
    return _detached(call, f"vector_jacobian_product({{func}}, {{inputs}}{given})")


# Modules as functions of their arrays ---------------------------------------------------------------------------

LOST = "A call that changes the module's state (running statistics, dropout's keys) raises: call eval() before it."
TRANSFORMS = ["grad", "grad_and_value", "hessian", "jacrev", "jacfwd", "jvp", "vjp", "linearize", "vmap"]
trait(Trait.TRACES, "torch.vmap", *(f"torch.func.{name}" for name in TRANSFORMS))
trait(Trait.TRACES, *(f"torch.autograd.functional.{n}" for n in ("jacobian", "hessian", "hvp", "jvp", "vhp", "vjp")))
trait(Trait.BY_NAME, "torch.func.functional_call", "torch.nn.utils.stateless.functional_call")
trait(Trait.BY_NAME, "torch.func.stack_module_state")


def _forward(call: Call) -> Fact:
    """What the module gives."""
    module = call["module"].fact
    forward = module.cls.info.method("forward") if isinstance(module, Instance) else None
    return forward.returns if forward is not None and forward.returns is not None else Tensor(sure=False)


@rule(
    "torch.func.functional_call(module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True,"
    " strict=False)",
    jax="functional_call(module, arrays, args)",
    aliases=["torch.nn.utils.stateless.functional_call"],
    fidelity=CLOSE,
    note=LOST,
    result=_forward,
)
def functional_call(call: Call) -> Piece | Refusal:
    if call.given("strict") or call.given("tie_weights"):
        return call.refuse("the helper takes any of the names, and keeps shared arrays shared: leave both out")
    given = ", {args}" if call.given("args") else ""
    return call.emit(f"functional_call({{module}}, {{parameter_and_buffer_dicts}}{given}, kwargs={{kwargs?}})")


refuse("torch.func.functionalize", "JAX arrays can't be written, so that functions are functional already.")
Row(
    "torch.func.stack_module_state(models)",
    "stack_module_state({models})",
    result=lambda call: Tuple((ListOf(Tensor(), STR), ListOf(Tensor(), STR))),
)
for name in ("make_functional", "make_functional_with_buffers", "combine_state_for_ensemble"):
    refuse(f"torch.func.{name}", "Gone from PyTorch: nnx.split(model) gives a module's structure and its arrays.")
refuse("torch.func.replace_all_batch_norm_modules_", "Under jax.vmap batch norm works: give it axis_name instead.")
refuse("torch.func.rearrange", "einops.rearrange does the same of JAX arrays: call that.")
refuse("torch.func.debug_unwrap", "Inside jax.vmap, jax.debug.print prints the values; the arrays there are tracers.")
refuse("torch.func.*", "An inner function of torch.func: see jax.vmap, jax.jvp and jax.vjp.")
