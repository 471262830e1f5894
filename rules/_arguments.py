"""What the rules of tensors ask of an argument: a literal, the items of a list, a dtype or a device, a shape's rank."""

from __future__ import annotations

import ast

from t2j_lsp.translate.rule.binding import argument as given
from t2j_lsp.translate.rule.facts import UNKNOWN, Fact, ListOf, Object, Qual, QualOrNone, Scalar, Shape, Tensor, Tuple
from t2j_lsp.translate.rule.pieces import ATOM, bracket, precedence
from t2j_lsp.translate.rule.record import Argument, Call, Piece

FACTORY = "dtype=None, layout=torch.strided, device=None, pin_memory=False, requires_grad=False"
"""The keyword arguments that PyTorch's constructors of tensors share."""

LIKE = "dtype=None, layout=None, device=None, requires_grad=False, memory_format=torch.preserve_format"
"""The keyword arguments of ``torch.zeros_like`` and its like."""

DTYPES = {
    "float16": "float16",
    "half": "float16",
    "bfloat16": "bfloat16",
    "float32": "float32",
    "float": "float32",
    "float64": "float64",
    "double": "float64",
    "complex64": "complex64",
    "cfloat": "complex64",
    "complex128": "complex128",
    "cdouble": "complex128",
    "uint8": "uint8",
    "uint16": "uint16",
    "uint32": "uint32",
    "uint64": "uint64",
    "int8": "int8",
    "int16": "int16",
    "short": "int16",
    "int32": "int32",
    "int": "int32",
    "int64": "int64",
    "long": "int64",
    "bool": "bool",
    "float8_e4m3fn": "float8_e4m3fn",
    "float8_e4m3fnuz": "float8_e4m3fnuz",
    "float8_e5m2": "float8_e5m2",
    "float8_e5m2fnuz": "float8_e5m2fnuz",
}
"""Names in ``torch`` to the one name of each dtype."""

LEGACY = {
    "FloatTensor": "float32",
    "DoubleTensor": "float64",
    "HalfTensor": "float16",
    "BFloat16Tensor": "bfloat16",
    "ByteTensor": "uint8",
    "CharTensor": "int8",
    "ShortTensor": "int16",
    "IntTensor": "int32",
    "LongTensor": "int64",
    "BoolTensor": "bool",
}
"""The old tensor types and their dtypes."""

KINDS = {"float32": "float", "int64": "int", "bool": "bool"}
"""Dtypes that facts call by their kind; the others go by their torch name."""


def integer(argument: Argument) -> int | None:
    """The value of an integer literal, else None."""
    value = argument.literal
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def parts(argument: Argument) -> list[ast.expr] | None:
    """The items of a list or tuple that is written out without stars, else None."""
    node = argument.node
    if isinstance(node, ast.List | ast.Tuple) and not any(isinstance(e, ast.Starred) for e in node.elts):
        return node.elts
    return None


def part_texts(argument: Argument) -> list[str]:
    """The rendered text of each item of a list or tuple that is written out."""
    text = argument.piece.text.strip()
    display = ast.parse(f"({text})" if text[:1] not in "([" else text, mode="eval").body
    assert isinstance(display, ast.List | ast.Tuple)
    return [ast.get_source_segment(text, item) or ast.unparse(item) for item in display.elts]


def is_sequence(argument: Argument) -> bool:
    """Whether the value is surely a list, a tuple or a ``torch.Size``."""
    return isinstance(argument.fact, Tuple | ListOf | Shape) or isinstance(argument.node, ast.List | ast.Tuple)


def is_number(argument: Argument) -> bool:
    """Whether the value is surely a Python number."""
    return isinstance(argument.fact, Scalar) and argument.fact.kind in ("int", "float", "bool")


def has_float(argument: Argument) -> bool:
    """Whether a number or (nested) list of numbers surely holds a float."""
    return _has_float(argument.fact)


def _has_float(fact: Fact) -> bool:
    match fact:
        case Scalar():
            return fact.kind == "float"
        case Tuple():
            return any(map(_has_float, fact.items))
        case ListOf():
            return _has_float(fact.item)
        case _:
            return False


def is_written_as_float(argument: Argument) -> bool:
    """Whether a number is a float as it is written: ``0.5``, ``1 / n``; callers may give ``p: float = 1.0`` a 10."""
    parts = () if argument.node is None else ast.walk(argument.node)
    return has_float(argument) and any(
        isinstance(n, ast.BinOp) and isinstance(n.op, ast.Div) or isinstance(n, ast.Constant) and type(n.value) is float
        for n in parts
    )


def is_dtype(argument: Argument) -> bool:
    """Whether the value is surely a dtype: ``torch.long``, ``x.dtype``, a name that says so."""
    match argument.fact:
        case Object(kind="dtype"):
            return True
        case Qual():
            return argument.fact.name.removeprefix("torch.") in DTYPES
        case _:
            return _said(argument, ("dtype",))


def is_device(argument: Argument) -> bool:
    """Whether the value is surely a device: a string, ``torch.device(...)``, ``x.device``, a name that says so."""
    match argument.fact:
        case Object(kind="device") | Scalar(kind="str"):
            return True
        case Scalar(kind="int"):
            return True
        case _:
            return _said(argument, ("device", "dev", "rank", "gpu", "cuda"))


