"""Reading by index: ``gather``, ``index_select``, ``nonzero``, ``diagonal``, ... (https://pytorch.org/docs/stable/torch.html).

PyTorch raises on an index out of bounds, where JAX clamps it or fills with NaN.
"""

from __future__ import annotations

from t2j_lsp.translate.rule.facts import Fact, ListOf, Tensor
from t2j_lsp.translate.rule.library import Trait, numbered_by, trait
from t2j_lsp.translate.rule.record import CLOSE, Call, Piece, Refusal, Row, rule

from ._arguments import axis_index, dtype_of, integer, rank_of

numbered_by("offset")
numbered_by("step", of=("torch.Tensor.unfold",))

DYNAMIC = "The size of the result depends on values, so this can't run under jax.jit."


def _like_index(call: Call) -> Fact:
    return Tensor(rank_of(call["index"]), dtype_of(call["input"]))


@rule(
    "torch.gather(input, dim, index, *, sparse_grad=False)",
    jax="jnp.take_along_axis(x, index, axis)",
    method=True,
    ignore=["sparse_grad"],
    result=_like_index,
)
def gather(call: Call) -> Piece:
    """PyTorch takes an index that is smaller than the input along other axes; of a matrix, that is hardly meant."""
    ranks = {rank_of(call["input"]), rank_of(call["index"])}
    if ranks & {1, 2} and 0 not in ranks:
        call.note("The index must have the input's size along the other axis; PyTorch also takes a smaller index.")
        return call.emit("jnp.take_along_axis({input}, {index}, axis={dim})")
    return call.emit("gather({input}, {index}, axis={dim})")


@rule("torch.take_along_dim(input, indices, dim=None)", jax="jnp.take_along_axis(x, indices, axis)", method=True)
def take_along_dim(call: Call) -> Piece:
    if call.given("dim"):
        return call.emit("jnp.take_along_axis({input}, {indices}, axis={dim})")
    return call.emit("{input}.ravel()[{indices}.ravel()]")


Row("torch.index_select(input, dim, index)", "jnp.take({input}, {index}, axis={dim})", method=True, result="same")
Row(
    "torch.unravel_index(indices, shape)",
    "jnp.unravel_index({indices}, {shape})",
    fidelity=CLOSE,
    note="PyTorch raises on an index out of bounds; JAX clamps it.",
)
Row("torch.take(input, index)", "jnp.take({input}, {index})", method=True, result=_like_index)


def _one_less(call: Call) -> Fact:
    rank = rank_of(call["input"])
    return Tensor(None if rank is None else rank - 1, dtype_of(call["input"]))


@rule("torch.select(input, dim, index)", jax="x[:, index]", method=True, result=_one_less)
def select(call: Call) -> Piece:
    dim = integer(call["dim"])
    if dim is not None and -3 <= dim <= 3:
        return call.emit(f"{{input}}[{axis_index(dim, '{index}')}]")
    return call.emit("jnp.take({input}, {index}, axis={dim})")


@rule(
    "torch.narrow(input, dim, start, length)",
    jax="x[:, start : start + length]",
    method=True,
    aliases=["torch.narrow_copy", "torch.Tensor.narrow_copy"],
    result="same",
)
def narrow(call: Call) -> Piece:
    dim, start, length = (integer(call[name]) for name in ("dim", "start", "length"))
    if dim is not None and -3 <= dim <= 3 and start is not None and start >= 0 and length is not None:
        return call.emit(f"{{input}}[{axis_index(dim, f'{start}:{start + length}' if start else f':{length}')}]")
    return call.emit("jax.lax.dynamic_slice_in_dim({input}, {start}, {length}, axis={dim})")


# By condition ---------------------------------------------------------------------------------------------------


@rule("torch.masked_select(input, mask)", jax="masked_select(x, mask)", method=True, fidelity=CLOSE, note=DYNAMIC)
def masked_select(call: Call) -> Piece:
    same_shape = rank_of(call["input"]) is not None and rank_of(call["input"]) == rank_of(call["mask"])
    return call.emit("{input}[{mask}]" if same_shape else "masked_select({input}, {mask})")


for _name in ("nonzero", "argwhere", "masked_select", "unique", "unique_consecutive"):
    trait(Trait.SIZED_BY_VALUES, f"torch.{_name}")


def _nonzero(call: Call) -> Fact:
    return ListOf(Tensor(1, "int")) if call["as_tuple"].literal is True else Tensor(2, "int")


