"""Steps that hand tensors to functions, which write into them: what a function does stands in the step.

PyTorch's own collect lists of parameters, gradients and states, ``exp_avgs.append(state["exp_avg"])``, and hand them to
a function that walks over the lists, ``adam(params, grads, exp_avgs, lr=group["lr"])``: what it does with the items
of one place is what the step does for one parameter. Functions that only differ in speed (``foreach``) are left out.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeGuard

from t2j_lsp import symbols

from .answers import SPEED, answer, answered, chooses_speed
from .branches import without_continues
from .collected import CollectedItems, empty_lists, given, stored_names, with_tests_of_states
from .functions import KnownFunctions, free_names
from .names import same, writes_into
from .renaming import renamed
from .unfit import Unfit, need
from .walks import Walk

_REBOUND = "a function gives what it takes another value"


class KernelsInStep:
    """The walk of a step with the functions that it hands tensors to in it. Raises Unfit."""

    def __init__(self, walk: Walk, functions: KnownFunctions) -> None:
        self.lists = {name for node in walk.before for name in empty_lists(node)}
        self.functions = functions
        self.inside: set[str] = set()
        """The functions that are put in, by their names."""
        self.given_lists: set[str] = set()
        """Those of them that lists are handed to."""
        self._calling: list[str] = []
        self.nested: list[ast.FunctionDef] = []
        """The functions that stood in these."""
        self._items = CollectedItems(self.lists, walk.parameter, stored_names(functions.own.values()))
        self._taken = {n.id for s in [*walk.before, *walk.body, *walk.after] for n in symbols.walk(s) if _is_name(n)}
        self.walk = self._with_functions(walk)

    def _with_functions(self, walk: Walk) -> Walk:
        if not self.lists:
            return replace(walk, body=self._with_calls(with_tests_of_states(answered(walk.body), set()), set()))
        collected = self._items.without_appends(copy.deepcopy(walk.body))
        before = [s for s in walk.before if not empty_lists(s)]
        kernel = self._all([copy.deepcopy(s) for s in answered(walk.after)], {}, {}, set())
        optional = {ast.unparse(self._items.items[name]) for name in self._items.optional}
        body = with_tests_of_states(answered([*collected, *kernel]), optional)
        return replace(walk, before=answered(before), body=body, after=[])

    def _with_calls(self, body: Sequence[ast.stmt], later: set[str]) -> list[ast.stmt]:
        """Statements with the functions in them that they call for what these write."""
        out: list[ast.stmt] = []
        for at, node in enumerate(body):
            behind = later.union(*map(_names, body[at + 1 :]))
            match node:
                case ast.Expr(value=ast.Call(func=ast.Name(id=name)) as call) if self.functions.fits(name):
                    out += self._function(call, name, ({}, {}), behind)
                    continue
                case ast.If() if any(map(self._calls, ast.walk(node))):
                    then = self._with_calls(node.body, behind) or [ast.copy_location(ast.Pass(), node)]
                    node = ast.copy_location(ast.If(node.test, then, self._with_calls(node.orelse, behind)), node)
            out.append(node)
        return out

    def _calls(self, node: ast.AST) -> bool:
        match node:
            case ast.Expr(value=ast.Call(func=ast.Name(id=name))):
                return self.functions.fits(name)
        return False

    # --- what is done with lists ----------------------------------------------------------------------------------

    def _all(
        self, body: Sequence[ast.stmt], known: dict[str, str], absent: dict[str, ast.expr], later: set[str]
    ) -> list[ast.stmt]:
        """The statements for one parameter.

        ``known`` are variables that hold lists, and functions; ``absent`` says when there is none of a list.
        """
        out: list[ast.stmt] = []
        for at, node in enumerate(body):
            out += self._statement(node, known, absent, later.union(*map(_names, body[at + 1 :])))
        return out

    def _statement(
        self, node: ast.stmt, known: dict[str, str], absent: dict[str, ast.expr], later: set[str]
    ) -> list[ast.stmt]:
        match node:
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                return []
            case ast.Expr(value=ast.Call(func=ast.Name(id=name)) as call) if self._is_seen(known.get(name, name)):
                return self._function(call, known.get(name, name), (known, absent), later)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name(id=function)) if self._is_seen(function):
                known[name] = function
                return []
            case ast.FunctionDef():
                self.nested.append(node)
                return []
            case ast.If(test=test, body=[ast.Raise() | ast.Return() | ast.Continue()], orelse=[]) if self._of_lists(
                test, known
            ):
                return []
            case ast.If(test=test) if (taken := answer(test)) is not None:
                return self._all(node.body if taken else node.orelse, known, absent, later)
            case ast.For() if self._of_lists(node.iter, known):
                return self._loop(node, known, later)
            case ast.If(test=test) if self._of_lists(node, known) and not self._of_lists(test, known):
                body = self._all(node.body, known, absent, later)
                orelse = self._all(node.orelse, known, absent, later)
                return [ast.copy_location(ast.If(test, body or [ast.Pass()], orelse), node)] if body or orelse else []
        if chooses_speed(node):
            return []
        need(not self._of_lists(node, known), "what its function does with lists", node)
        return self._with_calls([node], later)

    def _is_seen(self, name: str) -> bool:
        return name in self.functions.own

    def _of_lists(self, node: ast.AST, known: dict[str, str]) -> bool:
        return bool(_names(node) & (self.lists | {n for n, held in known.items() if held in self.lists}))

    def _function(
        self, call: ast.Call, name: str, around: tuple[dict[str, str], dict[str, ast.expr]], later: set[str]
    ) -> list[ast.stmt]:
        """The statements of a function that is called for what it writes; ``later`` names are read behind it."""
        outer, missing = around
        function = self.functions.get(name)
        assert function is not None
        known_form = not function.args.vararg and not function.args.kwarg
        need(name not in self._calling and known_form, f"how {name} is called", call)
        self._calling.append(name)
        if name in self.functions.own:
            self.inside.add(name)
        bound = list(_bound(call, function))
        known: dict[str, str] = {}
        absent: dict[str, ast.expr] = {}
        for parameter, value in bound:
            held, otherwise = self._list(value, outer)
            if held is not None:
                known[parameter] = held
                if otherwise is not None or held in missing:
                    absent[parameter] = otherwise if otherwise is not None else missing[held]
        if known and name in self.inside:
            self.given_lists.add(name)
        body = answered([_Absence(known, absent).visit(s) for s in copy.deepcopy(function.body)])
        if name not in self.functions.own:
            for inner in (n for s in body for n in ast.walk(s) if isinstance(n, ast.stmt | ast.expr)):
                ast.copy_location(inner, call)
        if body and isinstance(body[-1], ast.Return):
            del body[-1]
        taken = set(self._taken)
        body = self._all(body, dict(known), absent, set())
        self._calling.pop()
        values = {p: v for p, v in bound if p not in known and p not in SPEED}
        own = _stored(body) | values.keys() | known.keys()
        need(not any(free_names(f) & own for f in self.nested), f"a function in {name} that reads its variables", call)
        return self._in_scope(values, body, (later, taken), call)

    def _in_scope(
        self, values: dict[str, ast.expr], body: list[ast.stmt], around: tuple[set[str], set[str]], call: ast.Call
    ) -> list[ast.stmt]:
        """The statements of a function behind what its parameters are given, under names that the step doesn't have.

        ``around`` are the names that are read behind the call, and those that the step has.
        """
        later, taken = around
        changed = {
            n.target.id for s in body for n in ast.walk(s) if isinstance(n, ast.AugAssign) and _is_name(n.target)
        }
        stored = _stored(body)
        written = changed | {into.id for into in _written(body) if isinstance(into, ast.Name)}
        read = set[str]().union(*map(_names, body))
        outside = later.union(*map(_names, values.values()))
        out: list[ast.stmt] = []
        renames: dict[str, str | ast.expr] = {}
        for parameter, value in values.items():
            name = value.id if isinstance(value, ast.Name) else ""
            need(parameter not in stored or parameter not in written or name in ("", parameter), _REBOUND, call)
            need(parameter not in changed or name not in later, _REBOUND, call)
            if parameter not in read:
                continue
            if name == parameter:
                need(parameter not in stored or parameter not in later, _REBOUND, call)
            elif isinstance(value, ast.Name | ast.Constant) and parameter not in stored:
                renames[parameter] = name or value
            elif parameter in taken:
                renames[parameter] = new = self.fresh(parameter)
                out.append(given(new, value))
            else:
                out.append(given(parameter, value))
        for local in sorted(stored - values.keys()):
            if local in outside:
                renames[local] = self.fresh(local)
        self._taken |= stored
        return out + [renamed(s, renames) for s in body]

    def fresh(self, name: str) -> str:
        """A name that no variable of the step has."""
        made = f"its_{name}"
        while made in self._taken:
            made = f"{made}_"
        self._taken.add(made)
        return made

    def _list(self, value: ast.expr, known: dict[str, str]) -> tuple[str | None, ast.expr | None]:
        """The list that a function is given, and the condition under which it is given none."""
        match value:
            case ast.Name(id=name):
                held = known.get(name, name)
                return (held if held in self.lists else None), None
            case ast.IfExp(test=test, body=ast.Name(id=name), orelse=ast.Constant(value=None)):
                held = known.get(name, name)
                return (held if held in self.lists else None), ast.UnaryOp(ast.Not(), test)
        need(not self._of_lists(value, known), "what its function is given", value)
        return None, None

    def _loop(self, node: ast.For, known: dict[str, str], later: set[str]) -> list[ast.stmt]:
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
            if isinstance(target, ast.Name) and item is not None and ast.unparse(item) != target.id:
                out.append(given(target.id, item))
        body = without_continues(node.body)
        changed = [_Items(self, index, known).visit(_of_real_numbers(s)) for s in body]
        need(not any(self._of_lists(s, known) or index in _names(s) for s in changed), "what it does with lists", node)
        self._taken |= set[str]().union(*map(_names, changed))
        return self._with_calls([*out, *changed], later)

    def item(self, node: ast.expr, known: dict[str, str]) -> ast.expr | None:
        """What a list has of the parameter."""
        return self._items.item(known.get(node.id, node.id)) if isinstance(node, ast.Name) else None


class _Items(ast.NodeTransformer):
    """``exp_avgs[i]`` as what the list has of the parameter."""

    def __init__(self, kernels: KernelsInStep, index: str, known: dict[str, str]) -> None:
        self.kernels, self.index, self.known = kernels, index, known

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if isinstance(node.slice, ast.Name) and node.slice.id == self.index:
            item = self.kernels.item(node.value, self.known)
            if item is not None:
                if isinstance(item, ast.Name | ast.Subscript | ast.Attribute):
                    item.ctx = node.ctx
                return ast.copy_location(item, node)
        self.generic_visit(node)
        return node


class _Absence(ast.NodeTransformer):
    """``rectified is None`` of a list: the condition under which there is none."""

    def __init__(self, known: dict[str, str], absent: dict[str, ast.expr]) -> None:
        self.known, self.absent = known, absent

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        match node:
            case ast.Compare(left=ast.Name(id=name), ops=[ast.Is() | ast.IsNot() as op], comparators=[none]):
                if name in self.known and isinstance(none, ast.Constant) and none.value is None:
                    test = copy.deepcopy(self.absent.get(name, ast.Constant(False)))
                    asked = test if isinstance(op, ast.Is) else ast.UnaryOp(ast.Not(), test)
                    return ast.fix_missing_locations(ast.copy_location(asked, node))
        self.generic_visit(node)
        return node


def _of_real_numbers(node: ast.stmt) -> ast.stmt:
    """What takes complex parameters for pairs of real ones, as a check that there are none."""
    match node:
        case ast.If(test=ast.Call(func=ast.Attribute(attr="is_complex")) as test, orelse=[]) if all(
            _takes_real_parts(s) for s in node.body
        ):
            check = ast.Assert(ast.UnaryOp(ast.Not(), test), ast.Constant("parameters are real"))
            return ast.fix_missing_locations(ast.copy_location(check, node))
    return node


def _takes_real_parts(node: ast.stmt) -> bool:
    match node:
        case ast.Assign(value=value):
            return "view_as_real" in ast.unparse(value)
        case ast.If(body=body, orelse=[]):
            return all(map(_takes_real_parts, body))
    return False


def _stored(body: Sequence[ast.stmt]) -> set[str]:
    """The variables that statements give other values."""
    nodes = [n for s in body for n in ast.walk(s)]
    changed = {n.target for n in nodes if isinstance(n, ast.AugAssign)}
    return {n.id for n in nodes if _is_name(n) and isinstance(n.ctx, ast.Store) and n not in changed}


def _written(body: Sequence[ast.stmt]) -> Iterable[ast.expr]:
    """What statements write into, by calls in place."""
    for node in (n for s in body for n in ast.walk(s)):
        if isinstance(node, ast.Call) and (into := writes_into(node)) is not None:
            yield same(into)
        elif isinstance(node, ast.keyword) and node.arg == "out":
            yield same(node.value)


def _is_name(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name)


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


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
    return [(name, _without_scaler(values[name])) for name in parameters]


def _without_scaler(node: ast.expr) -> ast.expr:
    """``None`` for what a scaler of gradients leaves in an optimizer: ``getattr(self, "grad_scale", None)``."""
    match node:
        case ast.Call(func=ast.Name(id="getattr"), args=[ast.Name(id="self"), ast.Constant(value=name), default]):
            return default if name in ("grad_scale", "found_inf") else node
    return node
