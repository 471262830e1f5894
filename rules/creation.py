"""Making arrays: ``torch.zeros``, ``torch.arange``, ``torch.full_like``, ... (https://pytorch.org/docs/stable/torch.html#creation-ops).

PyTorch's default float is float32. So is JAX's, except under ``jax_enable_x64``, where the dtype is written out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from t2j_lsp.translate.rule.facts import UNKNOWN, ListOf, Object, Scalar, Tensor, Tuple, is_tensor
from t2j_lsp.translate.rule.library import Trait, numbered_by, sized_by, trait
from t2j_lsp.translate.rule.record import Argument, Call, Piece, Refusal, Row, refuse, rule

from ._arguments import (
    FACTORY,
    LIKE,
    dtype_kind,
    dtype_of,
    has_float,
    holder,
    is_number,
    part_texts,
    parts,
    rank_of,
    size_rank,
    spread,
    without_stop_gradient,
)
from ._facts import is_bool, is_integer
from ._numbers_of_tensors import as_numbers, is_flat
from ._unknown_values import is_handed, may_be_tensor

numbered_by(
    "diagonal",
    of=("torch.tril", "torch.triu", "torch.diag", "torch.Tensor.tril", "torch.Tensor.triu", "torch.Tensor.diag"),
)

sized_by("size", "sizes", "shape", "split_size", "split_sizes", "split_size_or_sections", "chunks", "length", "steps")
sized_by("output_size", "window_length", "row", "col", "num_classes", "num_samples")
sized_by("n", "m", of="torch.eye")
sized_by("n", of="torch.randperm")
sized_by("k", of="torch.topk")
sized_by("repeats", of="torch.Tensor.repeat")
sized_by("dims", of="torch.Tensor.tile")

REQUIRES_GRAD = "JAX arrays carry no requires_grad flag: differentiate a function with respect to this argument."


def made(call: Call, kind: str | None = "float") -> Tensor:
    """Fact of a new array: the rank its ``size`` spells; its ``dtype`` argument, or ``kind``."""
    rank = size_rank(call["size"]) if "size" in call.arguments else None
    return Tensor(rank, dtype_kind(call["dtype"]) if call.given("dtype") else kind)


def fill(call: Call, template: str, floats: bool = True, **extra: Piece | Argument) -> Piece:
    """Fill a constructor's template. ``floats``: whether PyTorch's result is of its default float dtype."""
    if call.given("requires_grad"):
        call.note(REQUIRES_GRAD)
    if floats and call.site.x64 and not call.given("dtype"):
        template = template.replace("{dtype?}", "jnp.float32")
    return call.emit(template, **extra)


for name in ("zeros", "ones", "empty"):

    @rule(f"torch.{name}(*size, {FACTORY})", jax=f"jnp.{name}(size, dtype)", result=made)
    def filled(call: Call, name: str = name) -> Piece:
        return fill(call, f"jnp.{name}({{size:shape}}, dtype={{dtype?}})")

    @rule(f"torch.{name}_like(input, *, {LIKE})", jax=f"jnp.{name}_like(x, dtype)", result="same")
    def filled_like(call: Call, name: str = name) -> Piece:
        like = without_stop_gradient(call["input"])
        return fill(call, f"jnp.{name}_like({{like}}, dtype={{dtype?}})", floats=False, like=like)


def _kind(value: Argument) -> str | None:
    """The kind of dtype that PyTorch takes from a value, where it is known."""
    if is_bool(value.fact) or isinstance(value.fact, Scalar) and value.fact.kind == "bool":
        return "bool"
    if isinstance(value.fact, Object) and value.fact.kind == "array":
        return value.fact.dtype
    return "int" if is_integer(value.fact) else "float" if has_float(value) else None


def _full(call: Call) -> Tensor:
    return made(call, _kind(call["fill_value"]))


@rule(f"torch.full(size, fill_value, *, {FACTORY})", jax="jnp.full(shape, fill_value, dtype)", result=_full)
def full(call: Call) -> Piece:
    return fill(call, "jnp.full({size:shape}, {fill_value}, dtype={dtype?})", floats=has_float(call["fill_value"]))


@rule(f"torch.full_like(input, fill_value, *, {LIKE})", jax="jnp.full_like(x, fill_value, dtype)", result="same")
def full_like(call: Call) -> Piece:
    like = without_stop_gradient(call["input"])
    return fill(call, "jnp.full_like({like}, {fill_value}, dtype={dtype?})", floats=False, like=like)


# Matrices -------------------------------------------------------------------------------------------------------


def _square(call: Call) -> Tensor:
    return Tensor(2, dtype_kind(call["dtype"]) if call.given("dtype") else "float")


@rule(f"torch.eye(n, m=None, *, {FACTORY})", jax="jnp.eye(n, m, dtype)", result=_square)
def eye(call: Call) -> Piece:
    size = "{n}, {m}" if call.given("m") else "{n}"
    return fill(call, f"jnp.eye({size}, dtype={{dtype?}})")


def _axes(call: Call) -> ListOf:
    count = len(call["tensors"].items)
    return ListOf(Tensor(count if count > 1 else None))


def _holds_scalars(arguments: Sequence[Argument]) -> bool:
    """Whether a list that is written out has a tensor without axes in it."""
    items = [item for a in arguments if isinstance(a.fact, Tuple) for item in a.fact.items]
    return any(isinstance(item, Tensor) and item.rank == 0 for item in items)


@rule("torch.meshgrid(*tensors, indexing=None)", jax='jnp.meshgrid(*xs, indexing="ij")', result=_axes)
def meshgrid(call: Call) -> Piece | Refusal:
    """PyTorch's default indexing is ``ij``, JAX's is ``xy``."""
    items = call["tensors"].items
    text = spread(call["tensors"], lists=True)
    if _holds_scalars(items):
        if len(items) != 1 or parts(items[0]) is None:
            return call.refuse("PyTorch takes a tensor without axes for a vector here, JAX raises: use x.reshape(1).")
        text = ", ".join(f"jnp.atleast_1d({one})" for one in part_texts(items[0]))
    if any(rank_of(one) == 0 for one in items):
        text = ", ".join(f"jnp.atleast_1d({one.text})" if rank_of(one) == 0 else one.text for one in items)
    if call.given("indexing") and call["indexing"].literal == "xy":
        return call.emit("jnp.meshgrid({tensors})", tensors=text)
    indexing = call["indexing"].text if call.given("indexing") else '"ij"'
    return call.emit("jnp.meshgrid({tensors}, indexing={indexing})", tensors=text, indexing=indexing)


Row("torch.tril(input, diagonal=0)", "jnp.tril({input}, k={diagonal?})", method=True, result="same")
Row("torch.triu(input, diagonal=0)", "jnp.triu({input}, k={diagonal?})", method=True, result="same")
for name in ("tril", "triu"):

    @rule(
        f"torch.{name}_indices(row, col, offset=0, *, dtype=torch.long, device='cpu', layout=torch.strided)",
        jax=f"jnp.stack(jnp.{name}_indices(row, offset, col))",
        result=lambda call: Tensor(2, dtype_kind(call["dtype"]) if call.given("dtype") else "int"),
    )
    def triangle_indices(call: Call, name: str = name) -> Piece:
        dtype = ".astype({dtype})" if call.given("dtype") else ""
        return call.emit(f"jnp.stack(jnp.{name}_indices({{row}}, {{offset}}, {{col}})){dtype}")


Row("torch.vander(x, N=None, increasing=False)", "jnp.vander({x}, N={N?}, increasing={increasing?})")


# From data ------------------------------------------------------------------------------------------------------


def _data(call: Call) -> Tensor:
    data = call["data"]
    kind = dtype_of(data) or _kind(data)
    rank = 0 if is_number(data) else 1 if is_flat(call, data) else rank_of(data)
    return Tensor(rank, dtype_kind(call["dtype"]) if call.given("dtype") else kind)


@rule("torch.tensor(data, *, dtype=None, device=None, requires_grad=False)", jax="jnp.array(data, dtype)", result=_data)
def tensor(call: Call) -> Piece:
    """``torch.tensor`` copies values and cuts the graph."""
    data = call["data"]
    if is_tensor(data.fact):
        template = (
            "jax.lax.stop_gradient({data}).astype({dtype})" if call.given("dtype") else "jax.lax.stop_gradient({data})"
        )
        return fill(call, template, floats=False)
    whole = call.given("dtype") and dtype_kind(call["dtype"]) in ("bool", "int")
    if not whole and (_has_tensors(call, data) or is_handed(data.node, call) or _collects(data)):
        flat = ".ravel()" if is_flat(call, data) else ""
        template = f"jax.lax.stop_gradient(jnp.array({{data}}, dtype={{dtype?}}){flat})"
        return fill(call, template, floats=False, data=as_numbers(call, data))
    return fill(call, "jnp.array({data}, dtype={dtype?})", floats=has_float(data))


trait(Trait.FROM_VALUES, "torch.tensor", "torch.as_tensor", "torch.from_numpy")
trait(Trait.ONES, "torch.ones", "torch.ones_like")
trait(
    Trait.OF_SHAPE, *(f"torch.{name}_like" for name in ("zeros", "ones", "empty", "full", "rand", "randn", "randint"))
)


def _has_tensors(call: Call, argument: Argument) -> bool:
    """Whether a list has tensors in it; in rows, what isn't known to be no tensor: ``[[1, 0], [0, s]]``."""
    if any(map(is_tensor, getattr(argument.fact, "items", ()))):
        return True
    rows = argument.node.elts if isinstance(argument.node, ast.List | ast.Tuple) else []
    items = [item for row in rows if isinstance(row, ast.List | ast.Tuple) for item in row.elts]
    return any(is_tensor(call.site.fact(item)) or may_be_tensor(item, call) for item in items)


