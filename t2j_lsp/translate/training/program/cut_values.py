"""Values through which no gradient flows: made of numbers, and of what was detached."""

from __future__ import annotations

import ast
from collections.abc import Collection, Container, Iterator

from t2j_lsp import symbols
from t2j_lsp.symbols import named_parameters, own_nodes
from t2j_lsp.translate.inference.call_sites import bound_arguments, called_function
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import FunctionInfo, is_module
from t2j_lsp.translate.rule.facts import Qual, Scalar, Tensor
from t2j_lsp.translate.rule.library import Trait, names_with

GROWING = frozenset({"append", "extend", "insert", "add", "appendleft"})
CUTS = names_with(Trait.STOPS_GRADIENT)
_ABOUT = names_with(Trait.ABOUT)
_OF_SIZES = (names_with(Trait.CONSTANT), names_with(Trait.OF_SHAPE))


def is_cut(
    inference: Inference,
    function: ast.FunctionDef | ast.AsyncFunctionDef,
    node: ast.expr,
    seen: set[str],
    parameters: set[str],
) -> bool:
    """Whether an expression is made of numbers, of what was detached, and of parameters, which are added to a set."""
    if isinstance(inference.fact(node), Scalar):
        return True
    match node:
        case ast.Constant():
            return True
        case ast.Attribute(attr=attr) if attr in CUTS or attr in _ABOUT or attr == "grad":
            return True
        case ast.Call(func=ast.Attribute(attr=attr) as func) if attr in CUTS or attr in _ABOUT or attr == "detach_":
            return called_function(inference.fact(func)) is None and not is_module(inference.fact(func.value))
        case ast.Call(func=ast.Attribute(attr="grad") as func, args=args) if _is_library(inference, func):
            return len(args) <= 4  # create_graph, by place; by name the function was left before
        case ast.Name(id=name):
            if name in seen:
                return True
            if is_module(inference.fact(node)):
                return False
            values = list(_values(function, name))
            is_parameter = any(a.arg == name for a in named_parameters(function))
            parameters |= {name} if is_parameter else set()
            inner = {*seen, name}
            each = [v is not None and is_cut(inference, function, v, inner, parameters) for v in values]
            return (bool(values) or is_parameter) and all(each)
        case ast.BinOp(left=left, right=right):
            return all(is_cut(inference, function, one, seen, parameters) for one in (left, right))
        case ast.UnaryOp(operand=inner) | ast.Subscript(value=inner):
            return is_cut(inference, function, inner, seen, parameters)
        case ast.Tuple(elts=elts) | ast.List(elts=elts):
            return all(is_cut(inference, function, one, seen, parameters) for one in elts)
        case ast.Call() if is_made_of_sizes(inference, node):
            return True
        case ast.ListComp(elt=one) | ast.GeneratorExp(elt=one):
            return is_cut(inference, function, one, seen, parameters)
        case ast.Call(func=func, args=args, keywords=keywords):
            given = [*args, *(k.value for k in keywords)]
            if (info := called_function(inference.fact(func))) is not None:
                carrying = None if info.name + "()" in seen else returned_from(inference, info, node, seen)
                given = carrying if carrying is not None else [func]
            if is_module(inference.fact(func)):
                return False
            if info is None and isinstance(func, ast.Attribute) and not _is_library(inference, func):
                given.append(func.value)
            elif info is None and not isinstance(func, ast.Attribute) and ast.unparse(func) not in ("tuple", "list"):
                return False
            return all(is_cut(inference, function, one, seen, parameters) for one in given)
    return False


def is_made_of_sizes(inference: Inference, call: ast.Call) -> bool:
    """``torch.ones((len(x), *critic.output_shape))``, or an array that NumPy makes."""
    fact = inference.fact(call.func)
    return isinstance(fact, Qual) and (any(fact.name in one for one in _OF_SIZES) or fact.name.startswith("numpy."))


def returned_from(
    inference: Inference, info: FunctionInfo, call: ast.Call, seen: Collection[str] = ()
) -> list[ast.expr] | None:
    """The arguments of a call that gradients of what it returns flow to; None if they may flow to others, too."""
    if info.external or keeps_values(info.node):
        return None
    returned = [n.value for n in own_nodes(info.node) if isinstance(n, ast.Return) and n.value is not None]
    running = {name for name in seen if name.endswith("()")} | {info.name + "()"}
    parameters = set[str]()
    if not returned or not all(is_cut(inference, info.node, value, running, parameters) for value in returned):
        return None
    return arguments_of(call, info, parameters)