@rule(
    "torch.nonzero(input, *, as_tuple=False)",
    jax="jnp.argwhere(x)",
    method=True,
    result=_nonzero,
    fidelity=CLOSE,
    note=DYNAMIC,
)
def nonzero(call: Call) -> Piece | Refusal:
    match call["as_tuple"].literal:
        case True:
            scalar = rank_of(call["input"]) == 0
            return call.emit("jnp.nonzero(jnp.atleast_1d({input}))" if scalar else "jnp.nonzero({input})")
        case False:
            return call.emit("jnp.argwhere({input})")
        case _:
            return call.refuse("as_tuple must be True or False in plain sight.")


Row("torch.argwhere(input)", "jnp.argwhere({input})", method=True, fidelity=CLOSE, note=DYNAMIC, result="int tensor")


# Sorted boundaries ----------------------------------------------------------------------------------------------


def _positions(call: Call) -> Fact:
    return Tensor(rank_of(call["input"]), "int")


def _side(call: Call) -> str | None:
    """JAX's ``side`` for PyTorch's ``right`` and ``side``: None for the default, ``"left"``."""
    if "side" in call.arguments and call.given("side"):
        return None if call["side"].literal == "left" else call["side"].text
    match call["right"].literal:
        case False:
            return None
        case True:
            return '"right"'
        case _:
            return f'"right" if {call["right"].text} else "left"'


@rule(
    "torch.bucketize(input, boundaries, *, out_int32=False, right=False)",
    jax="jnp.searchsorted(boundaries, x, side)",
    result=_positions,
)
def bucketize(call: Call) -> Piece:
    return _searchsorted(call, "boundaries")


@rule(
    "torch.searchsorted(sorted_sequence, input, *, out_int32=False, right=False, side=None, sorter=None)",
    jax="jnp.searchsorted(sorted_sequence, x, side, sorter)",
    result=_positions,
)
def searchsorted(call: Call) -> Piece | Refusal:
    return _searchsorted(call, "sorted_sequence", ", sorter={sorter?}")


def _searchsorted(call: Call, name: str, more: str = "") -> Piece:
    side = _side(call)
    batches = name == "sorted_sequence" and rank_of(call[name]) != 1
    function = "searchsorted" if batches else "jnp.searchsorted"
    template = f"{function}({{{name}}}, {{input}}{'' if side is None else ', side={side}'}{more})"
    if call["out_int32"].literal is not True and call.site.x64:
        template += ".astype(jnp.int64)"  # jnp.searchsorted counts in int32
    return call.emit(template, side=side)


# Diagonals and windows ------------------------------------------------------------------------------------------

Row(
    "torch.diagonal(input, offset=0, dim1=0, dim2=1)",
    "jnp.diagonal({input}, offset={offset?}, axis1={dim1?}, axis2={dim2?})",
    method=True,
    aliases=["torch.diagonal_copy"],
    result=_one_less,
)
Row("torch.diag(input, diagonal=0)", "jnp.diag({input}, k={diagonal?})", method=True)
Row("torch.diagflat(input, offset=0)", "jnp.diagflat({input}, k={offset?})", method=True)


@rule(
    "torch.diag_embed(input, offset=0, dim1=-2, dim2=-1)",
    jax='jnp.vectorize(jnp.diag, signature="(n)->(m,m)")(x)',
    method=True,
)
def diag_embed(call: Call) -> Piece:
    diag = "functools.partial(jnp.diag, k={offset})" if call.given("offset") else "jnp.diag"
    matrices = f'jnp.vectorize({diag}, signature="(n)->(m,m)")({{input}})'
    if call.given("dim1") or call.given("dim2"):
        return call.emit(f"jnp.moveaxis({matrices}, (-2, -1), ({{dim1}}, {{dim2}}))")
    return call.emit(matrices)


def _windows(call: Call) -> Fact:
    rank = rank_of(call["self"])
    return Tensor(None if rank is None else rank + 1, dtype_of(call["self"]))


@rule(
    "torch.Tensor.unfold(self, dimension, size, step)",
    jax="sliding_window(x, axis, size, step)",
    aliases=["torch.unfold_copy"],
    ignore=["dimension", "step"],
    result=_windows,
)
def unfold(call: Call) -> Piece | Refusal:
    if rank_of(call["self"]) == 0 and call["size"].literal == 1:
        return call.emit("{self}.reshape(1)")
    if rank_of(call["self"]) == 0:
        return call.refuse("A tensor without axes has no windows in JAX: make it a vector with x.reshape(1).")
    return call.emit("sliding_window({self}, {dimension}, {size}, {step})")


Row(
    "torch.combinations(input, r=2, with_replacement=False)",
    "combinations({input}, r={r?}, with_replacement={with_replacement?})",
)
Row(
    "torch.nonzero_static(input, *, size, fill_value=-1)",
    "jnp.argwhere({input}, size={size}, fill_value={fill_value})",
    method=True,
    result="int tensor",
    fidelity=CLOSE,
    note="Of an array without elements PyTorch gives fill_value, JAX gives 0.",
)
