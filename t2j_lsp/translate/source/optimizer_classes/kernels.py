"""Steps that collect lists of parameters, gradients and states, and hand them to a function that walks over the lists.

``exp_avgs.append(state["exp_avg"])``, then ``adam(params, grads, exp_avgs, lr=group["lr"])``: what it does with
the items of one place is what the step does for one parameter. Functions that only differ in speed (``foreach``) are
left out.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Sequence
from dataclasses import replace

from t2j_lsp import symbols

from .names import same
from .unfit import Unfit, need
from .walks import Walk

_SPEED = ("foreach", "fused", "capturable", "differentiable")


def of_one_parameter(walk: Walk, functions: dict[str, ast.FunctionDef]) -> tuple[Walk, set[str]]:
    """The walk with the functions that it hands lists to in it, and their names. Raises Unfit."""
    lists = {name for node in walk.before for name in _empty_lists(node)}
    if not lists:
        return walk, set()
    kernels = _Kernels(lists, functions)
    body = kernels.without_appends(copy.deepcopy(walk.body))
    before = [s for s in walk.before if not _empty_lists(s)]
    calls = [copy.deepcopy(s) for s in walk.after]
    kernel = [s for call in calls for s in kernels.statement(call, {})]
    return replace(walk, before=before, body=[*body, *kernel], after=[]), kernels.inside


def _empty_lists(node: ast.stmt) -> set[str]:
    """The variables that a statement gives empty lists."""
    match node:
        case ast.Assign(targets=targets, value=ast.List(elts=[])) if all(isinstance(t, ast.Name) for t in targets):
            return {t.id for t in targets if isinstance(t, ast.Name)}
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.List(elts=[])):
            return {name}
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
            empty = all(isinstance(v, ast.List) and not v.elts for v in values)
            return {n.id for n in names if isinstance(n, ast.Name)} if empty and values else set()
    return set()


class _Kernels:
    def __init__(self, lists: set[str], functions: dict[str, ast.FunctionDef]) -> None:
        self.lists, self.functions = lists, functions
        self.items: dict[str, ast.expr] = {}
        """What each list has of the parameter."""
        self.inside: set[str] = set()
        """The functions that are put in."""

    # --- what is collected ----------------------------------------------------------------------------------------

    def without_appends(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Statements without those that collect, of which the items are kept."""
        out: list[ast.stmt] = []
        for node in body:
            match node:
                case ast.Expr(
                    value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[item])
                ) if name in self.lists:
                    need(name not in self.items, f"what it collects in {name}", node)
                    out += self._kept(name, item)
                    continue
                case ast.If():
                    node.body = self.without_appends(node.body) or [ast.copy_location(ast.Pass(), node)]
                    node.orelse = self.without_appends(node.orelse)
            out.append(node)
        return out

    def _kept(self, name: str, item: ast.expr) -> list[ast.stmt]:
        """What computes an item, if it is no name of a tensor."""
        plain = isinstance(same(item), ast.Name | ast.Subscript) or isinstance(item, ast.Attribute)
        self.items[name] = item if plain else ast.copy_location(ast.Name(f"{name}_item", ast.Load()), item)
        return [] if plain else [_given(f"{name}_item", item)]

    # --- what is done with it -------------------------------------------------------------------------------------

    def statement(self, node: ast.stmt, known: dict[str, str]) -> list[ast.stmt]:
        """The statements for one parameter; ``known`` are variables that hold lists, and functions."""
        match node:
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                return []
            case ast.Expr(value=ast.Call(func=ast.Name(id=name)) as call) if known.get(name, name) in self.functions:
                return self._function(call, known.get(name, name), known)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name(id=function)) if function in self.functions:
                known[name] = function
                return []
            case ast.Assign(targets=[ast.Name(id=name)]) if name in _SPEED:
                return []
            case ast.If(test=test) if _names(test) & set(_SPEED):
                taken = _without_speed(test)
                need(taken is not None, "what its function does for speed", node)
                return self._all(node.body if taken else node.orelse, known)
            case ast.If(test=test, body=[ast.Raise() | ast.Return()], orelse=[]) if self._of_lists(test, known):
                return []
            case ast.For() if self._of_lists(node.iter, known):
                return self._loop(node, known)
        need(not self._of_lists(node, known), "what its function does with lists", node)
        return [node]

    def _all(self, body: Sequence[ast.stmt], known: dict[str, str]) -> list[ast.stmt]:
        return [s for node in body for s in self.statement(node, known)]

    def _of_lists(self, node: ast.AST, known: dict[str, str]) -> bool:
        return bool(_names(node) & (self.lists | {n for n, held in known.items() if held in self.lists}))

    def _function(self, call: ast.Call, name: str, known: dict[str, str]) -> list[ast.stmt]:
        """The statements of a function that is called with lists."""
        function = self.functions[name]
        need(
            name not in self.inside and not function.args.vararg and not function.args.kwarg,
            f"how {name} is called",
            call,
        )
        self.inside.add(name)
        out: list[ast.stmt] = []
        inner: dict[str, str] = {}
        for parameter, value in _bound(call, function):
            held = known.get(value.id, value.id) if isinstance(value, ast.Name) else ""
            if held in self.lists:
                inner[parameter] = held
            elif parameter not in _SPEED and not (isinstance(value, ast.Name) and value.id == parameter):
                need(not self._of_lists(value, known), f"what {name} is given", call)
                out.append(_given(parameter, value))
        return out + self._all(copy.deepcopy(function.body), inner)

    def _loop(self, node: ast.For, known: dict[str, str]) -> list[ast.stmt]:
        """The statements of a loop over lists, for the items of one place."""
        index, named = "", list[tuple[ast.expr, ast.expr]]()
        match node.target, node.iter:
            case ast.Tuple(elts=[ast.Name(id=index), target]), ast.Call(func=ast.Name(id="enumerate"), args=[iterated]):
                named = [(target, iterated)]
            case ast.Name(id=index), ast.Call(
                func=ast.Name(id="range"), args=[ast.Call(func=ast.Name(id="len"), args=[ast.Name()])]
            ):
                pass
            case target, iterated:
                named = [(target, iterated)]
        pairs: list[tuple[ast.expr, ast.expr]] = []
        for target, iterated in named:
            match target, iterated:
                case ast.Tuple(elts=targets), ast.Call(func=ast.Name(id="zip"), args=args) if len(targets) == len(args):
                    pairs += zip(targets, args, strict=True)
                case _:
                    pairs.append((target, iterated))
        out: list[ast.stmt] = []
        for target, iterated in pairs:
            item = self.item(iterated, known)
            need(isinstance(target, ast.Name) and item is not None, "how its function walks over lists", node)
            if isinstance(target, ast.Name) and item is not None:
                out.append(_given(target.id, item))
        changed = [_Items(self, index, known).visit(_of_real_numbers(s)) for s in node.body]
        need(not any(self._of_lists(s, known) or index in _names(s) for s in changed), "what it does with lists", node)
        return out + changed

    def item(self, node: ast.expr, known: dict[str, str]) -> ast.expr | None:
        """What a list has of the parameter."""
        name = known.get(node.id, node.id) if isinstance(node, ast.Name) else ""
        return copy.deepcopy(self.items.get(name))


