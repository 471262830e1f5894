"""Matrix and tensor products: ``torch.matmul``, ``torch.einsum``, ``torch.baddbmm``, ``torch.cdist``, ..."""

from __future__ import annotations

import ast

from t2j_lsp.translate.rule.facts import ListOf, Scalar, Tensor, Tuple
from t2j_lsp.translate.rule.library import numbered_by, takes_tensors
from t2j_lsp.translate.rule.record import CLOSE, Call, Piece, Refusal, Row, rule

from ._arguments import has_float
from ._facts import broadcast, is_bool, is_float, is_integer, multiplied, same

numbered_by("n", of=("torch.matrix_power", "torch.Tensor.matrix_power", "torch.linalg.matrix_power"))

for name, second in {"matmul": "other", "mm": "mat2", "bmm": "mat2", "mv": "vec"}.items():
    aliases = ["torch.linalg.matmul"] if name == "matmul" else []
    text = f"{{input}} @ {{{second}}}"
    Row(f"torch.{name}(input, {second})", text, method=True, aliases=aliases, result=multiplied)
Row("torch.spmm(input, mat2)", "{input} @ {mat2}", result=multiplied)
for name, second in {"dot": "tensor", "vdot": "other", "inner": "other"}.items():
    Row(f"torch.{name}(input, {second})", f"jnp.{name}({{input}}, {{{second}}})", method=True)
Row(
    "torch.outer(input, vec2)",
    "jnp.outer({input}, {vec2})",
    method=True,
    aliases=["torch.ger", "torch.Tensor.ger"],
)


@rule("torch.kron(input, other)", jax="jnp.kron(x, y)", method=True, result=broadcast)
def kron(call: Call) -> Piece | Refusal:
    if is_bool(call["input"].fact) and is_bool(call["other"].fact):
        return call.refuse("jnp.kron takes no bools: take it of integers, and compare the result with 0")
    return call.emit("jnp.kron({input}, {other})")


Row("torch.linalg.vecdot(x, y, *, dim=-1)", "jnp.vecdot({x}, {y}, axis={dim?})")
Row(
    "torch.tensordot(a, b, dims=2)",
    "jnp.tensordot({a}, {b}, axes={dims?})",
    fidelity=CLOSE,
    note="PyTorch also contracts an axis of size 1 with a longer one; JAX raises.",
)
Row("torch.linalg.multi_dot(tensors)", "jnp.linalg.multi_dot({tensors})")


def _einsum_fact(call: Call) -> Tensor:
    """The number of letters behind the arrow."""
    equation = call.literal("equation")
    if not isinstance(equation, str) or "->" not in equation or "..." in equation:
        return Tensor()
    return Tensor(len(equation.partition("->")[2].replace(" ", "")))


_EINSUM = "jnp.einsum({equation}, {operands})"


@rule("torch.einsum(equation, *operands)", jax="jnp.einsum(equation, *operands)", result=_einsum_fact)
def einsum(call: Call) -> Piece | Refusal:
    operands = call["operands"].items
    if len(operands) == 1 and isinstance(operands[0].node, ast.List | ast.Tuple):
        return call.emit(_EINSUM, operands=operands[0].text[1:-1].strip().rstrip(","))
    if len(operands) == 1 and isinstance(operands[0].fact, ListOf | Tuple):
        return call.emit(_EINSUM, operands=f"*{operands[0].atom}")
    if not isinstance(call["equation"].literal, str) and not isinstance(call["equation"].fact, Scalar):
        return call.refuse("only the form with an equation string is converted")
    return call.emit(_EINSUM, operands=", ".join(item.text for item in operands))


INTEGER_FACTORS = (
    "With tensors of integers or bools PyTorch rounds alpha and beta to that dtype first; JAX gives floats."
)