def _collects(argument: Argument) -> bool:
    """Whether it is a list of tensors, or of what some function gives of which nothing is known."""
    fact, node = argument.fact, argument.node
    if not isinstance(fact, ListOf):
        return False
    called = isinstance(node, ast.ListComp) and isinstance(node.elt, ast.Call) and isinstance(node.elt.func, ast.Name)
    return is_tensor(fact.item) or fact.item == UNKNOWN and called


def _has_floats(call: Call, argument: Argument) -> bool:
    """Whether it is a list of tensors whose numbers may have gradients."""
    listed = isinstance(argument.node, ast.List | ast.Tuple | ast.ListComp) and is_handed(argument.node, call)
    if is_tensor(argument.fact) or not (_has_tensors(call, argument) or _collects(argument) or listed):
        return False
    items = [*getattr(argument.fact, "items", ()), getattr(argument.fact, "item", UNKNOWN)]
    kinds = {item.dtype for item in items if isinstance(item, Tensor)}
    return not kinds or not kinds <= {"int", "bool"}


def _made(call: Call) -> str:
    """What takes an array over, or copies it where somebody writes into it."""
    return "jnp.array" if call.site.copies else "jnp.asarray"


trait(Trait.FROM_NUMPY, "torch.from_numpy", "torch.as_tensor", "torch.asarray")
trait(Trait.OF_NUMPY, "torch.from_numpy")


