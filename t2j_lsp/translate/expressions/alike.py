"""Loops over the parameters of modules of one class in pairs: an average of two, element by element.

``for p, q in zip(ema.parameters(), model.parameters()): p.data.mul_(d).add_(q.data, alpha=1 - d)`` does the same in
PyTorch's layouts and in Flax's, since both parameters have the same one.
"""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.symbols import nearest, with_ancestors
from t2j_lsp.translate.inference.call_sites import called_function, facts_given
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.forward_pass import UnknownParameter
from t2j_lsp.translate.rule.definitions import FunctionInfo, Instance, is_module
from t2j_lsp.translate.rule.facts import Qual, Tensor
from t2j_lsp.translate.rule.library import Trait, names_with

from .walk_order import walk_alike

_METHODS = names_with(Trait.ELEMENTWISE_IN_PLACE)
_VALUES = names_with(Trait.SAME_VALUES)
_OF_PAIRS = names_with(Trait.OF_PAIRS)


def writes_alike(inference: Inference, statement: ast.AST | None) -> bool:
    """Whether a statement writes into a parameter what it computes of it and its pair, element by element."""
    if not isinstance(statement, ast.stmt):
        return False
    for place in with_ancestors(statement, inference.source.parents):
        if isinstance(place, ast.FunctionDef | ast.ClassDef):
            return False
        if isinstance(place, ast.For) and (names := _paired(inference, place)):
            return _statement(inference, statement, names)
    return False


def _paired(inference: Inference, loop: ast.For) -> set[str]:
    """The names of the parameters that a loop takes in pairs, and of what it computes of them."""
    match loop:
        case (
            ast.For(target=ast.Name(id=key), iter=ast.Name(id=walked) | ast.Call(
                func=ast.Attribute(value=ast.Name(id=walked), attr="keys")))
            | ast.For(target=ast.Tuple(elts=[ast.Name(id=key), ast.Name()]), iter=ast.Call(
                func=ast.Attribute(value=ast.Name(id=walked), attr="items")))
        ) if walked in (dicts := _by_name(inference, loop)):  # fmt: skip
            pairs_of = {holder for holder, owner in dicts.items() if owner == dicts[walked]}
            names = {f"{holder}[{key}]" for holder in pairs_of}
            if isinstance(loop.target, ast.Tuple):
                names.add(ast.unparse(loop.target.elts[1]))
        case ast.For(target=ast.Tuple(elts=targets), iter=ast.Call(func=ast.Name(id="zip"), args=args) as pairs):
            if len(targets) != len(args) or not walk_alike(inference, pairs):
                return set()
            names = {t.id for t in targets if isinstance(t, ast.Name)}
            for target in targets:
                if isinstance(target, ast.Tuple) and len(target.elts) == 2:  # a name and a parameter
                    names |= {t.id for t in target.elts[1:] if isinstance(t, ast.Name)}
        case ast.For(
            target=ast.Tuple(elts=[ast.Name(id=key), ast.Name(id=name)]),
            iter=ast.Call(func=ast.Attribute(value=owner, attr="named_parameters"), args=[], keywords=[]),
        ):
            same = _class(inference, owner)
            of_pairs = {holder for holder, cls in _by_name(inference, loop).items() if cls == same}
            names = {name, f"[{key}]", *(f"{holder}[{key}]" for holder in of_pairs)}
        case _:
            return set()
    return _computed(inference, loop, names)


def _by_name(inference: Inference, loop: ast.For) -> dict[str, object]:
    """The dicts of a module's parameters by their names that a function makes, with the module's class."""
    classes: dict[str, object] = {}
    function = nearest(ast.FunctionDef, loop, inference.source.parents)
    for node in symbols.walk(function) if function is not None else inference.source.tree.body:
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(
                    func=ast.Name(id="dict"),
                    args=[ast.Call(func=ast.Attribute(value=owner, attr="named_parameters"), args=[], keywords=[])],
                    keywords=[],
                ),
            ):
                classes[name] = None if name in classes else _class(inference, owner)
    return {name: cls for name, cls in classes.items() if cls is not None}


def _class(inference: Inference, owner: ast.expr) -> object:
    fact = inference.fact(owner)
    return fact.cls.info if isinstance(fact, Instance) else fact if is_module(fact) else None