class _Items(ast.NodeTransformer):
    """``exp_avgs[i]`` as what the list has of the parameter."""

    def __init__(self, kernels: _Kernels, index: str, known: dict[str, str]) -> None:
        self.kernels, self.index, self.known = kernels, index, known

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if isinstance(node.slice, ast.Name) and node.slice.id == self.index:
            item = self.kernels.item(node.value, self.known)
            if item is not None:
                return ast.copy_location(item, node)
        self.generic_visit(node)
        return node


def _given(name: str, value: ast.expr) -> ast.stmt:
    made = ast.Assign([ast.Name(name, ast.Store())], copy.deepcopy(value))
    return ast.fix_missing_locations(ast.copy_location(made, value))


def _of_real_numbers(node: ast.stmt) -> ast.stmt:
    """What takes complex parameters for pairs of real ones, as a check that there are none."""
    match node:
        case ast.If(test=ast.Call(func=ast.Attribute(attr="is_complex")) as test, orelse=[]) if all(
            isinstance(s, ast.Assign) and "view_as_real" in ast.unparse(s.value) for s in node.body
        ):
            check = ast.Assert(ast.UnaryOp(ast.Not(), test), ast.Constant("parameters are real"))
            return ast.fix_missing_locations(ast.copy_location(check, node))
    return node


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in symbols.walk(node) if isinstance(n, ast.Name)}


def _bound(call: ast.Call, function: ast.FunctionDef) -> Iterable[tuple[str, ast.expr]]:
    """What a call gives for each parameter, with the defaults of those that it gives nothing for. Raises Unfit."""
    parameters = [a.arg for a in symbols.named_parameters(function)]
    plain = [a.arg for a in symbols.positional_parameters(function)]
    values: dict[str, ast.expr] = {a.arg: d for a, d in symbols.defaults(function.args)}
    need(len(call.args) <= len(plain), f"how {function.name} is called", call)
    values.update(zip(plain, call.args, strict=False))
    values.update({k.arg: k.value for k in call.keywords if k.arg is not None})
    if any(name not in values for name in parameters) or values.keys() - set(parameters):
        raise Unfit(f"how {function.name} is called", call)
    return [(name, values[name]) for name in parameters]


def _without_speed(test: ast.expr) -> bool | None:
    """What a test is where nothing is done for speed; None where that isn't known."""
    match test:
        case ast.Name(id=name) if name in _SPEED:
            return False
        case ast.Call(func=ast.Name(id=name), args=[ast.Name(id=asked), *_]) if asked in _SPEED and asked in name:
            return False  # ``_resolve_foreach(foreach, params)``
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = _without_speed(operand)
            return None if inner is None else not inner
        case ast.BoolOp(op=ast.And(), values=values):
            return False if any(_without_speed(v) is False for v in values) else None
        case ast.Compare(left=ast.Name(id=name), ops=[ast.Is()], comparators=[ast.Constant(value=None)]):
            return False if name in _SPEED else None
    return None
