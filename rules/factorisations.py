"""Factorisations that hand on their parts: LU, reflectors, and those that say whether they worked (``..._ex``)."""

from __future__ import annotations

from t2j_lsp.translate.rule.facts import Tuple
from t2j_lsp.translate.rule.record import CLOSE, Call, Piece, Refusal, Row, refuse, rule

from ._arguments import rank_of
from ._facts import broadcast, same
from .linalg import opposite_triangle
from .ordering import as_part

NO_PIVOTS = "JAX's LU always exchanges rows; PyTorch's does without on a GPU only."


def _pivoted(call: Call, piece: Piece) -> Piece | Refusal:
    return piece if call.literal("pivot") is True else call.refuse(NO_PIVOTS)


@rule("torch.linalg.lu_factor(A, *, pivot=True)", jax="lu_factor(x)", result="tensors")
def lu_factor(call: Call) -> Piece | Refusal:
    return _pivoted(call, call.emit("lu_factor({A})"))


@rule("torch.linalg.lu(A, *, pivot=True)", jax="lu(x)", result="tensors")
def linalg_lu(call: Call) -> Piece | Refusal:
    return _pivoted(call, call.emit("lu({A})"))


@rule("torch.lu(A, pivot=True, get_infos=False)", jax="lu_factor(x)", method=True, result="tensors")
def lu(call: Call) -> Piece | Refusal:
    if call.literal("get_infos") not in (True, False):
        return call.refuse("get_infos must be True or False in plain sight.")
    return _pivoted(call, call.emit("lu_factor_ex({A})" if call.literal("get_infos") else "lu_factor({A})"))


@rule(
    "torch.linalg.lu_factor_ex(A, *, pivot=True, check_errors=False)",
    jax="lu_factor_ex(x)",
    ignore=["check_errors"],
    result="tensors",
)
def lu_factor_ex(call: Call) -> Piece | Refusal:
    return _pivoted(call, call.emit("lu_factor_ex({A})"))


@rule(
    "torch.lu_unpack(LU_data, LU_pivots, unpack_data=True, unpack_pivots=True)",
    jax="lu_unpack(LU, pivots)",
    result="tensors",
)
def lu_unpack(call: Call) -> Piece | Refusal:
    if call.literal("unpack_data") is not True or call.literal("unpack_pivots") is not True:
        return call.refuse("PyTorch gives an empty tensor for what isn't unpacked: leave the argument out.")
    return call.emit("lu_unpack({LU_data}, {LU_pivots})")


Row(
    "torch.linalg.lu_solve(LU, pivots, B, *, left=True, adjoint=False)",
    "lu_solve({LU}, {pivots}, {B}, left={left?}, adjoint={adjoint?})",
)
Row("torch.lu_solve(input, LU_data, LU_pivots)", "lu_solve({LU_data}, {LU_pivots}, {input})", method=True)

# Results with an error code -------------------------------------------------------------------------------------

INFO = "The info is 1 for what has no result, where PyTorch's says at which row it failed; and then JAX gives NaN."


def _with_info(call: Call, part: str, plain: str, checked: str) -> Piece:
    """The result alone where nothing else is used, so that no helper is needed."""
    return as_part(call.emit(plain)) if call.site.index in (0, part) else call.emit(checked)


@rule(
    "torch.linalg.inv_ex(A, *, check_errors=False)",
    jax="inv_ex(x)",
    ignore=["check_errors"],
    result="tensors",
    fidelity=CLOSE,
    note=INFO,
)
def inv_ex(call: Call) -> Piece:
    return _with_info(call, "inverse", "jnp.linalg.inv({A})", "inv_ex({A})")


@rule(
    "torch.linalg.cholesky_ex(input, *, upper=False, check_errors=False)",
    jax="cholesky_ex(x)",
    ignore=["check_errors"],
    result="tensors",
    fidelity=CLOSE,
    note=INFO,
)
def cholesky_ex(call: Call) -> Piece:
    arguments = "({input}, upper={upper?})"
    return _with_info(call, "L", f"jnp.linalg.cholesky{arguments}", f"cholesky_ex{arguments}")


