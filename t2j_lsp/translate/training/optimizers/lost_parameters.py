"""Parameters that an optimizer, or what clips gradients, has not got in PyTorch, though the module has them.

An optimizer keeps the parameters that it was made with, and nnx.Optimizer updates what the module has: a part that is
replaced later is another one. An iterator, ``params = model.parameters()``, gives them once, and nothing afterwards.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.unknown_makers import ADDING
from t2j_lsp.translate.inference.call_sites import bound_arguments, called_function
from t2j_lsp.translate.rule.definitions import FunctionInfo, is_module
from t2j_lsp.translate.rule.facts import UNKNOWN, AnyModule, Qual, Tensor
from t2j_lsp.translate.rule.library import is_loss
from t2j_lsp.translate.rule.names import is_torch
from t2j_lsp.translate.source.positions import are_alternatives, leaves
from t2j_lsp.translate.training.program.named_modules import is_part, same_module, targets
from t2j_lsp.translate.training.program.objects import Objects, VariableScope

REPLACED = (
    "{!r} is replaced after {!r} was made: PyTorch's optimizer keeps the parameters from before, nnx.Optimizer updates"
    " those that the module has. Make the optimizer behind it."
)
USED_UP = (
    "{!r} is an iterator, which its first reader uses up: in PyTorch there are no parameters left for the others."
    " Make a list of it."
)
_ITERATORS = frozenset({"parameters", "named_parameters", "buffers", "named_buffers"})
_PASSED_ON = frozenset({"filter", "map", "iter", "zip", "chain", "enumerate"})


class LostParameters:
    """Finds out whether the optimizers of a file have other parameters than their modules, and why."""

    def __init__(self, context: Context, objects: Objects) -> None:
        self.ctx = context
        self.objects = objects

    def reason(self) -> str:
        """Why the training code can't be converted; empty if nothing is lost."""
        return next(filter(None, map(self.used_up, self.ctx.source.nodes)), "") or next(self._replaced(), "")

    # --- iterators ------------------------------------------------------------------------------------------------

    def used_up(self, node: ast.AST) -> str:
        """Why what a statement assigns can't be read as often as it is; empty if it can."""
        match node:
            case ast.Assign(targets=[ast.Name() | ast.Attribute() as target], value=value):
                if gives_once(value, self.ctx) and self._is_read_again(node, target):
                    return USED_UP.format(ast.unparse(target))
        return ""

    def _is_read_again(self, made: ast.Assign, target: ast.Name | ast.Attribute) -> bool:
        """Whether an iterator has several readers, or one in a loop behind it."""
        reads = [n for n in self._reads(target, made) if not self._is_made_again(target, made, n)]
        loops = self._loops(made)
        if any(self._loops(read) - loops and self.objects.scope(read) == self.objects.scope(made) for read in reads):
            return True
        pairs = ((a, b) for i, a in enumerate(reads) for b in reads[i + 1 :])
        return any(not self._is_either(a, b) for a, b in pairs)

    def _reads(self, target: ast.Name | ast.Attribute, made: ast.stmt) -> Iterator[ast.expr]:
        """The places that read a variable."""
        home = self.objects.scope(made)
        text = ast.unparse(target)
        for node in self.ctx.source.nodes:
            if type(node) is not type(target) or not isinstance(getattr(node, "ctx", None), ast.Load):
                continue
            if isinstance(node, ast.Name) and node.id == text:
                if self.objects.home(text, self.objects.scope(node)) == home:
                    yield node
            elif isinstance(node, ast.Attribute) and ast.unparse(node) == text:
                if self.objects.owner(self.objects.scope(node)) is self.objects.owner(home):
                    yield node

    def _is_made_again(self, target: ast.expr, made: ast.stmt, read: ast.expr) -> bool:
        """Whether a variable has got another value between a statement and a place behind it, or was read before."""
        if self.objects.scope(made) != self.objects.scope(read):
            return False
        lines = [n.lineno for n in self._stores(ast.unparse(target), self.objects.scope(made))]
        return read.lineno < made.lineno or any(made.lineno < line < read.lineno for line in lines)

    def _stores(self, text: str, scope: VariableScope) -> Iterator[ast.Assign]:
        for statement in self.objects.statements(scope):
            if isinstance(statement, ast.Assign) and text in map(ast.unparse, statement.targets):
                yield statement

    def _loops(self, node: ast.AST) -> set[ast.AST]:
        """The loops in whose bodies a node stands."""
        loops, inner = set[ast.AST](), node
        for place in ancestors(node, self.ctx.source.parents):
            if isinstance(place, ast.While) or isinstance(place, ast.For | ast.AsyncFor) and inner is not place.iter:
                loops.add(place)
            inner = place
        return loops

    def _is_either(self, one: ast.AST, other: ast.AST) -> bool:
        """Whether two places stand in branches of which one run takes one."""
        parents = self.ctx.source.parents
        if are_alternatives(one, other, parents):
            return True
        around, shared = [one, *ancestors(one, parents)], {other, *ancestors(other, parents)}
        for place in around:
            if isinstance(place, ast.If) and place not in shared:
                branch = place.body if any(s in around for s in place.body) else place.orelse
                if leaves(branch):
                    return True
        return False

    # --- parts that are replaced ----------------------------------------------------------------------------------

    def _replaced(self) -> Iterator[str]:
        for call, plan in self.ctx.plan.optimizers.items():
            if isinstance(call, ast.Call) and plan.target and not plan.rate:
                for site, text in self._sites(call, targets(plan.target)):
                    for part in self._replacements(site, text):
                        yield REPLACED.format(part, self._name(site) or "the optimizer")

    def _sites(self, call: ast.Call, modules: list[str]) -> Iterator[tuple[ast.Call, str]]:
        """Where an optimizer is made of which module; for one that a function hands out, where that is called."""
        yield from ((call, module) for module in modules)
        function = self.objects.scope(call).function
        if function is None or not any(isinstance(n, ast.Return) for n in symbols.walk(function.node)):
            return
        for place in self.objects.calls(function):
            given = {parameter.arg: ast.unparse(value) for parameter, value in bound_arguments(place, function)}
            yield from ((place, given[module]) for module in modules if module in given)

    def _replacements(self, site: ast.Call, text: str) -> Iterator[str]:
        """The parts of a module, itself included, that are replaced while an optimizer of it is in use."""
        scope, name = self.objects.scope(site), self._name(site)
        if not name:
            return
        for statement in self.objects.statements(scope):
            if statement.lineno > site.lineno and not self._is_either(statement, site):
                for part in self._replaces(statement, text):
                    if self._is_used_behind(name, statement, scope):
                        yield part
        owner = scope.function.owner if scope.function is not None else None
        if owner is None or not (text.startswith("self.") and name.startswith("self.")):
            return
        for method in owner.methods.values():
            if method.name == "__init__" or method is scope.function or self._runs_first(method, site, scope):
                continue
            within = VariableScope(method)
            if not any(True for _ in self._stores(name, within)):
                for statement in self.objects.statements(within):
                    yield from self._replaces(statement, text)

    def _name(self, site: ast.Call) -> str:
        """The variable that an optimizer is kept in."""
        statement = self.ctx.source.parents.get(site)
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            return ast.unparse(statement.targets[0])
        return ""

    def _is_used_behind(self, name: str, statement: ast.stmt, scope: VariableScope) -> bool:
        """Whether an optimizer is read behind a statement, before another one gets its name."""
        if name.startswith("self."):
            made = [s.lineno for s in self._stores(name, scope)]
            return not any(line > statement.lineno for line in made)
        made = [s.lineno for s in self._stores(name, scope) if s.lineno > statement.lineno]
        loops = self._loops(statement)
        for node in symbols.walk(scope.node or self.objects.tree):
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
                again = any(line < node.lineno for line in made)
                if (node.lineno > statement.lineno or self._loops(node) & loops) and not again:
                    return True
        return False

    def _runs_first(self, method: FunctionInfo, site: ast.Call, scope: VariableScope) -> bool:
        """Whether a method is only called where the optimizer isn't made yet."""
        calls = [(self.objects.scope(c), c.lineno) for c in self.objects.calls(method)]
        makers = [(scope, site.lineno)]
        if scope.function is not None:
            makers += [(self.objects.scope(c), c.lineno) for c in self.objects.calls(scope.function)]
        return bool(calls) and all(any(at == where and line < made for where, made in makers) for at, line in calls)

    def _replaces(self, statement: ast.stmt, text: str, depth: int = 0) -> Iterator[str]:
        """The parts of a module that a statement replaces, itself or by what it calls."""
        match statement:
            case ast.Assign(targets=assigned, value=value):
                for target in assigned:
                    written = ast.unparse(target)
                    if _is_part(written, text) and self._is_new(value, written):
                        yield written
        if not hasattr(statement, "body"):
            for call in (n for n in symbols.walk(statement) if isinstance(n, ast.Call)):
                yield from self._replaced_by(call, text, depth)

    def _replaced_by(self, call: ast.Call, text: str, depth: int) -> Iterator[str]:
        """The parts that a call replaces: ``setattr(model, "fc", ...)``, ``model.reset()``, ``add_head(model)``."""
        func = call.func
        match call:
            case ast.Call(func=ast.Name(id="setattr"), args=[owner, _, value]):
                if (ast.unparse(owner) == text or _is_part(ast.unparse(owner), text)) and self._is_new(value, ""):
                    yield f"{ast.unparse(owner)}.…"
                return
            case ast.Call(func=ast.Attribute(value=owner, attr=attr)) if attr in ADDING:
                if _is_part(ast.unparse(owner), text) and any(self._is_new(a, "") for a in call.args):
                    yield ast.unparse(owner)
                    return
        info = called_function(self.ctx.fact(func))
        if info is None or info.external or info.name == "__init__" or depth > 2:
            return
        given = {p.arg: ast.unparse(v) for p, v in bound_arguments(call, info)}
        if isinstance(func, ast.Attribute) and info.owner is not None:
            given["self"] = ast.unparse(func.value)
        for parameter, owned in given.items():
            if not _is_part(owned, text):
                continue
            for statement in self.objects.statements(VariableScope(info)):
                parts = self._replaces(statement, parameter, depth + 1)
                yield from (owned + part.removeprefix(parameter) for part in parts if part != parameter)

    def _is_new(self, value: ast.expr, target: str) -> bool:
        """Whether a value has parameters of its own: not the module itself, moved or wrapped."""
        fact = self.ctx.fact(value)
        if not is_module(fact) and not (isinstance(fact, Tensor) and fact.variable) or is_loss(fact):
            return False
        if ast.unparse(same_module(value)) == target or self._gives_back(value, target):
            return False
        if not isinstance(value, ast.Call) or not value.args or ast.unparse(same_module(value.args[0])) != target:
            return True
        made = self.ctx.fact(value.func)
        if not isinstance(made, Qual) or not is_torch(made.name):
            return True
        return made.name.startswith("torch.nn.") and not (isinstance(fact, AnyModule) and fact.wrapped is not None)

    def _gives_back(self, value: ast.expr, module: str) -> bool:
        """Whether a function of the file returns the module that it is handed: ``model = train(model, loader)``."""
        info = called_function(self.ctx.fact(value.func)) if isinstance(value, ast.Call) else None
        if info is None or info.external or not isinstance(value, ast.Call) or info.node.decorator_list:
            return False
        handed = {p.arg for p, given in bound_arguments(value, info) if ast.unparse(given) == module}
        inside = [*symbols.walk(info.node)]
        returned = {ast.unparse(n.value) if n.value is not None else "" for n in inside if isinstance(n, ast.Return)}
        stored = {n.id for n in inside if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
        return len(returned) == 1 and returned <= handed - stored


def gives_once(node: ast.expr, ctx: Context) -> bool:
    """Whether an expression is an iterator of parameters."""
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr=attr)) if attr in _ITERATORS:
            return is_module(ctx.fact(owner)) or attr != "parameters" or ctx.fact(owner) == UNKNOWN
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=args) if name in _PASSED_ON:
            return any(gives_once(a, ctx) for a in args)
        case ast.GeneratorExp(generators=[first, *_]):
            return gives_once(first.iter, ctx)
    return False


def _is_part(text: str, module: str) -> bool:
    """Whether an expression is a module or stands for a part of it."""
    return text == module or is_part(text, module)
