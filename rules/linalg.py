"""Solvers, factorisations and numbers about matrices: ``torch.linalg.*`` and their older names in ``torch``."""

from __future__ import annotations

from t2j_lsp.translate.rule.facts import Scalar, Tensor
from t2j_lsp.translate.rule.record import CLOSE, NO_LITERAL, Call, Piece, Refusal, Row, rule

from ._arguments import rank_of
from ._axes import axis
from ._facts import reduced, same
from .ordering import as_part
from .reductions import euclidean

SINGULAR = "For a singular matrix PyTorch raises; JAX gives inf or NaN."
NOT_POSITIVE = "For a matrix that isn't positive definite PyTorch raises; JAX gives NaN."
SIGNS = "Signs (phases) of the vectors are arbitrary in both libraries and may differ."
NO_ROWS = "JAX has no gradient where the matrix has no rows; PyTorch's is empty."

# Inverses and solvers -------------------------------------------------------------------------------------------

Row(
    "torch.linalg.inv(A)",
    "jnp.linalg.inv({A})",
    aliases=["torch.inverse", "torch.Tensor.inverse"],
    result=same,
    fidelity=CLOSE,
    note=SINGULAR,
)
Row(
    "torch.linalg.det(A)",
    "jnp.linalg.det({A})",
    aliases=["torch.det", "torch.Tensor.det"],
    fidelity=CLOSE,
    note=NO_ROWS,
)
Row(
    "torch.linalg.slogdet(A)",
    "jnp.linalg.slogdet({A})",
    aliases=["torch.slogdet", "torch.Tensor.slogdet"],
    result="tensors",
)
Row(
    "torch.logdet(input)",
    "jnp.log(jnp.linalg.det({input}))",
    method=True,
    fidelity=CLOSE,
    note=NO_ROWS,
)


@rule(
    "torch.linalg.solve(A, B, *, left=True)",
    jax="jnp.linalg.solve(A, B)",
    fidelity=CLOSE,
    note=SINGULAR,
)
def solve(call: Call) -> Piece | Refusal:
    if call.literal("left") is not True:
        return call.refuse("jnp.linalg.solve has no left=False: solve the transposed equation")
    a, b = call["A"].fact, call["B"].fact
    if isinstance(a, Tensor) and isinstance(b, Tensor) and None not in (a.rank, b.rank) and a.rank != b.rank != 1:
        return call.emit("jnp.linalg.solve({A}, {B}[..., None])[..., 0]")
    ranks = rank_of(call["A"]), rank_of(call["B"])
    batched = ranks[0] != 2 and ranks[1] != 1 and (None in ranks or ranks[0] != ranks[1])
    return call.emit("solve({A}, {B})" if batched else "jnp.linalg.solve({A}, {B})")


@rule(
    "torch.linalg.solve_triangular(input, B, *, upper, left=True, unitriangular=False)",
    jax="jax.lax.linalg.triangular_solve(A, B, left_side=True, lower=not upper)",
)
def solve_triangular(call: Call) -> Piece:
    """Of two matrices it is lax's, whose batch axes have to be the same."""
    if (rank_of(call["input"]), rank_of(call["B"])) != (2, 2):
        return call.emit("solve_triangular({input}, {B}, upper={upper}, left={left?}, unitriangular={unitriangular?})")
    return call.emit(
        f"jax.lax.linalg.triangular_solve({{input}}, {{B}}, left_side={{left}}, lower={opposite_triangle(call)},"
        " unit_diagonal={unitriangular?})"
    )


def opposite_triangle(call: Call) -> str:
    """JAX's ``lower`` is PyTorch's ``upper`` negated."""
    return {"True": "False", "False": "True"}.get(call["upper"].text, "not {upper}")


@rule("torch.cholesky_solve(input, input2, upper=False)", jax="jax.scipy.linalg.cho_solve((L, True), B)", method=True)
def cholesky_solve(call: Call) -> Piece:
    lower = opposite_triangle(call)
    return call.emit(f"jax.scipy.linalg.cho_solve(({{input2}}, {lower}), {{input}})")