def _grows(info: FunctionInfo, call: ast.Call) -> bool:
    """Whether a call adds to a list that a method doesn't make anew, of which each length would be compiled."""
    match call.func:
        case ast.Attribute(attr=attr, value=ast.Attribute() as held) if attr in GROWING:
            given = [t for s in own_nodes(info.node) if isinstance(s, ast.Assign) for t in s.targets]
            return ast.unparse(held) not in map(ast.unparse, given)
    return False


def _kept_by(inference: Inference, call: ast.Call, running: frozenset[FunctionInfo]) -> list[ast.expr] | None:
    """What a call in a module's method may put into the module; None if nothing is known of it."""
    called, func = inference.fact(call.func), call.func
    info = called_function(called)
    if is_module(called) or isinstance(func, ast.Name) and func.id == "setattr":
        return None
    if info is not None and info.runs_in_module and not _returns(info):
        return sets_state(inference, info, call, running)
    if info is not None:
        return None if info.external or keeps_values(info.node) else []
    if not isinstance(func, ast.Attribute):
        return []
    if is_module(inference.fact(func.value)):
        return [] if func.attr == "parameters" else None
    changes = func.attr in GROWING | {"update", "setdefault"} or func.attr.endswith("_")
    return [*call.args, *(keyword.value for keyword in call.keywords)] if changes else []


def _returns(info: FunctionInfo) -> bool:
    """Whether a function gives something back."""
    return any(isinstance(n, ast.Return) and n.value is not None for n in own_nodes(info.node))


def arguments_of(call: ast.Call, info: FunctionInfo, parameters: Container[str]) -> list[ast.expr] | None:
    """What a call gives some parameters; None if that isn't written out."""
    if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
        return None
    return [value for parameter, value in bound_arguments(call, info) if parameter.arg in parameters]


def keeps_values(function: ast.AST) -> bool:
    """Whether a function keeps what has a gradient: in a list, in an attribute, or as the graph of a gradient."""
    for node in symbols.walk(function):
        if isinstance(node, ast.keyword) and node.arg in ("create_graph", None):
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in GROWING:
            return True
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if node.attr not in ("requires_grad", "data", "grad"):
                return True
    return False


def sets_state(
    inference: Inference, info: FunctionInfo, call: ast.Call, running: frozenset[FunctionInfo] = frozenset()
) -> list[ast.expr] | None:
    """The arguments by which a method gives its module values that carry gradients; None if it may do so by others.

    ``net.reset_states(batch)``: zeros are put into its attributes.
    """
    parameters = set[str]()
    if info.external or info in running or not info.runs_in_module or _returns(info):
        return None
    for node in own_nodes(info.node):
        kept: list[ast.expr] = []
        match node:
            case ast.Assign(targets=targets, value=value) if not all(isinstance(t, ast.Name) for t in targets):
                kept = [value]
            case ast.AugAssign(target=ast.Attribute() | ast.Subscript() as target, value=value):
                if not isinstance(inference.fact(target), Tensor):
                    return None  # compiled code would be compiled anew for each count
                kept = [value]
            case ast.Call():
                given = _kept_by(inference, node, running | {info})
                if given is None or _grows(info, node):
                    return None
                kept = given
            case ast.Global() | ast.Nonlocal() | ast.Delete() | ast.AnnAssign() | ast.Yield() | ast.Await():
                return None
            case ast.FunctionDef() | ast.Lambda() | ast.NamedExpr() | ast.keyword(arg="create_graph" | None):
                return None
        for value in kept:
            fact = inference.fact(value)
            if is_module(fact) or isinstance(fact, Tensor) and fact.variable:
                return None
            if not is_cut(inference, info.node, value, set(), parameters):
                return None
    return arguments_of(call, info, parameters)


def _is_library(inference: Inference, func: ast.Attribute) -> bool:
    """Whether what is called is a function of PyTorch, and no method of a value."""
    return isinstance(func.value, ast.Name | ast.Attribute) and isinstance(inference.fact(func.value), Qual)


def _values(function: ast.AST, name: str) -> Iterator[ast.expr | None]:
    """What a function gives a variable; None for what isn't an assignment of one name."""
    for node in symbols.walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=one)], value=value) if one == name:
                yield value
            case ast.AugAssign(target=ast.Name(id=one), value=value) if one == name:
                yield value
            case ast.Assign() | ast.AnnAssign() | ast.For() | ast.NamedExpr() | ast.With() | ast.comprehension():
                held = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
                if isinstance(node, ast.With):
                    held = [item.optional_vars for item in node.items]
                for target in held:
                    named = [n for n in symbols.walk(target) if isinstance(n, ast.Name)] if target is not None else []
                    if any(n.id == name and not isinstance(n.ctx, ast.Load) for n in named):
                        yield None
