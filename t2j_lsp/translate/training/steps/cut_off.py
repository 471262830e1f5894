"""Functions through which no gradient flows to the modules that they call: attacks and samplers, which detach."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from t2j_lsp import symbols
from t2j_lsp.symbols import named_parameters, own_nodes
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.inference.call_sites import bound_arguments, called_function
from t2j_lsp.translate.rule.definitions import is_module
from t2j_lsp.translate.rule.facts import Qual, Scalar
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.training.program.once import GROWING, filled, gives_number

_CUTS = names_with(Trait.STOPS_GRADIENT)
_OF_SIZES = (names_with(Trait.CONSTANT), names_with(Trait.OF_SHAPE))
_ABOUT = names_with(Trait.ABOUT)


def carrying_gradients(context: Context, call: ast.Call) -> Sequence[ast.expr] | None:
    """The arguments by which what a call gives carries gradients, if it carries none of a module; None if it may.

    A function of the file may give a number, or what was detached: ``return x_adv.detach()``.
    """
    if gives_number(context.inference, call) or _copies_state(context, call) or _is_made_of_sizes(context, call):
        return ()
    info = called_function(context.fact(call.func))
    if info is None and (arrays := _without_devices(call)) is not None:
        return arrays
    if info is None or info.external or filled(context.inference, info) or _keeps_values(info.node):
        return None
    returned = [n.value for n in own_nodes(info.node) if isinstance(n, ast.Return) and n.value is not None]
    parameters = set[str]()
    if not returned or not all(_is_cut(context, info.node, value, set(), parameters) for value in returned):
        return None
    given = {parameter.arg: value for parameter, value in bound_arguments(call, info)}
    if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
        return None
    return [value for name, value in given.items() if name in parameters]


def is_detached(context: Context, call: ast.Call) -> bool:
    """``generator(z).detach()``."""
    match call.func:
        case ast.Attribute(attr=attr, value=value) if attr in _CUTS:
            return called_function(context.fact(call.func)) is None and not is_module(context.fact(value))
    return False


def _is_made_of_sizes(context: Context, call: ast.Call) -> bool:
    """``torch.ones((len(x), *critic.output_shape))``, or an array that NumPy makes."""
    fact = context.fact(call.func)
    return isinstance(fact, Qual) and (any(fact.name in one for one in _OF_SIZES) or fact.name.startswith("numpy."))


def _without_devices(call: ast.Call) -> Sequence[ast.expr] | None:
    """What ``x.to(net.device)`` is given besides a device; None if no module is asked for one."""
    given = [*call.args, *(k.value for k in call.keywords)]
    others = [one for one in given if not (isinstance(one, ast.Attribute) and one.attr in ("device", "dtype"))]
    return [call.func, *others] if len(others) < len(given) else None


def _copies_state(context: Context, call: ast.Call) -> bool:
    """``target.load_state_dict(net.state_dict())``: the values are copied, behind the gradients' back."""
    match call.func:
        case ast.Attribute(attr="load_state_dict" | "state_dict", value=module):
            return is_module(context.fact(module)) and called_function(context.fact(call.func)) is None
    return False


def _is_cut(
    context: Context,
    function: ast.FunctionDef | ast.AsyncFunctionDef,
    node: ast.expr,
    seen: set[str],
    parameters: set[str],
) -> bool:
    """Whether an expression is made of numbers, of what was detached, and of parameters, which are added to a set."""
    if isinstance(context.fact(node), Scalar):
        return True
    match node:
        case ast.Constant():
            return True
        case ast.Attribute(attr=attr) if attr in _CUTS or attr in _ABOUT or attr == "grad":
            return True
        case ast.Call(func=ast.Attribute(attr=attr) as func) if attr in _CUTS or attr in _ABOUT or attr == "detach_":
            return called_function(context.fact(func)) is None and not is_module(context.fact(func.value))
        case ast.Call(func=ast.Attribute(attr="grad") as func, args=args) if _is_library(context, func):
            return len(args) <= 4  # create_graph, by place; by name the function was left before
        case ast.Name(id=name):
            if name in seen:
                return True
            if is_module(context.fact(node)):
                return False
            values = list(_values(function, name))
            is_parameter = any(a.arg == name for a in named_parameters(function))
            parameters |= {name} if is_parameter else set()
            inner = {*seen, name}
            each = [v is not None and _is_cut(context, function, v, inner, parameters) for v in values]
            return (bool(values) or is_parameter) and all(each)
        case ast.BinOp(left=left, right=right):
            return _is_cut(context, function, left, seen, parameters) and _is_cut(
                context, function, right, seen, parameters
            )
        case ast.UnaryOp(operand=inner) | ast.Subscript(value=inner):
            return _is_cut(context, function, inner, seen, parameters)
        case ast.Tuple(elts=elts) | ast.List(elts=elts):
            return all(_is_cut(context, function, one, seen, parameters) for one in elts)
        case ast.Call(func=func, args=args, keywords=keywords):
            if called_function(context.fact(func)) is not None or is_module(context.fact(func)):
                return False
            given = [*args, *(k.value for k in keywords)]
            if isinstance(func, ast.Attribute) and not _is_library(context, func):
                given.append(func.value)
            elif not isinstance(func, ast.Attribute):
                return False
            return all(_is_cut(context, function, one, seen, parameters) for one in given)
    return False


def _keeps_values(function: ast.AST) -> bool:
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


def _is_library(context: Context, func: ast.Attribute) -> bool:
    """Whether what is called is a function of PyTorch, and no method of a value."""
    return isinstance(func.value, ast.Name | ast.Attribute) and isinstance(context.fact(func.value), Qual)


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
