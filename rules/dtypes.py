"""Dtypes: ``torch.float32``, ``x.to(...)``, ``x.long()``, ``torch.finfo``, ... (https://pytorch.org/docs/stable/tensor_attributes.html).

Without ``jax_enable_x64`` JAX has no 64-bit numbers: 64-bit dtypes become their 32-bit neighbours unless x64 is asked
for. For ``torch.int64`` that only matters beyond 2**31, and PyTorch uses it everywhere, so it isn't reported.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import partial

from t2j_lsp.translate.rule.facts import Fact, Object, Qual, Tensor, is_tensor
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.pieces import ATOM
from t2j_lsp.translate.rule.record import Call, Piece, Refusal, Row, refuse, rule

from ._arguments import DTYPES, KINDS, LEGACY, dtype_kind, dtype_of, holder, is_device, is_dtype, rank_of

NARROWER = {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}
"""What a 64-bit dtype is without x64."""

LOSSY = frozenset({"float64", "complex128", "uint64"})
"""64-bit dtypes that a program asks for on purpose."""

SPELLED = {"bool": "bool_"}


def jax_dtype(call: Call, name: str) -> str:
    """``jnp.int32`` for ``int64`` without x64; a loss of precision that was not meant is noted."""
    if name in NARROWER and not call.site.x64:
        if name in LOSSY:
            call.note(f"torch.{name} is {NARROWER[name]} here: convert with x64 to keep 64 bits.")
        name = NARROWER[name]
    return f"jnp.{SPELLED.get(name, name)}"


for alias, name in DTYPES.items():

    @rule(f"torch.{alias}", jax=f"jnp.{SPELLED.get(name, name)}", result="dtype")
    def named(call: Call, name: str = name) -> Piece:
        return call.emit(jax_dtype(call, name))


for name in ("complex32", "chalf"):
    refuse(f"torch.{name}", "JAX has no half-precision complex numbers.")
for name in ("qint8", "quint8", "qint32", "quint4x2", "quint2x4"):
    refuse(f"torch.{name}", "JAX has no quantised dtypes.")
for name in ("strided", "channels_last", "channels_last_3d", "contiguous_format", "preserve_format"):
    Row(f"torch.{name}", "None", result="unknown")  # XLA chooses the memory layout of JAX arrays

refuse("torch.dtype", "A JAX dtype is a NumPy dtype or a scalar type such as jnp.float32: compare dtypes with ==.")


# Casts ----------------------------------------------------------------------------------------------------------

METHODS = {
    name: DTYPES[name]
    for name in ["float", "double", "half", "bfloat16", "short", "int", "long", "bool", "cfloat", "cdouble"]
}
METHODS |= {"byte": "uint8", "char": "int8"}
_MAKERS = ("jax.nn.one_hot(", "jnp.asarray(")
_PLAIN = ("jnp.float32", "jnp.float64", "jnp.int32", "jnp.int64")
"""Dtypes to which all numbers are rounded once, and in which none is too large that can be in JAX's default ones."""
_TURNS = ("transpose", "swapaxes", "reshape", "squeeze")


def _cast_fact(name: str, call: Call) -> Fact:
    return Tensor(rank_of(call["self"]), KINDS.get(name, f"torch.{name}"))


for method, name in METHODS.items():

    @rule(
        f"torch.Tensor.{method}(self, memory_format=torch.preserve_format)",
        jax=f"x.astype(jnp.{SPELLED.get(name, name)})",
        result=partial(_cast_fact, name),
    )
    def cast(call: Call, name: str = name) -> Piece:
        return _of_dtype(call, jax_dtype(call, name))


def _of_dtype(call: Call, dtype: str) -> Piece:
    """``x.astype(dtype)``; what was just cast to it stays, and what makes the array is asked for it."""
    value, wanted = call.emit("{self}"), call.emit(dtype).text
    if value.precedence == ATOM and value.text.endswith(f".astype({wanted})"):
        return value
    asked = _made_of(value.text, wanted)
    return replace(value, text=asked) if asked is not None else call.emit(f"{{self}}.astype({dtype})")


def _made_of(text: str, dtype: str) -> str | None:
    """``jax.nn.one_hot(x, n, dtype=jnp.int32)`` or ``jnp.asarray(x)`` of a dtype, also where axes are turned."""
    if not text.startswith(_MAKERS) or "\n" in text or not text.isascii():
        return None
    node = ast.parse(text, mode="eval").body
    while True:
        match node:
            case ast.Call(func=ast.Attribute(value=inner, attr=method)) if method in _TURNS:
                node = inner
            case ast.Attribute(value=inner, attr="T" | "mT"):
                node = inner
            case ast.Call(func=called, args=[_], keywords=[]):
                end = (node.end_col_offset or 0) - 1
                plain = ast.unparse(called) == "jnp.asarray" and dtype in _PLAIN
                return f"{text[:end]}, dtype={dtype}{text[end:]}" if plain else None
            case ast.Call(func=called, keywords=[ast.keyword(arg="dtype", value=old)]):
                whole = ast.unparse(called) == "jax.nn.one_hot"
                return f"{text[: old.col_offset]}{dtype}{text[old.end_col_offset :]}" if whole else None
            case _:
                return None