def _add_product(call: Call, product: str) -> Piece:
    """``beta * input + alpha * product``. With beta=0 PyTorch does not read ``input``."""
    factors = [call[name] for name in ("alpha", "beta") if call.given(name)]
    numbers = [factor.literal for factor in factors]
    if is_bool(call["input"].fact) and numbers and all(isinstance(n, int | float) and n for n in numbers):
        return call.emit(f"{{input}} + {product}")  # any factor but 0 is True
    whole = is_integer(call["input"].fact) and not is_bool(call["input"].fact)
    if whole and all(isinstance(n, int | float) for n in numbers) and any(map(has_float, factors)):
        return _add_whole_product(call, product)
    is_bool_product = call.signature.name == "torch.addr"  # the only one that takes tensors of bools
    if not is_float(call["input"].fact) and any(is_bool_product or has_float(factor) for factor in factors):
        call.note(INTEGER_FACTORS)
    scaled = f"{{alpha}} * ({product})" if call.given("alpha") else product
    if call.literal("beta") == 0 and call.given("beta"):
        return call.emit(scaled)
    return call.emit(("{beta} * {input} + " if call.given("beta") else "{input} + ") + scaled)


def _add_whole_product(call: Call, product: str) -> Piece:
    """Of integers, with factors that are cut to integers first."""
    alpha, beta = (int(value) if isinstance(value := call[n].literal, int | float) else 1 for n in ("alpha", "beta"))
    scaled = product if alpha == 1 else f"{alpha} * ({product})"
    return call.emit(
        scaled if beta == 0 else f"{{input}} + {scaled}" if beta == 1 else f"{beta} * {{input}} + {scaled}"
    )


for name, (parameters, product) in {
    "addmm": ("mat1, mat2", "{mat1} @ {mat2}"),
    "addmv": ("mat, vec", "{mat} @ {vec}"),
    "addbmm": ("batch1, batch2", "({batch1} @ {batch2}).sum(axis=0)"),
    "baddbmm": ("batch1, batch2", "{batch1} @ {batch2}"),
    "addr": ("vec1, vec2", "jnp.outer({vec1}, {vec2})"),
}.items():

    def emit(call: Call, product: str = product) -> Piece | Refusal:
        if not call.method and call.signature.by_name["beta"].kind != "keyword":
            return call.refuse("the older order of arguments is read of methods only: say beta= and alpha=")
        return _add_product(call, product)

    # The older forms, which still run, of methods: as functions they begin with beta.
    rule(
        f"torch.{name}(input, {parameters}, *, beta=1, alpha=1)",
        f"torch.{name}(input, beta, alpha, {parameters})",
        f"torch.{name}(input, beta, {parameters}, *, alpha=1)",
        jax="beta * x + alpha * (a @ b)",
        method=True,
        result=same,
    )(emit)


@rule("torch.cross(input, other, dim=None)", jax="jnp.cross(x, y, axis=axis)", method=True, result=same)
def cross(call: Call) -> Piece:
    if call["dim"].is_none:
        return call.emit("jnp.cross({input}, {other}, axis={input}.shape.index(3))")
    return call.emit("jnp.cross({input}, {other}, axis={dim})")


Row("torch.linalg.cross(input, other, *, dim=-1)", "jnp.cross({input}, {other}, axis={dim?})", result=same)
Row(
    "torch.cdist(x1, x2, p=2.0, compute_mode='use_mm_for_euclid_dist_if_necessary')",
    "cdist({x1}, {x2}, p={p?})",
    ignore=["compute_mode"],
    result=broadcast,
)
Row("torch.trace(input)", "jnp.trace({input})", method=True, result="scalar")
Row(
    "torch.linalg.matrix_power(input, n)",
    "jnp.linalg.matrix_power({input}, {n})",
    aliases=["torch.matrix_power", "torch.Tensor.matrix_power"],
)
Row(
    "torch.linalg.matrix_exp(input)",
    "matrix_exp({input})",
    aliases=["torch.matrix_exp", "torch.Tensor.matrix_exp"],
)
Row(
    "torch.cov(input, *, correction=1, fweights=None, aweights=None)",
    "jnp.cov({input}, ddof={correction}, fweights={fweights?}, aweights={aweights?})",
    method=True,
)
Row("torch.corrcoef(input)", "jnp.corrcoef({input})", method=True)

for name in ("matmul", "bmm", "mm"):
    takes_tensors(f"torch.{name}", 2)
takes_tensors("torch.einsum", None)
