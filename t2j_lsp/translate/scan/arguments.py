"""Arguments of layers that are made in a row: whether each layer gets the same, and whether that may be a module."""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.forward_pass import CONTAINERS
from t2j_lsp.translate.rule.definitions import Class, ClassInfo, Instance, is_module
from t2j_lsp.translate.rule.facts import Fact, Layer, Qual, Tensor
from t2j_lsp.translate.rule.layer import LAYERS, LayerRule

_PLAIN = (
    ast.Name,
    ast.Attribute,
    ast.Constant,
    ast.BinOp,
    ast.UnaryOp,
    ast.BoolOp,
    ast.Compare,
    ast.IfExp,
    ast.Tuple,
    ast.Subscript,
    ast.Slice,
    ast.operator,
    ast.unaryop,
    ast.boolop,
    ast.cmpop,
    ast.expr_context,
)
_SAME_EACH_TIME = frozenset({"int", "float", "bool", "str", "len", "max", "min", "abs", "round", "tuple", "sum"})


def differs(node: ast.expr) -> bool:
    """Whether an expression may have another value each time that it is evaluated, or makes a new object."""
    for inner in symbols.walk(node):
        match inner:
            case ast.Call(func=ast.Name(id=name)) if name in _SAME_EACH_TIME:
                continue
            case _ if not isinstance(inner, _PLAIN):
                return True
    return False


def may_be_shared(inference: Inference, call: ast.Call, depth: int = 4) -> str | None:
    """The argument of a constructor call that may be a module, or hold parameters; None where surely none is."""
    info = _built(inference, call)
    given = [*((None, a) for a in call.args), *((k.arg, k.value) for k in call.keywords)]
    for place, (keyword, argument) in enumerate(given):
        if isinstance(argument, ast.Starred) or keyword is None and place >= len(call.args):
            return ast.unparse(argument)
        fact = inference.fact(argument)
        if is_stateless(fact):
            continue
        if is_module(fact) or isinstance(fact, Tensor):
            return ast.unparse(argument)
        if not isinstance(argument, ast.Name | ast.Attribute | ast.IfExp | ast.Subscript) or _is_known(fact):
            continue
        if info is not None and _may_keep(inference, info, _parameter(info, place, keyword), depth):
            return ast.unparse(argument)
    return None


def is_stateless(fact: Fact) -> bool:
    """Whether a value is a module that may be shared, since it holds nothing: an activation."""
    return isinstance(fact, Layer) and fact.name in LAYERS and _holds_nothing(LAYERS[fact.name])


def _holds_nothing(layer: LayerRule) -> bool:
    return layer.elementwise and not layer.random


def _is_known(fact: Fact) -> bool:
    """Whether a value is known to be something else than a module: a number, a class, a function."""
    return type(fact).__name__ in ("Scalar", "Shape", "Qual", "Class", "Function", "ModuleClass", "Partial")


def _built(inference: Inference, call: ast.Call) -> ClassInfo | None:
    fact = inference.fact(call)
    return fact.cls.info if isinstance(fact, Instance) else None


def _parameter(info: ClassInfo, place: int, keyword: str | None) -> str | None:
    init = info.method("__init__")
    if keyword is not None or init is None:
        return keyword
    names = [a.arg for a in symbols.positional_parameters(init.node)][1:]
    return names[place] if place < len(names) else None


def _may_keep(inference: Inference, info: ClassInfo, name: str | None, depth: int) -> bool:
    """Whether a class may keep what its constructor gets by a name as a part of itself, and call it."""
    init = info.method("__init__")
    if init is None or name is None or init.external or depth == 0:
        return True
    for node in symbols.walk(init.node):
        match node:
            case ast.Assign(targets=[ast.Attribute(attr=attr)], value=value) if _is_handed_on(value, name):
                if _is_called(inference, info, attr):
                    return True
            case ast.Call(func=func) if any(_is_handed_on(a, name) for a in _arguments(node)):
                made, called = inference.fact(node), inference.fact(func)
                if isinstance(made, Layer) and made.name in CONTAINERS:
                    return True
                if isinstance(called, Class) and _passes_on(inference, called.info, node, name, depth):
                    return True
                if not isinstance(called, Class | Qual) and not isinstance(made, Layer) and not _is_builtin(func):
                    return True
    return False


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(k.value for k in call.keywords)]


def _is_handed_on(node: ast.expr, name: str) -> bool:
    """Whether an expression is the value of a name, or may be."""
    match node:
        case ast.Name(id=read):
            return read == name
        case ast.IfExp(body=body, orelse=orelse):
            return _is_handed_on(body, name) or _is_handed_on(orelse, name)
        case ast.BoolOp(values=values):
            return any(_is_handed_on(value, name) for value in values)
        case ast.Starred(value=value) | ast.Subscript(value=value):
            return _is_handed_on(value, name)
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return any(_is_handed_on(item, name) for item in items)
        case ast.ListComp() | ast.GeneratorExp() | ast.Dict() | ast.Lambda():
            return any(isinstance(n, ast.Name) and n.id == name for n in symbols.walk(node))
    return False


def _is_builtin(func: ast.expr) -> bool:
    return isinstance(func, ast.Name) and func.id in _SAME_EACH_TIME | {"range", "isinstance", "super", "print"}


def _passes_on(inference: Inference, info: ClassInfo, call: ast.Call, name: str, depth: int) -> bool:
    """Whether the class of a part that is made with it may keep it."""
    for place, argument in enumerate(call.args):
        if _is_handed_on(argument, name) and _may_keep(inference, info, _parameter(info, place, None), depth - 1):
            return True
    named = [(k.arg, k.value) for k in call.keywords]
    return any(_is_handed_on(v, name) and (k is None or _may_keep(inference, info, k, depth - 1)) for k, v in named)


def _is_called(inference: Inference, info: ClassInfo, attr: str) -> bool:
    """Whether an attribute of the class is called as a module is."""
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == attr
        for method in info.methods.values()
        for node in symbols.walk(method.node)
    )