@rule(
    "torch.linalg.pinv(input, *, atol=None, rtol=None, hermitian=False)",
    "torch.linalg.pinv(input, rcond, hermitian=False)",
    jax="jnp.linalg.pinv(x, rtol)",
    fidelity=CLOSE,
    note="PyTorch drops singular values below max(m, n) * eps times the largest, JAX below ten times as much.",
)
def pinv(call: Call) -> Piece:
    """Of a Hermitian matrix PyTorch reads the lower triangle, JAX both."""
    bound = "rcond" if "rcond" in call.arguments else "rtol"
    matrix = "of_triangle({input})" if call.literal("hermitian") is True else "{input}"
    return call.emit(
        f"jnp.linalg.pinv({matrix}, rtol={{bound?}}, hermitian={{hermitian?}})",
        bound=call[bound].piece if call.given(bound) else None,
    )


Row(
    "torch.pinverse(input, rcond=1e-15)",
    "jnp.linalg.pinv({input}, rtol={rcond})",
    method=True,
)


@rule(
    "torch.linalg.lstsq(input, b, rcond=None, *, driver=None)",
    jax="jnp.linalg.lstsq(A, B)",
    result="tensors",
)
def lstsq(call: Call) -> Piece | Refusal:
    if call.site.unpacked == 4 or getattr(call.site, "index", None) == 0:
        return call.emit("jnp.linalg.lstsq({input}, {b}, rcond={rcond?})")
    return call.emit("lstsq({input}, {b}, rcond={rcond?}, driver={driver?})")


# Factorisations -------------------------------------------------------------------------------------------------

Row(
    "torch.linalg.cholesky(input, *, upper=False)",
    "jnp.linalg.cholesky({input}, upper={upper?})",
    result=same,
    fidelity=CLOSE,
    note=NOT_POSITIVE,
)
Row(
    "torch.cholesky(input, upper=False)",
    "jnp.linalg.cholesky({input}, upper={upper?})",
    method=True,
    result=same,
    fidelity=CLOSE,
    note=NOT_POSITIVE,
)
Row(
    "torch.linalg.eigh(input, UPLO='L')",
    "jnp.linalg.eigh(of_triangle({input}, UPLO={UPLO?}))",
    result="tensors",
    fidelity=CLOSE,
    note=SIGNS,
)
Row("torch.linalg.eigvalsh(input, UPLO='L')", "jnp.linalg.eigvalsh(of_triangle({input}, UPLO={UPLO?}))")
ON_CPU = "JAX has this on the CPU only; order and phases of the eigenvectors are arbitrary."


@rule("torch.linalg.eig(input)", jax="eig(x)", result="tensors", fidelity=CLOSE, note=ON_CPU)
def eig(call: Call) -> Piece:
    """JAX's own has no derivative of the vectors."""
    return call.emit("jnp.linalg.eig({input})" if call.site.without_gradient else "eig({input})")


Row("torch.linalg.eigvals(input)", "jnp.linalg.eigvals({input})", result="tensor", fidelity=CLOSE, note=ON_CPU)


@rule(
    "torch.linalg.svd(A, full_matrices=True, *, driver=None)",
    jax="jnp.linalg.svd(x, full_matrices=False)",
    ignore=["driver"],
    result="tensors",
    fidelity=CLOSE,
    note=SIGNS,
)
def linalg_svd(call: Call) -> Piece:
    """JAX has no derivative where the matrices are full; that of the thin ones and of the singular values exists."""
    if call.site.index in (1, "S"):
        return as_part(call.emit("jnp.linalg.svdvals({A})"))
    if call.given("full_matrices") and call.literal("full_matrices") is not True:
        return call.emit("jnp.linalg.svd({A}, full_matrices={full_matrices})")
    return call.emit("full_svd({A})")


Row("torch.linalg.svdvals(A, *, driver=None)", "jnp.linalg.svdvals({A})", ignore=["driver"])


@rule(
    "torch.svd(input, some=True, compute_uv=True)",
    jax="svd_with_v(x)",
    method=True,
    result="tensors",
    fidelity=CLOSE,
    note=SIGNS,
)
def svd(call: Call) -> Piece | Refusal:
    """torch.svd returns V and the thin form, jnp.linalg.svd returns V^H and the full one."""
    if call.site.index in (1, "S"):
        return as_part(call.emit("jnp.linalg.svdvals({input})"))
    if call.literal("compute_uv") is not True:
        return call.refuse("compute_uv=False: use jnp.linalg.svdvals")
    full = {"True": None, "False": "True"}.get(call["some"].text, "not {some}")
    return call.emit("svd_with_v({input}" + (f", full_matrices={full})" if full else ")"))


Row(
    "torch.linalg.qr(A, mode='reduced')",
    "jnp.linalg.qr({A}, mode={mode?})",
    result="tensors",
    fidelity=CLOSE,
    note=SIGNS,
)