def _said(argument: Argument, words: tuple[str, ...]) -> bool:
    """Whether the name that the argument ends in is one of ``words`` or ends in ``_word``."""
    node = argument.node
    if isinstance(node, ast.Subscript):
        node = node.value
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return any(name.lower() == w or name.lower().endswith(f"_{w}") for w in words)


def dtype_kind(argument: Argument | None) -> str | None:
    """The dtype as facts name it (``float``, ``int``, ``bool`` or a torch name) where the argument is a torch dtype."""
    if argument is not None and isinstance(argument.node, ast.Name) and argument.node.id in ("bool", "int", "float"):
        return argument.node.id if argument.fact == UNKNOWN else None
    if argument is None or not isinstance(argument.fact, Qual) or isinstance(argument.fact, QualOrNone):
        return None
    name = DTYPES.get(argument.fact.name.removeprefix("torch."))
    return None if name is None else KINDS.get(name, f"torch.{name}")


def size_rank(argument: Argument) -> int | None:
    """Length of the shape that a ``*size`` (or ``size``) argument spells, where it is known."""
    items = argument.items or ((argument,) if argument.node is not None else ())
    if len(items) == 1:
        only = items[0]
        if isinstance(only.node, ast.Starred):
            return None
        match only.fact:
            case Shape():
                return only.fact.rank
            case Tuple():
                return len(only.fact.items)
            case Scalar():
                return 1
            case _:
                listed = parts(only)
                return None if listed is None else len(listed)
    if any(isinstance(i.node, ast.Starred) for i in items):
        return None
    return len(items)


def spread(argument: Argument, lists: bool = False) -> str:
    """The arguments of a ``*size`` parameter as they were written: ``2, -1`` or ``(2, -1)``.

    ``lists``: a parameter ``*tensors`` that also takes one list of tensors, which JAX doesn't: it is spread.
    """
    only = argument.items[0] if len(argument.items) == 1 else None
    if lists and only is not None and not isinstance(only.node, ast.Starred) and not isinstance(only.fact, Tensor):
        return ", ".join(part_texts(only)) if parts(only) is not None else f"*{only.atom}"
    return ", ".join(item.text for item in argument.items)


def rank_of(argument: Argument) -> int | None:
    return argument.fact.rank if isinstance(argument.fact, Tensor) else None


FEATURES = {"torch.nn.Linear": "out_features", "torch.nn.Embedding": "embedding_dim"}
"""Layers whose second argument says how long the last axis of what they give is."""


def width_of(call: Call, name: str) -> ast.expr | None:
    """How long axis ``dim`` of an argument is, if that is the last one of what a layer has just given."""
    node, dim, rank = call[name].node, integer(call["dim"]), rank_of(call[name])
    layer = call.site.called(node) if node is not None else None
    if not isinstance(node, ast.Call) or layer is None or layer.node is None or layer.name not in FEATURES:
        return None
    taken = call.site.fact(node.args[0]) if node.args else None
    if rank is None and isinstance(taken, Tensor) and taken.rank is not None:
        rank = taken.rank + (layer.name == "torch.nn.Embedding")
    if dim is None or dim not in (-1, None if rank is None else rank - 1):
        return None
    return given(layer.node, 1, FEATURES[layer.name])


def dtype_of(argument: Argument) -> str | None:
    return argument.fact.dtype if isinstance(argument.fact, Tensor) else None


def axis_index(dim: int, index: str) -> str:
    """What stands in brackets to apply ``index`` at axis ``dim``: ``:, i`` for 1, ``..., i, :`` for -2."""
    return ", ".join([":"] * dim + [index]) if dim >= 0 else ", ".join(["...", index] + [":"] * (-dim - 1))


def array_text(argument: Argument) -> str:
    """The text of a tensor as a bare array: ``p[...]`` where ``p`` is a parameter or buffer."""
    variable = isinstance(argument.fact, Tensor) and argument.fact.variable
    return f"{argument.atom}[...]" if variable and not argument.text.endswith("[...]") else argument.text


def holder(argument: Argument) -> str:
    """The text to read ``.shape`` or ``.dtype`` from: a Variable has them, and ``x.detach()`` has those of x."""
    variable = isinstance(argument.fact, Tensor) and argument.fact.variable
    text = bracket(without_stop_gradient(argument), ATOM)
    return text.removesuffix("[...]") if variable else text


def without_stop_gradient(argument: Argument) -> Piece:
    """The argument for a call that leaves JAX, where ``x.detach()`` has nothing left to say."""
    text = argument.piece.text
    if text.startswith("jax.lax.stop_gradient("):
        tree = ast.parse(text, mode="eval").body
        if isinstance(tree, ast.Call) and ast.unparse(tree.func) == "jax.lax.stop_gradient" and len(tree.args) == 1:
            return Piece(ast.get_source_segment(text, tree.args[0]) or text, precedence(tree.args[0]))
    return argument.piece


def flag_of(argument: Argument, call: Call) -> str | None:
    """The variable that ``requires_grad`` is read of, where another tensor is given it; else None."""
    match argument.node:
        case ast.Attribute(value=ast.Attribute() as other, attr="requires_grad"):
            variable = call.site.parameter(other)
            return variable[0] if variable is not None else None
    return None


def use_bias(call: Call) -> str:
    """The argument ``use_bias`` of a layer in Flax, which takes no None: ``nn.Linear(2, 3, bias=None)`` has none."""
    bias = call.literal("bias")
    if bias is True:
        return ""
    return ", use_bias=False" if bias in (None, False) else ", use_bias={bias}"