@rule("torch.as_tensor(data, dtype=None, device=None)", jax="jnp.asarray(data, dtype)", result=_data)
def as_tensor(call: Call) -> Piece:
    """``torch.as_tensor`` takes a tensor over with its gradient, and copies the values of tensors in a list."""
    data = call["data"]
    flat = ".ravel()" if is_flat(call, data) else ""
    made = f"{_made(call)}({{data}}, dtype={{dtype?}}){flat}"
    template = f"jax.lax.stop_gradient({made})" if _has_floats(call, data) else made
    return fill(call, template, floats=has_float(data), data=as_numbers(call, data))


@rule(
    "torch.asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False)",
    jax="jnp.asarray(obj, dtype)",
    ignore=["copy"],
    result="tensor",
)
def asarray(call: Call) -> Piece:
    made = f"{_made(call)}({{obj}}, dtype={{dtype?}})"
    template = f"jax.lax.stop_gradient({made})" if _has_floats(call, call["obj"]) else made
    return fill(call, template, floats=has_float(call["obj"]))


@rule(f"torch.scalar_tensor(s, *, {FACTORY})", jax="jnp.array(s, dtype)", result=lambda call: Tensor(0, "float"))
def scalar_tensor(call: Call) -> Piece:
    """A float whatever the number is, unless a dtype is given."""
    dtype = "{dtype}" if call.given("dtype") else "jnp.float32"
    return fill(call, f"jnp.array({{s}}, dtype={dtype})", floats=False)


