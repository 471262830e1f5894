"""Whether it matters in which order the parts of a module are walked.

PyTorch walks them in the order of their assignment, Flax in alphabetical order. A sum doesn't mind; a list that is
indexed and a line that is printed do. Numbers that are drawn in a walk are given out in its order.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable

from t2j_lsp import symbols
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.module_methods import RESET
from t2j_lsp.translate.inference.ordered_walks import has_order
from t2j_lsp.translate.rule.definitions import Function, Instance, is_module
from t2j_lsp.translate.rule.facts import Fact, Qual
from t2j_lsp.translate.rule.names import is_torch
from t2j_lsp.translate.rule.record import REGISTRY

WALKING = frozenset({
    "parameters", "named_parameters", "buffers", "named_buffers", "modules", "named_modules", "children",
    "named_children",
})  # fmt: skip
"""The methods of `torch.nn.Module` that walk it."""

_UNORDERED = frozenset({"sum", "any", "all", "max", "min", "len", "set", "frozenset", "sorted"})
"""Functions whose result is the same in any order of what they are given."""
_OF_NUMPY = frozenset(
    f"numpy.{name}" for name in ("sum", "prod", "mean", "max", "min", "std", "var", "median", "any", "all")
)
_IN_ORDER = frozenset({"list", "tuple", "iter", "filter", "reversed"})
"""Functions that hand on what they are given in its order, or in an order that follows from it."""


def _is_of_numpy(inference: Inference, function: ast.expr) -> bool:
    """Whether it is such a function of NumPy's, over all that a list has."""
    fact = inference.fact(function)
    return isinstance(fact, Qual) and fact.name in _OF_NUMPY


def order_matters(inference: Inference, node: ast.AST) -> bool:
    """Whether the use of what ``node`` yields depends on its order."""
    while (parent := inference.source.parents.get(node)) is not None:
        match parent:
            case ast.Call(func=ast.Name(id="dict")) if node in parent.args:
                return _dict_is_read_in_order(inference, parent)
            case ast.Call(func=ast.Name(id=name)) if node in parent.args and name in _UNORDERED:
                return False
            case ast.Call(func=func, args=[first], keywords=[]) if first is node and _is_of_numpy(inference, func):
                return False
            case ast.Call(func=ast.Name(id=name)) if node in parent.args and name in _IN_ORDER:
                node = parent
            case ast.Call(func=ast.Name(id="next")):
                return not _asks_of_any(inference, parent)
            case ast.Call(func=ast.Name(id="zip")) if node in parent.args and walk_alike(inference, parent):
                node = parent
            case ast.Call(func=func) if node in parent.args and inference.fact(func) == Qual("itertools.chain"):
                node = parent
            case ast.BinOp(op=ast.Sub() | ast.BitAnd() | ast.BitOr() | ast.BitXor()) if _is_keys(node):
                return False
            case ast.comprehension() if parent.iter is node:
                node = parent
            case ast.DictComp():
                return _dict_is_read_in_order(inference, parent)
            case ast.SetComp():
                return False
            case ast.ListComp() | ast.GeneratorExp() if isinstance(node, ast.comprehension):
                if len(parent.generators) > 1:
                    return True
                node = parent
            case ast.For() if parent.iter is node:
                return has_order(inference.source, parent)
            case ast.Expr() | ast.If():
                return False
            case ast.Assign() | ast.NamedExpr():
                reads = reads_of(inference, parent)
                if reads is None or len(reads) > 1 and not _is_list(parent.value):
                    return True  # nobody knows who reads it, or what a walk still has left
                if any(order_matters(inference, read) for read in reads):
                    return True
                if isinstance(parent, ast.Assign):
                    return False
                node = parent
            case ast.Call(func=func) if isinstance(fact := inference.fact(func), Qual):
                return not fact.name.startswith(("torch.optim.", "torch.nn.utils.clip_grad", "optax."))
            case ast.keyword() | ast.Starred() | ast.Dict():
                node = parent
            case _:
                return True
    return True


