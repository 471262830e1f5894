"""Functions kept in attributes that hold modules: ``self.act = lambda x: self.norm(x).relu()``.

`nnx.jit` and `nnx.grad` work on a copy of a module. A function in an attribute still holds the modules of the original:
what it computes has no gradient, or a tracer leaks. A method gets the module it is called on, so a lambda becomes one.
"""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import ExpressionRenderer
from t2j_lsp.translate.inference.call_sites import bound_arguments, called_function
from t2j_lsp.translate.rule.definitions import Function, FunctionInfo, Instance, is_module
from t2j_lsp.translate.rule.facts import Fact, ListOf, Tuple

_REASON = (
    "the function in {} holds modules: under nnx.jit and nnx.grad it would use the original's, not the copy's; "
    "make it a method"
)
_ASKING = frozenset({"callable", "isfunction"})
"""Functions that ask whether something is a function."""


class CapturedModules:
    """Assignments of functions that hold modules to attributes of a module."""

    def __init__(self, context: Context, renderer: ExpressionRenderer) -> None:
        self.ctx = context
        self.renderer = renderer

    def assigned(self, node: ast.Assign, target: ast.Attribute, owner: Instance) -> bool:
        """Make a method of it, or report it; whether there was such a function."""
        if not owner.cls.info.is_module or not any(map(self._holds_modules, self._kept(node.value))):
            return False
        if not self._becomes_a_method(node, target):
            self.ctx.report.gap(node, "torch.nn.Module", "refused", _REASON.format(ast.unparse(target)))
        return True

    def _kept(self, value: ast.expr) -> list[ast.AST]:
        """The nodes of a value, without the lambdas in it that a function of the file calls and doesn't hand on."""
        if isinstance(value, ast.Compare) or isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not):
            return []  # a bool holds nothing
        called: set[ast.AST] = set()
        for call in (n for n in symbols.walk(value) if isinstance(n, ast.Call)):
            info = called_function(self.ctx.fact(call.func))
            for parameter, given in bound_arguments(call, info) if info is not None else ():
                if info is not None and isinstance(given, ast.Lambda) and _is_only_called(parameter.arg, info.node):
                    called.update(symbols.walk(given))
        return [n for n in symbols.walk(value) if n not in called]

    def _holds_modules(self, node: ast.AST) -> bool:
        match node:
            case ast.Lambda():
                return any(self._is_held(n) for n in self._free_names(node))
            case ast.Name() if isinstance(fact := self.ctx.fact(node), Function) and self._is_nested(fact.info):
                own = self.ctx.source.symbols.bound(fact.info.node)
                names = [n for n in symbols.walk(fact.info.node) if isinstance(n, ast.Name)]
                return any(self._is_held(n) for n in names if n.id not in own)
            case ast.Attribute(ctx=ast.Load()) if not self._is_called(node):
                fact, owner = self.ctx.fact(node), self.ctx.fact(node.value)
                bound = isinstance(fact, Function) and fact.info.owner is not None and not fact.info.static
                return is_module(owner) and (bound or node.attr == "forward")
            case _:
                return False

    def _is_nested(self, info: FunctionInfo) -> bool:
        """Whether a function stands inside another of this file."""
        return info.outer is not None and info.node in self.ctx.inference.functions

    def _is_called(self, node: ast.expr) -> bool:
        parent = self.ctx.source.parents.get(node)
        return isinstance(parent, ast.Call) and parent.func is node or isinstance(parent, ast.Attribute)

    def _free_names(self, node: ast.Lambda) -> list[ast.Name]:
        own = symbols.parameter_names(node)
        return [n for n in symbols.walk(node.body) if isinstance(n, ast.Name) and n.id not in own]

    def _is_held(self, node: ast.Name) -> bool:
        return _holds(self.ctx.fact(node))

    # --- a lambda becomes a method ------------------------------------------------------------------------------------

    def _becomes_a_method(self, node: ast.Assign, target: ast.Attribute) -> bool:
        """``m = self.mlp; self.f = lambda x: m.fc(x)`` is ``def f(self, x): m = self.mlp; return m.fc(x)``."""
        function = self.ctx.scope.function
        owner = function.owner if function is not None else None
        if function is None or owner is None or not isinstance(node.value, ast.Lambda) or self.ctx.report.quiet:
            return False
        init, taken = function.node, symbols.parameter_names(function.node)
        arguments = node.value.args
        if node not in init.body or function.name != "__init__" or not isinstance(target.value, ast.Name):
            return False
        if arguments.defaults or arguments.kw_defaults or arguments.posonlyargs or not init.args.args:
            return False
        myself = init.args.args[0].arg
        following = owner.node.body[owner.node.body.index(init) + 1 :]
        if not following:
            return False
        if target.value.id != myself or target.attr in owner.methods or self._is_set_elsewhere(owner.node, target):
            return False
        aliases: dict[str, ast.Assign] = {}
        own = self.ctx.source.symbols.bound(init)
        for held in self._free_names(node.value):
            if held.id == myself or held.id not in own:
                continue
            alias = self._alias(init, held.id, myself)
            if alias is None or held.id in taken:
                return False
            aliases[held.id] = alias
        body = self.renderer.render(node.value.body).text
        parameters = self.ctx.source.segment(arguments) if hasattr(arguments, "lineno") else ast.unparse(arguments)
        if "rngs" in body:
            return False
        lines = [f"def {target.attr}({', '.join(filter(None, [myself, parameters]))}):"]
        lines += [f"    {name} = {self.renderer.render(alias.value).text}" for name, alias in aliases.items()]
        self.ctx.edits.insert_before(
            following[0], [*lines, f"    return {body}", *self._blank_lines(init, following[0])]
        )
        self.ctx.edits.delete(node)
        for name, alias in aliases.items():
            inside = {n for n in symbols.walk(node.value) if isinstance(n, ast.Name)}
            if all(
                n in inside
                for n in symbols.walk(init)
                if isinstance(n, ast.Name) and n.id == name and n is not alias.targets[0]
            ):
                self.ctx.edits.delete(alias)
        return True

    def _blank_lines(self, above: ast.stmt, below: ast.stmt) -> list[str]:
        """An empty line, where the class has them between its methods."""
        first = min([below.lineno, *(d.lineno for d in getattr(below, "decorator_list", ()))])
        return [""] if first > (above.end_lineno or 0) + 1 else []

    def _alias(self, init: ast.FunctionDef | ast.AsyncFunctionDef, name: str, myself: str) -> ast.Assign | None:
        """The one statement that gives a name to a part of the module, if that is all that the name is."""
        stores = [
            n for n in symbols.walk(init) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
        ]
        alias = self.ctx.source.parents.get(stores[0]) if len(stores) == 1 else None
        if not isinstance(alias, ast.Assign) or alias not in init.body or alias.targets != stores:
            return None
        value: ast.expr = alias.value
        while isinstance(value, ast.Attribute):
            value = value.value
        return alias if isinstance(value, ast.Name) and value.id == myself and value is not alias.value else None

    def _is_set_elsewhere(self, owner: ast.ClassDef, target: ast.Attribute) -> bool:
        return any(
            isinstance(n, ast.Attribute) and n.attr == target.attr and isinstance(n.ctx, ast.Store) and n is not target
            for n in symbols.walk(owner)
        )


def _holds(fact: Fact) -> bool:
    match fact:
        case Tuple():
            return any(map(_holds, fact.items))
        case ListOf():
            return _holds(fact.item)
        case _:
            return is_module(fact)


def _is_only_called(name: str, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function calls what it is given under a name, and neither keeps it nor hands it on.

    In ``return d() if callable(d) else d`` the last ``d`` is no function.
    """
    fine: set[ast.AST] = set()
    for node in symbols.walk(function):
        match node:
            case ast.Call(func=ast.Name() as callee):
                fine |= {callee, *(node.args if callee.id in _ASKING else ())}
            case ast.IfExp(test=ast.Call(func=ast.Name(id=asking), args=[ast.Name(id=asked)]), orelse=ast.Name() as no):
                fine |= {no} if asking in _ASKING and no.id == asked else set()
    return all(n in fine for n in symbols.walk(function) if isinstance(n, ast.Name) and n.id == name)
