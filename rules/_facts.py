"""Facts of results: rank and dtype of what an elementwise call or a reduction gives, where they are known."""

from __future__ import annotations

from dataclasses import replace

from t2j_lsp.translate.rule.facts import TENSOR, UNKNOWN, Fact, Scalar, Tensor, Tuple
from t2j_lsp.translate.rule.record import NO_LITERAL, Argument, Call

_INTEGER = frozenset({"int", "torch.int64", "torch.int32", "torch.int16", "torch.int8", "torch.uint8", "torch.long"})


def is_integer(fact: Fact) -> bool:
    """Whether the value is surely an integer or bool: a Python number or a tensor."""
    if isinstance(fact, Scalar):
        return fact.kind in ("int", "bool")
    return isinstance(fact, Tensor) and (fact.dtype in _INTEGER or is_bool(fact))


def is_bool(fact: Fact) -> bool:
    return isinstance(fact, Tensor) and fact.dtype in ("bool", "torch.bool")


def is_float(fact: Fact) -> bool:
    """Whether the value is surely a floating-point tensor."""
    known = isinstance(fact, Tensor) and fact.dtype is not None
    return known and not is_integer(fact) and "complex" not in str(fact.dtype)  # type: ignore[attr-defined]


def broadcast(call: Call) -> Fact:
    """The tensor that all tensor arguments broadcast to; its dtype where they agree and numbers can't change it."""
    tensors = [a.fact for a in call.arguments.values() if isinstance(a.fact, Tensor)]
    unknown = any(a.fact is UNKNOWN and a.given for a in call.arguments.values())
    if not tensors or unknown:
        return TENSOR
    ranks = [t.rank for t in tensors]
    dtypes = {t.dtype for t in tensors}
    floats = any(isinstance(a.fact, Scalar) and a.fact.kind == "float" for a in call.arguments.values())
    dtype = dtypes.pop() if len(dtypes) == 1 else None
    if floats and not is_float(Tensor(dtype=dtype)):
        dtype = None
    return Tensor(None if None in ranks else max(r for r in ranks if r is not None), dtype)


def broadcast_bool(call: Call) -> Fact:
    """A bool tensor of the broadcast shape."""
    out = broadcast(call)
    return replace(out, dtype="bool") if isinstance(out, Tensor) else out


def as_float(call: Call) -> Fact:
    """The first argument after a function that gives floats: ``torch.exp`` of an int tensor is a float tensor."""
    fact = next(iter(call.arguments.values())).fact
    if not isinstance(fact, Tensor):
        return Tensor(dtype="float")
    return Tensor(fact.rank, "float" if fact.dtype is None or is_integer(fact) else fact.dtype)


def as_other(call: Call) -> Fact:
    """The first argument in the shape of ``other``."""
    fact, other = next(iter(call.arguments.values())).fact, call["other"].fact
    dtype = fact.dtype if isinstance(fact, Tensor) else None
    return Tensor(other.rank if isinstance(other, Tensor) else None, dtype)


def same(call: Call) -> Fact:
    """A tensor with the rank and dtype of the first argument."""
    fact = next(iter(call.arguments.values())).fact
    return Tensor(fact.rank, fact.dtype) if isinstance(fact, Tensor) else TENSOR


def reduced(call: Call, dtype: str | None = None) -> Tensor:
    """The first argument without the axes that ``dim`` names, or with ones there under ``keepdim=True``."""
    fact = next(iter(call.arguments.values())).fact
    known = isinstance(fact, Tensor)
    rank = fact.rank if isinstance(fact, Tensor) else None
    if known and dtype is None and not call_has_dtype(call):
        dtype = fact.dtype  # type: ignore[attr-defined]
    dim, keepdim = call.arguments.get("dim"), call.arguments.get("keepdim")
    literal = None if dim is None else dim.literal
    if literal is None or literal == ():
        keep = keepdim is not None and keepdim.literal is not False
        return Tensor(None if keep else 0, dtype)
    if keepdim is not None and keepdim.literal is not False:
        return Tensor(rank if keepdim.literal is True else None, dtype)
    if rank is None or literal is NO_LITERAL:
        return Tensor(None, dtype)
    return Tensor(max(rank, 1) - (len(literal) if isinstance(literal, tuple | list) else 1), dtype)


def summed(call: Call) -> Tensor:
    """As ``reduced``; the sum of bools or integers is an integer."""
    out = reduced(call)
    return replace(out, dtype="int") if is_integer(first(call).fact) and not call_has_dtype(call) else out


def multiplied(call: Call) -> Tensor:
    """A matrix product: batch axes broadcast, a vector loses its axis."""
    left, right = (argument.fact for argument in list(call.arguments.values())[:2])
    if not isinstance(left, Tensor) or not isinstance(right, Tensor):
        return Tensor()
    dtype = left.dtype if left.dtype == right.dtype else None
    if left.rank is None or right.rank is None:
        return Tensor(None, dtype)
    vectors = (left.rank == 1) + (right.rank == 1)
    return Tensor(max(left.rank, right.rank) - vectors, dtype)


def call_has_dtype(call: Call) -> bool:
    return "dtype" in call.arguments and call.given("dtype")


def reduced_bool(call: Call) -> Fact:
    return reduced(call, "bool")


def reduced_int(call: Call) -> Fact:
    return reduced(call, "int")


def reduced_pair(call: Call) -> Fact:
    """(values, indices) of ``torch.max(x, dim)`` and its like."""
    return Tuple((reduced(call), reduced(call, "int")))


def same_pair(call: Call) -> Fact:
    """(values, indices) of ``torch.sort`` and its like, of the first argument's rank."""
    fact = same(call)
    return Tuple((fact, Tensor(fact.rank if isinstance(fact, Tensor) else None, "int")))


def first(call: Call) -> Argument:
    """The first argument: the tensor that a method was called on."""
    return next(iter(call.arguments.values()))