@rule("torch.qr(input, some=True)", jax="jnp.linalg.qr(x)", method=True, result="tensors", fidelity=CLOSE, note=SIGNS)
def qr(call: Call) -> Piece | Refusal:
    match call.literal("some"):
        case True:
            return call.emit("jnp.linalg.qr({input})")
        case False:
            return call.emit('jnp.linalg.qr({input}, mode="complete")')
        case _:
            return call.refuse("spell out some=True or some=False")


# Numbers about matrices -----------------------------------------------------------------------------------------

OF_SINGULAR_VALUES = ("nuc", 2, -2)


def _of_order(call: Call, tensor: str) -> Piece:
    """The norm of what may be a matrix; that of one alone is jnp.linalg.norm's, where it asks for singular values."""
    arguments = f"({tensor}, {{ord}}, axis={{axis?}}, keepdims={{keepdim?}})"
    singular = call.literal("ord") in OF_SINGULAR_VALUES
    if singular or call.literal("ord") is NO_LITERAL:
        call.note("At a zero matrix the gradient is 0 in PyTorch and may be NaN in JAX.")
    plain = singular and (rank_of(call["input"]) == 2 or not call["dim"].is_none)
    return call.emit(f"{'jnp.linalg.norm' if plain else 'norm_of_order'}{arguments}", axis=axis(call))


@rule(
    "torch.linalg.norm(input, ord=None, dim=None, keepdim=False, *, dtype=None)",
    jax="jnp.linalg.norm(x, ord, axis)",
    result=reduced,
)
def norm(call: Call) -> Piece:
    tensor = "{input}.astype({dtype})" if call.given("dtype") else "{input}"
    if call["ord"].is_none:
        return euclidean(call, tensor)
    one_axis = isinstance(call["dim"].fact, Scalar) and not call["dim"].is_none
    if one_axis or (call["dim"].is_none and isinstance(call["input"].fact, Tensor) and call["input"].fact.rank == 1):
        return call.emit(f"vector_norm({tensor}, {{ord}}, axis={{axis?}}, keepdims={{keepdim?}})", axis=axis(call))
    return _of_order(call, tensor)


@rule(
    "torch.linalg.matrix_norm(input, ord='fro', dim=(-2, -1), keepdim=False, *, dtype=None)",
    jax="jnp.linalg.norm(x, ord, axis=(-2, -1))",
    result=reduced,
)
def matrix_norm(call: Call) -> Piece:
    tensor = "{input}.astype({dtype})" if call.given("dtype") else "{input}"
    if call.literal("ord") == "fro":
        return euclidean(call, tensor)
    return _of_order(call, tensor)


Row(
    "torch.linalg.diagonal(A, *, offset=0, dim1=-2, dim2=-1)",
    "jnp.diagonal({A}, offset={offset?}, axis1={dim1}, axis2={dim2})",
)
Row("torch.linalg.cond(input, p=None)", "jnp.linalg.cond({input}, p={p?})")


@rule(
    "torch.linalg.matrix_rank(input, *, atol=None, rtol=None, hermitian=False)",
    jax="jnp.linalg.matrix_rank(x)",
    result="int tensor",
    fidelity=CLOSE,
    note="The rank of a matrix without rows or columns is 0 in PyTorch; JAX raises.",
)
def matrix_rank(call: Call) -> Piece:
    """What jnp.linalg.matrix_rank calls ``rtol`` is an absolute bound."""
    relative = "{rtol} * jnp.linalg.norm({input}, 2, axis=(-2, -1))"
    if call.given("atol") and call.given("rtol"):
        bound = f", rtol=jnp.maximum({{atol}}, {relative})"
        return call.emit(f"jnp.linalg.matrix_rank({{input}}{bound}, hermitian={{hermitian?}})")
    bound = ", rtol={atol}" if call.given("atol") else f", rtol={relative}" if call.given("rtol") else ""
    return call.emit(f"jnp.linalg.matrix_rank({{input}}{bound}, hermitian={{hermitian?}})")


Row("torch.linalg.tensorinv(input, ind=2)", "jnp.linalg.tensorinv({input}, ind={ind?})")


@rule("torch.linalg.tensorsolve(input, other, dims=None)", jax="jnp.linalg.tensorsolve(A, B, axes)")
def tensorsolve(call: Call) -> Piece:
    if call.given("dims"):
        return call.emit("tensorsolve({input}, {other}, {dims})")
    return call.emit("jnp.linalg.tensorsolve({input}, {other}, axes={dims?})")