@rule(
    "torch.linalg.solve_ex(A, B, *, left=True, check_errors=False)",
    jax="solve_ex(A, B)",
    ignore=["check_errors"],
    result="tensors",
    fidelity=CLOSE,
    note=INFO,
)
def solve_ex(call: Call) -> Piece | Refusal:
    if call.literal("left") is not True:
        return call.refuse("jnp.linalg.solve has no left=False: solve the transposed equation")
    return call.emit("solve_ex({A}, {B})")


# Inverses and reflectors ----------------------------------------------------------------------------------------

Row("torch.cholesky_inverse(input, upper=False)", "cholesky_inverse({input}, upper={upper?})", method=True)


@rule(
    "torch.triangular_solve(input, A, upper=True, transpose=False, unitriangular=False)",
    jax="(jax.lax.linalg.triangular_solve(A, b, left_side=True), A)",
    method=True,
    result=lambda call: Tuple((broadcast(call), same(call)), fields=("solution", "cloned_coefficient")),
)
def triangular_solve(call: Call) -> Piece:
    """The second value is the matrix, as it was. Of two matrices it is lax's, whose batch axes have to be the same."""
    solved = (
        f"jax.lax.linalg.triangular_solve({{A}}, {{input}}, left_side=True, lower={opposite_triangle(call)},"
        " transpose_a={transpose?}, unit_diagonal={unitriangular?})"
    )
    if (rank_of(call["A"]), rank_of(call["input"])) != (2, 2) and call.literal("transpose") in (True, False):
        turned = call.literal("transpose")
        matrix, upper = ("{A}.mT", opposite_triangle(call)) if turned else ("{A}", "{upper}")
        solved = f"solve_triangular({matrix}, {{input}}, upper={upper}, unitriangular={{unitriangular?}})"
    if call.site.index in (1, "cloned_coefficient"):
        return as_part(call.emit("{A}"))
    return (
        as_part(call.emit(solved))
        if call.site.index in (0, "solution")
        else Piece(call.emit(f"({solved}, {{A}})").text)
    )


Row(
    "torch.linalg.householder_product(input, tau)",
    "householder_product({input}, {tau})",
    aliases=["torch.orgqr", "torch.Tensor.orgqr"],
)
Row(
    "torch.ormqr(input, input2, input3, left=True, transpose=False)",
    "ormqr({input}, {input2}, {input3}, left={left?}, transpose={transpose?})",
    method=True,
)


@rule("torch.geqrf(input)", jax='jnp.linalg.qr(x, mode="raw")', method=True, result="tensors")
def geqrf(call: Call) -> Piece:
    """NumPy has the reflectors in rows."""
    return call.emit("geqrf({input})")


@rule("torch.linalg.vander(x, N=None)", jax="x[..., None] ** jnp.arange(n)")
def vander(call: Call) -> Piece:
    """PyTorch takes a tensor without axes for a vector."""
    vector = "{x}" if rank_of(call["x"]) else "jnp.atleast_1d({x})"
    return call.emit(f"{vector}[..., None] ** jnp.arange({'{N}' if call.given('N') else '{x}.shape[-1]'})")


Row(
    "torch.linalg.ldl_factor(input, *, hermitian=False)",
    "ldl_factor({input}, hermitian={hermitian?})",
    result="tensors",
)
Row(
    "torch.linalg.ldl_factor_ex(input, *, hermitian=False, check_errors=False)",
    "ldl_factor_ex({input}, hermitian={hermitian?})",
    ignore=["check_errors"],
    result="tensors",
)
Row(
    "torch.linalg.ldl_solve(LD, pivots, B, *, hermitian=False)",
    "ldl_solve({LD}, {pivots}, {B}, hermitian={hermitian?})",
)
for name in ("svd_lowrank", "pca_lowrank", "lobpcg"):
    refuse(f"torch.{name}", "A randomised method without a JAX counterpart: use jnp.linalg.svd or eigh.")
refuse("torch.chain_matmul", "Deprecated: use torch.linalg.multi_dot.")