def _computed(inference: Inference, loop: ast.For, names: set[str]) -> set[str]:
    """The names of parameters, and of what a loop computes of them."""
    for statement in (n for s in loop.body for n in symbols.walk(s)):
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _elementwise(inference, value, names):
                names.add(name)
            case ast.Assign(targets=[ast.Tuple(elts=elts)], value=ast.Tuple(elts=values)) if all(
                _elementwise(inference, value, names) for value in values
            ):
                names |= {e.id for e in elts if isinstance(e, ast.Name)}
    return names


def _statement(inference: Inference, statement: ast.stmt, names: set[str]) -> bool:
    match statement:
        case ast.Expr(value=value) | ast.Assign(targets=[ast.Attribute(attr="data")], value=value):
            return _elementwise(inference, value, names)
    return False


def _elementwise(inference: Inference, node: ast.expr, names: set[str]) -> bool:
    """Whether an expression treats all elements of the parameters alike, and reads no other tensors."""
    match node:
        case ast.Name(id=name):
            fact = inference.fact(node)
            return name in names or not isinstance(fact, Tensor) or fact.rank == 0
        case ast.Constant():
            return True
        case ast.Attribute(value=value, attr=attr):
            of_self = isinstance(value, ast.Name) and not isinstance(inference.fact(node), Tensor)
            return of_self or attr == "data" and _elementwise(inference, value, names)
        case ast.Subscript(value=holder, slice=ast.Name(id=key)):
            text = ast.unparse(holder)
            return f"{text}[{key}]" in names or f"[{key}]" in names and holds_parameters(inference, text)
        case ast.UnaryOp(operand=operand):
            return _elementwise(inference, operand, names)
        case ast.BinOp(left=left, op=op, right=right) if not isinstance(op, ast.MatMult):
            return _elementwise(inference, left, names) and _elementwise(inference, right, names)
        case ast.Call(func=func, args=args, keywords=keywords):
            if not all(_elementwise(inference, given, names) for given in [*args, *(k.value for k in keywords)]):
                return False
            fact = inference.fact(func)
            if isinstance(fact, Qual):
                return fact.name in _OF_PAIRS
            if infos := _called(inference, func):
                return all(_averages(inference, info) for info in infos)
            if isinstance(func, ast.Attribute) and func.attr in _METHODS | _VALUES | _OF_PAIRS:
                return _elementwise(inference, func.value, names)
    return False


def _called(inference: Inference, func: ast.expr) -> list[FunctionInfo]:
    """The functions of the file that a call may run; those of a method of what every call gives a parameter."""
    if (info := called_function(inference.fact(func))) is not None:
        return [info]
    if not isinstance(func, ast.Attribute) or not isinstance(inference.fact(func.value), UnknownParameter):
        return []
    given = list(facts_given(inference, func.value))
    methods = [one.cls.info.method(func.attr) if isinstance(one, Instance) else None for one in given]
    return [info for info in methods if info is not None] if None not in methods else []


def holds_parameters(inference: Inference, holder: str) -> bool:
    """Whether a dictionary has, under the names of a module's parameters, what is computed of each of them alone.

    ``for name, p in model.named_parameters(): self.shadow[name] = p.data.clone()``, and nothing else is put into it.
    """
    classes: set[object] = set()
    stores = [n for n in inference.source.nodes if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store)]
    stores = [n for n in stores if ast.unparse(n.value) == holder]
    for store in stores:
        statement = inference.source.parents[store]
        around = with_ancestors(store, inference.source.parents)
        match next((place for place in around if isinstance(place, ast.For)), None), statement:
            case (
                ast.For(
                    target=ast.Tuple(elts=[ast.Name(id=key), ast.Name(id=name)]),
                    iter=ast.Call(func=ast.Attribute(attr="named_parameters", value=owner), args=[], keywords=[]),
                ) as loop,
                ast.Assign(value=value),
            ) if ast.unparse(store.slice) == key:
                fact = inference.fact(owner)
                classes.add(fact.cls.info if isinstance(fact, Instance) else fact)
                names = _computed(inference, loop, {name, f"{holder}[{key}]"})
                if not _elementwise(inference, value, names):
                    return False
            case _:
                return False
    return len(classes) == 1


def _averages(inference: Inference, info: FunctionInfo) -> bool:
    """Whether a function returns nothing but what is computed element by element of what it is given."""
    given = symbols.parameter_names(info.node)
    for statement in symbols.walk(info.node):
        if isinstance(statement, ast.Return):
            if statement.value is None or not _elementwise(inference, statement.value, given):
                return False
        elif isinstance(statement, ast.stmt) and not isinstance(statement, ast.FunctionDef | ast.If | ast.Expr):
            return False
    return True