def draws(inference: Inference, body: Iterable[ast.stmt]) -> bool:
    """Whether statements draw numbers."""
    for call in (n for statement in body for n in symbols.walk(statement) if isinstance(n, ast.Call)):
        fact = inference.fact(call.func)
        if isinstance(call.func, ast.Attribute) and call.func.attr == RESET:
            return True
        if isinstance(fact, Function) and fact.info.takes_rngs:
            return True
        method = f"torch.Tensor.{call.func.attr}" if isinstance(call.func, ast.Attribute) else ""
        rule = REGISTRY.get(fact.name if isinstance(fact, Qual) else method)
        if rule is not None and rule.random:
            return True
    return False


def changes_parts_twice(
    inference: Inference, body: Iterable[ast.stmt], item: str, around: Collection[ast.AST] = ()
) -> bool:
    """Whether a walk's statements may change a module that they meet, and a part of one: what comes last stays.

    PyTorch's ``modules()`` gives a module before its parts, Flax behind them. ``around`` are functions that the
    statements stand in, and that may call themselves.
    """
    own = parts = False
    for node in (n for statement in body for n in symbols.walk(statement)):
        if not isinstance(node, ast.Name) or node.id != item:
            continue
        match read := inference.source.parents.get(node):
            case ast.Attribute(attr=name) if name in WALKING or is_module(inference.fact(read)):
                parts = True
            case ast.Attribute():
                own = True
            case ast.Call(func=func, args=[given, *_]) if given is node:
                fact = inference.fact(func)
                called = fact.info.node if isinstance(fact, Function) else None
                if isinstance(called, ast.FunctionDef) and called not in around:
                    arguments = symbols.positional_parameters(called)
                    inside = (*around, called)
                    if arguments and changes_parts_twice(inference, called.body, arguments[0].arg, inside):
                        return True
    return own and parts


def _dict_is_read_in_order(inference: Inference, made: ast.expr) -> bool:
    """Whether a dict of parts is walked or shown by who can be seen to read it; by its keys there is no order."""
    parents = inference.source.parents
    around = parents.get(made)
    reads = reads_of(inference, around) if isinstance(around, ast.Assign | ast.NamedExpr) else [made]
    for read in reads or ():
        match parents.get(read):
            case ast.Call(func=ast.Name(id="list" | "tuple" | "iter" | "enumerate" | "reversed" | "print")):
                walk: ast.AST = read
            case ast.For(iter=walked) | ast.comprehension(iter=walked) if walked is read:
                walk = read
            case ast.Attribute(attr="keys" | "values" | "items") as method:
                walk = parents[method]
            case _:
                continue
        if order_matters(inference, walk):
            return True
    return False


def _is_keys(node: ast.AST) -> bool:
    """Whether it is the keys of a dict, which make a set with others."""
    match node:
        case ast.Call(func=ast.Attribute(attr="keys")):
            return True
    return False


_SHARED = frozenset({
    "dtype", "device", "is_cuda", "new", "new_zeros", "new_ones", "new_full", "new_empty", "new_tensor",
})  # fmt: skip
"""What is asked of one parameter because it is the same for all of them."""


def _asks_of_any(inference: Inference, node: ast.AST) -> bool:
    """``next(model.parameters()).device``, at once or through a variable: what is the same for all of them."""
    parent = inference.source.parents.get(node)
    while isinstance(parent, ast.Attribute) and parent.attr == "data":
        node, parent = parent, inference.source.parents.get(parent)
    match parent:
        case ast.Attribute(attr=name):
            return name in _SHARED
        case ast.Assign() | ast.NamedExpr():
            reads = reads_of(inference, parent)
            uses = [*(reads or ()), *([parent] if isinstance(parent, ast.NamedExpr) else ())]
            return reads is not None and all(_is_shared(inference, n) or _asks_whether_any(inference, n) for n in uses)
        case _:
            return False


def _is_shared(inference: Inference, node: ast.AST) -> bool:
    parent = inference.source.parents.get(node)
    return isinstance(parent, ast.Attribute) and parent.attr in _SHARED