def _converted(call: Call) -> Fact:
    """Fact of ``x.to(...)``: the rank stays, and the dtype where only a device is named."""
    kind = None
    for argument in (call["device"], call["dtype"]):
        kind = dtype_kind(argument) or kind
    target = call["device"]
    if kind is None and not call.given("dtype") and (is_device(target) or not target.given):
        kind = dtype_of(call["self"])
    return Tensor(rank_of(call["self"]), kind)


@rule(
    "torch.Tensor.to(self, device=None, dtype=None, non_blocking=False, copy=False, "
    "memory_format=torch.preserve_format)",
    jax="x.astype(dtype)",
    ignore=["copy"],
    result=_converted,
)
def to(call: Call) -> Piece | Refusal:
    """``to(device)``, ``to(dtype)``, ``to(device, dtype)`` and ``to(other)`` are told apart by their first argument."""
    target = call["device"]
    flag = call["dtype"].literal in (True, False)  # non_blocking, behind a dtype or a tensor
    if target.given and call.given("dtype") and not flag and (is_dtype(target) or is_tensor(target.fact)):
        return call.refuse("Can't tell which argument of to() is the dtype.")
    if target.given and is_dtype(target):
        return _of_dtype(call, "{device}")
    if target.given and is_tensor(target.fact):
        return call.emit("{self}.astype({device}.dtype)")
    if target.given and not (target.is_none or is_device(target) or is_dtype(call["dtype"])):
        return call.refuse("Can't tell whether the argument of to() is a device, a dtype or a tensor.")
    return _of_dtype(call, "{dtype}") if call.given("dtype") else call.emit("{self}")


def _type_or_cast(call: Call) -> Fact:
    """What ``x.type()`` says of the dtype, or the tensor of another one."""
    return Tensor(rank_of(call["self"]), dtype_kind(call["dtype"])) if call.given("dtype") else Object("dtype")


@rule("torch.Tensor.type(self, dtype=None, non_blocking=False)", jax="x.astype(dtype)", result=_type_or_cast)
def type_(call: Call) -> Piece | Refusal | None:
    """Casts to a dtype or to one of the old tensor types, ``x.type(torch.FloatTensor)``."""
    target = call["dtype"]
    if not call.given("dtype"):
        return call.refuse("x.type() gives the name of a torch type: use x.dtype.")
    named = str(target.fact.name if isinstance(target.fact, Qual) else target.literal)
    legacy = "float32" if named in names_with(Trait.DEFAULT_TYPE) else LEGACY.get(named.rpartition(".")[2])
    if legacy is not None:
        return call.emit(f"{{self}}.astype({jax_dtype(call, legacy)})")
    return call.emit("{self}.astype({dtype})") if is_dtype(target) else None


@rule("torch.Tensor.type_as(self, other)", jax="x.astype(other.dtype)", result="tensor")
def type_as(call: Call) -> Piece:
    return call.emit("{self}.astype({holder}.dtype)", holder=holder(call["other"]))


# Asking about dtypes --------------------------------------------------------------------------------------------


@rule("torch.Tensor.dtype", jax="x.dtype", result="dtype")
def dtype(call: Call) -> Piece:
    return call.emit("{holder}.dtype", holder=holder(call["self"]))


Row("torch.is_floating_point(input)", "jnp.issubdtype({input}.dtype, jnp.floating)", method=True, result="bool")
Row("torch.is_complex(input)", "jnp.iscomplexobj({input})", method=True, result="bool")
Row(
    "torch.is_signed(input)",
    'not jnp.isdtype({input}.dtype, ("bool", "unsigned integer"))',
    method=True,
    result="bool",
)
Row("torch.dtype.is_floating_point", "jnp.issubdtype({self}, jnp.floating)", result="bool")
Row("torch.dtype.is_complex", "jnp.issubdtype({self}, jnp.complexfloating)", result="bool")
Row("torch.dtype.itemsize", "jnp.dtype({self}).itemsize", result="int")
Row("torch.finfo(type)", "jnp.finfo({type})", result="unknown")
Row("torch.iinfo(type)", "jnp.iinfo({type})", result="unknown")
Row("torch.result_type(tensor1, tensor2)", "jnp.result_type({tensor1}, {tensor2})", result="dtype")
Row("torch.promote_types(type1, type2)", "jnp.promote_types({type1}, {type2})", result="dtype")
Row("torch.can_cast(from_, to)", "jnp.can_cast({from_}, {to})", result="bool")
Row("torch.get_default_dtype()", "jnp.float32", result="dtype")
for name in ("set_default_dtype", "set_default_tensor_type"):
    refuse(f"torch.{name}", 'For 64-bit floats call jax.config.update("jax_enable_x64", True) first of all.')
