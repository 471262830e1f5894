"""Asking for shapes and reshaping: ``size``, ``view``, ``flatten``, ... (https://pytorch.org/docs/stable/tensor_view.html)."""

from __future__ import annotations

from t2j_lsp.translate.rule.facts import INT, Fact, Shape, Tensor
from t2j_lsp.translate.rule.pieces import ATOM, BITOR, bracket
from t2j_lsp.translate.rule.record import CLOSE, Call, Piece, Refusal, Row, refuse, rule

from ._arguments import dtype_of, holder, integer, is_dtype, parts, rank_of, size_rank, spread
from ._facts import as_other, first

# Asking for the shape -------------------------------------------------------------------------------------------


def _size(call: Call) -> Fact:
    return INT if call.given("dim") else Shape(rank_of(call["self"]))


for name, form, kind in (
    ("torch.Tensor.shape", "shape", "shape"),
    ("torch.Tensor.ndim", "ndim", "int"),
    ("torch.Tensor.dim(self)", "ndim", "int"),
    ("torch.Tensor.ndimension(self)", "ndim", "int"),
    ("torch.Tensor.numel(self)", "size", "int"),
    ("torch.Tensor.nelement(self)", "size", "int"),
):

    @rule(name, jax=f"x.{form}", result=kind)
    def asked(call: Call, form: str = form) -> Piece:
        return call.emit(f"{{holder}}.{form}", holder=holder(call["self"]))


Row("torch._shape_as_tensor(self)", "jnp.array({self}.shape)", result="int tensor")
Row("torch.onnx.operators.shape_as_tensor(x)", "jnp.array({x}.shape)", result="int tensor")
Row("torch.numel(input)", "{input}.size", result="int")


@rule("torch.Tensor.size(self, dim=None)", jax="x.shape[dim]", result=_size)
def size(call: Call) -> Piece:
    return call.emit("{holder}.shape[{dim}]" if call.given("dim") else "{holder}.shape", holder=holder(call["self"]))


Row("torch.Size.numel(self)", "math.prod({self})", result="int")

STRIDES = "JAX arrays have no strides or storage."
VIEWS = ("set_", "resize_", "resize_as_")
for name in (*VIEWS, "storage", "untyped_storage", "storage_offset", "data_ptr"):
    refuse(f"torch.Tensor.{name}", STRIDES)


@rule(
    "torch.Tensor.stride(self, dim)",
    jax="math.prod(x.shape[dim + 1:])",
    result="int",
    fidelity=CLOSE,
    note="Every array lies row by row in JAX: a transposed or sliced one has the strides that a copy of it has.",
)
def stride(call: Call) -> Piece:
    """The step from one item to the next along an axis: what the axes behind it hold."""
    dim = integer(call["dim"])
    if dim is not None and dim >= 0:
        return call.emit("math.prod({holder}.shape[{next}:])", holder=holder(call["self"]), next=str(dim + 1))
    return call.emit("math.prod({holder}.shape[{dim}:][1:])", holder=holder(call["self"]))


Row("torch.Tensor.contiguous(self, memory_format=torch.contiguous_format)", "{self}", result="same")
Row(
    "torch.Tensor.is_contiguous(self, memory_format=torch.contiguous_format)",
    "True",
    ignore=["self"],
    result="bool",
    fidelity=CLOSE,
    note="JAX arrays have no strides, so every array counts as contiguous.",
)


# Reshaping ------------------------------------------------------------------------------------------------------


def _sized(call: Call) -> Fact:
    argument = call["shape"] if "shape" in call.arguments else call["size"]
    return Tensor(size_rank(argument), dtype_of(first(call)))


@rule("torch.Tensor.view(self, *size)", jax="x.reshape(shape)", result=_sized)
def view(call: Call) -> Piece:
    items = call["size"].items
    if len(items) == 1 and is_dtype(items[0]):
        return call.emit("{self}.view({dtype})", dtype=items[0])
    return call.emit("{self}.reshape({shape})", shape=spread(call["size"]))


@rule("torch.Tensor.reshape(self, *shape)", jax="x.reshape(shape)", result=_sized)
def reshape_method(call: Call) -> Piece:
    return call.emit("{self}.reshape({shape})", shape=spread(call["shape"]))


Row("torch.reshape(input, shape)", "{input}.reshape({shape})", result=_sized)
Row("torch.Tensor.view_as(self, other)", "{self}.reshape({other}.shape)", result=as_other)
Row("torch.Tensor.reshape_as(self, other)", "{self}.reshape({other}.shape)", result=as_other)
Row("torch.ravel(input)", "{input}.ravel()", method=True, result=lambda call: Tensor(1, dtype_of(call["input"])))


def _flattened(call: Call) -> Fact:
    rank, start, end = rank_of(call["input"]), integer(call["start_dim"]), integer(call["end_dim"])
    if rank is None or start is None or end is None:
        return Tensor(1 if (start, end) == (0, -1) else None, dtype_of(call["input"]))
    return Tensor(max(1, rank - (end % max(rank, 1) - start % max(rank, 1))), dtype_of(call["input"]))


@rule(
    "torch.flatten(input, start_dim=0, end_dim=-1)",
    jax="x.reshape(x.shape[0], -1)",
    method=True,
    result=_flattened,
)
def flatten(call: Call) -> Piece | Refusal:
    start, end = integer(call["start_dim"]), integer(call["end_dim"])
    if (start, end) == (0, -1):
        return call.emit("{input}.ravel()")
    if (start, end) == (1, -1) and call["input"].simple:
        return call.emit("{input}.reshape({input}.shape[0], -1)")
    if end == -1:
        return call.emit("jax.lax.collapse({input}, {start_dim})")
    if end is not None:
        return call.emit("jax.lax.collapse({input}, {start_dim}, {stop})", stop=str(end + 1))
    return call.refuse("The end_dim of flatten isn't a number: write jax.lax.collapse(x, start, stop).")


def _unflattened(call: Call) -> Fact:
    rank, added = rank_of(call["input"]), size_rank(call["sizes"])
    return Tensor(None if rank is None or added is None else rank - 1 + added, dtype_of(call["input"]))


@rule("torch.unflatten(input, dim, sizes)", jax="x.reshape(*x.shape[:dim], *sizes)", method=True, result=_unflattened)
def unflatten(call: Call) -> Piece | Refusal:
    dim, written = integer(call["dim"]), parts(call["sizes"])
    if dim is None:
        return call.refuse("The dim of unflatten isn't a number: write x.reshape(*x.shape[:dim], *sizes, ...).")
    sizes = call["sizes"].text
    sizes = f"*{bracket(call['sizes'].piece, BITOR)}" if written is None else sizes.strip()[1:-1].strip().rstrip(",")
    before = {0: "", 1: "{input}.shape[0], "}.get(dim, f"*{{input}}.shape[:{dim}], ")
    after = "" if dim == -1 else f", *{{input}}.shape[{dim + 1}:]"
    return call.emit(f"{{input}}.reshape({before}{{sizes}}{after})", sizes=sizes)


@rule("torch.Size(sizes=())", jax="tuple(sizes)", result="shape", example="torch.Size([2, 3])")
def size_(call: Call) -> Piece:
    """A shape is a plain tuple in JAX."""
    if not call.given("sizes"):
        return Piece("()", ATOM)
    return call.emit("{sizes:shape}" if parts(call["sizes"]) is not None else "tuple({sizes})")