def _asks_whether_any(inference: Inference, node: ast.AST) -> bool:
    """``first is None``, or ``exists(first)`` with a function of the program's own that asks no more."""
    match inference.source.parents.get(node):
        case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(value=None)]):
            return left is node
        case ast.Call(func=func, args=[_], keywords=[]) if isinstance(fact := inference.fact(func), Function):
            return isinstance(fact.info.node, ast.FunctionDef) and asks_for_none(fact.info.node)
    return False


def asks_for_none(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether all a function does is compare with None (``exists(m.bias)``): the value itself is not wanted."""
    match function.body:
        case [
            ast.Return(
                value=ast.Compare(left=ast.Name(), ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(value=None)])
            )
        ]:
            return True
    return False


def reads_of(inference: Inference, node: ast.Assign | ast.NamedExpr) -> list[ast.Name] | None:
    """The reads of a variable that only ``node`` binds in its function; None if nobody reads it, or for others."""
    targets = [node.target] if isinstance(node, ast.NamedExpr) else node.targets
    around: ast.AST = node
    while not isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module):
        around = inference.source.parents[around]
    match targets:
        case [ast.Name(id=name)] if not _is_bound_otherwise(around, name):
            uses = [n for n in symbols.walk(around) if isinstance(n, ast.Name) and n.id == name]
            reads = [n for n in uses if isinstance(n.ctx, ast.Load)]
            known = len(reads) == len(uses) - 1 and (reads or isinstance(node, ast.NamedExpr))
            own = set(symbols.walk(node.value))
            return reads if known and own.isdisjoint(reads) else None
        case _:
            return None


def _is_bound_otherwise(scope: ast.AST, name: str) -> bool:
    """Whether a function's name is a parameter, too, or that of a scope around it."""
    return any(
        isinstance(n, ast.Global | ast.Nonlocal) and name in n.names or isinstance(n, ast.arg) and n.arg == name
        for n in symbols.walk(scope)
    )


def _is_list(node: ast.expr) -> bool:
    """Whether a value can be walked again and again."""
    return isinstance(node, ast.ListComp) or (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("list", "tuple")
    )


def walk_alike(inference: Inference, node: ast.Call) -> bool:
    """Whether ``zip`` is given the same walk of modules of one class: they come in pairs in any order."""
    seen = set()
    for argument in node.args:
        match argument:
            case ast.Call(func=ast.Attribute(value=owner, attr=name), args=[]) if name in WALKING:
                fact = inference.fact(owner)
                if not is_module(fact):
                    return False
                seen.add((name, fact.cls.info if isinstance(fact, Instance) else fact))
            case _:
                return False
    return len(seen) == 1


def writes_to_parts(inference: Inference, call: ast.Call) -> bool:
    """Whether a loop or comprehension writes into what it walks over: ``p.data.zero_()``, ``p.data = x``."""
    return _writes_through(inference, call)


def _fills(function: Fact) -> bool:
    """Whether a function writes into what it is given first: ``nn.init.constant_``."""
    return isinstance(function, Qual) and is_torch(function.name) and function.name.endswith("_")


def _writes_through(inference: Inference, walked: ast.AST) -> bool:
    node = walked
    while not isinstance(node, ast.stmt | ast.comprehension):
        node = inference.source.parents[node]
    place = inference.source.parents[node] if isinstance(node, ast.comprehension) else node
    if isinstance(node, ast.Assign) and any(
        _writes_through(inference, read) for read in reads_of(inference, node) or ()
    ):
        return True
    items = {n.id for n in symbols.walk(getattr(node, "target", node)) if isinstance(n, ast.Name)}
    for inner in symbols.walk(place):
        target: ast.AST | None = None
        match inner:
            case ast.Call(func=func, args=[owner, *_]) if _fills(inference.fact(func)):
                target = owner
            case ast.Call(func=ast.Attribute(value=owner, attr=name)) if name.endswith("_") and name[:1] != "_":
                target = owner
            case ast.AugAssign(target=ast.Name() as owner):
                target = owner
            case ast.Attribute(value=owner, ctx=ast.Store()) | ast.Subscript(value=owner, ctx=ast.Store()):
                target = owner
            case _:
                continue
        while isinstance(target, ast.Attribute | ast.Subscript):
            target = target.value
        if isinstance(target, ast.Name) and target.id in items:
            return True
    return False