def _of_numpy(call: Call) -> Tensor:
    return Tensor(dtype=_kind(call["ndarray"]))


@rule("torch.from_numpy(ndarray)", jax="jnp.asarray(ndarray)", result=_of_numpy)
def from_numpy(call: Call) -> Piece:
    if not call.site.x64:
        call.note("Float64 and int64 arrays become 32-bit here unless jax_enable_x64 is set; PyTorch keeps 64 bits.")
    return call.emit(f"{_made(call)}({{ndarray}})")


Row(
    "torch.frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False)",
    "jnp.frombuffer({buffer}, dtype={dtype}, count={count?}, offset={offset?})",
)


# With the dtype of another array ----------------------------------------------------------------------------------


def _of_self(call: Call) -> Tensor:
    rank = size_rank(call["size"]) if "size" in call.arguments else None
    return Tensor(rank, dtype_kind(call["dtype"]) if call.given("dtype") else dtype_of(call["self"]))


def _new(call: Call, jax: str) -> Piece:
    if call.given("requires_grad"):
        call.note(REQUIRES_GRAD)
    dtype = call["dtype"].text if call.given("dtype") else f"{holder(call['self'])}.dtype"
    return call.emit(f"{jax}, dtype={{dtype}})", dtype=dtype)


for name in ("zeros", "ones", "empty"):

    @rule(f"torch.Tensor.new_{name}(self, *size, {FACTORY})", jax=f"jnp.{name}(size, dtype=x.dtype)", result=_of_self)
    def new_filled(call: Call, name: str = name) -> Piece:
        return _new(call, f"jnp.{name}({{size:shape}}")


@rule(
    f"torch.Tensor.new_full(self, size, fill_value, *, {FACTORY})",
    jax="jnp.full(size, fill_value, dtype=x.dtype)",
    result=_of_self,
)
def new_full(call: Call) -> Piece:
    return _new(call, "jnp.full({size:shape}, {fill_value}")


@rule(f"torch.Tensor.new_tensor(self, data, *, {FACTORY})", jax="jnp.array(data, dtype=x.dtype)", result=_of_self)
def new_tensor(call: Call) -> Piece:
    if is_tensor(call["data"].fact):
        dtype = "{dtype}" if call.given("dtype") else "{self}.dtype"
        return call.emit(f"jax.lax.stop_gradient({{data}}).astype({dtype})")
    return _new(call, "jnp.array({data}")


# Complex numbers --------------------------------------------------------------------------------------------------


@rule("torch.complex(real, imag)", jax="jax.lax.complex(real, imag)")
def complex_of(call: Call) -> Piece:
    """jax.lax.complex takes parts of one shape, which those of one tensor have: ``x[..., 0]`` and ``x[..., 1]``."""
    alike = _without_place(call["real"].text) == _without_place(call["imag"].text)
    return call.emit(
        "jax.lax.complex({real}, {imag})" if alike else "jax.lax.complex(*jnp.broadcast_arrays({real}, {imag}))"
    )


def _without_place(text: str) -> str:
    """``x[..., #]`` of ``x[..., 1]``, and ``z`` of ``z.real``: what has the same shape wherever it is taken from."""
    head, bracket, places = re.sub(r"\.(real|imag)$", "", text).rpartition("[")
    return head + bracket + re.sub(r"(?<![^,\s])-?\d+(?=\s*[,\]])", "#", places)


Row("torch.polar(abs, angle)", "jax.lax.complex({abs} * jnp.cos({angle}), {abs} * jnp.sin({angle}))")
Row("torch.view_as_complex(input)", "jax.lax.complex({input}[..., 0], {input}[..., 1])")
Row("torch.view_as_real(input)", "jnp.stack(({input}.real, {input}.imag), axis=-1)", result="float tensor")

refuse("torch.quantize_per_tensor", "JAX has no quantised arrays.")
