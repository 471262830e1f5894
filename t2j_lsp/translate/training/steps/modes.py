"""In which mode modules are at a place: whether what sets it stands in front of that, and nothing sets another."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cached_property

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors, with_ancestors
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.module_modes import has_modes
from t2j_lsp.translate.inference.call_sites import called_function
from t2j_lsp.translate.inference.forward_pass import CONTAINERS
from t2j_lsp.translate.rule.definitions import FunctionInfo, Instance, is_module
from t2j_lsp.translate.rule.facts import Fact, Layer, Qual
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.training.program.flow import is_mode

_LOOPS = ast.For | ast.While
_INNER = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Modes:
    """Looks for statements that set modes."""

    def __init__(self, context: Context) -> None:
        self.ctx = context

    @cached_property
    def make_no_difference(self) -> bool:
        """Whether nothing that the file names computes otherwise in another mode."""
        return not any(map(self._differs, self.ctx.source.nodes))

    def _differs(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Attribute) and node.attr == "training":
            return True
        fact = self.ctx.fact(node) if isinstance(node, ast.Name | ast.Attribute) else None
        return isinstance(fact, Qual) and fact.name in LAYERS and has_modes(fact.name)

    def differ(self, module: Fact) -> bool:
        """Whether a module may compute otherwise in another mode, as far as its class, its parts and theirs say."""
        match module:
            case Layer(name=name, items=None):
                return name in CONTAINERS or name not in LAYERS or has_modes(name)
            case Layer(items=items):
                return any(map(self.differ, items or ()))
            case Instance(cls=cls):
                classes = cls.info.ancestry()
                nodes = (node for info in classes for node in symbols.walk(info.node))
                held = (fact for info in classes for fact in info.attributes.values() if is_module(fact))
                return (
                    any(info.external for info in classes)
                    or any(map(self._differs, nodes))
                    or any(map(self.differ, held))
                )
        return True

    def is_set_before(self, place: ast.stmt, module: str, kind: str, until: ast.stmt | None = None) -> bool:
        """Whether ``model.train()`` stands in front of a statement, and nothing sets another mode between.

        In a block around it, inside of ``until`` or of the function. What runs in a loop from one time to the next
        counts as well. ``kind``: ``"train"`` or ``"eval"``. An ``if`` is a place where its condition doesn't hold.
        """
        node: ast.AST = place
        asked = {ast.unparse(place.test): False} if isinstance(place, ast.If) else {}
        for around in with_ancestors(self.ctx.source.parents[place], self.ctx.source.parents):
            block = next((b for b in _blocks(around) if node in b), [])
            for other in reversed(block[: block.index(node)] if isinstance(node, ast.stmt) and node in block else []):
                for run in self._run_then(other, asked):
                    if set_by(run, kind) == module:
                        return True
                    if self.changes(run) and set_by(run, kind) is None:
                        return False
            if around is until or isinstance(around, _INNER):
                return False
            if isinstance(around, _LOOPS) and any(map(self.changes, around.body)):
                return False
            if isinstance(around, ast.If):
                asked.setdefault(ast.unparse(around.test), node in around.body)
            node = around
        return False

    def _run_then(self, node: ast.stmt, asked: Mapping[str, bool]) -> Iterator[ast.stmt]:
        """A statement, or those that run of one that asks what is asked again around a place, from the last one."""
        if isinstance(node, ast.If) and (holds := asked.get(ast.unparse(node.test))) is not None:
            if self._stays(node.test, node):
                yield from reversed(node.body if holds else node.orelse)
                return
        yield node

    def _stays(self, test: ast.expr, place: ast.stmt) -> bool:
        """Whether a condition is one on variables that have the same values until the loops around a place go on."""
        parts = ast.Name | ast.Constant | ast.Compare | ast.UnaryOp | ast.cmpop | ast.unaryop | ast.expr_context
        if not all(isinstance(n, parts) for n in ast.walk(test)):
            return False
        around = (at for at in ancestors(place, self.ctx.source.parents) if isinstance(at, ast.For))
        targets = {n for loop in around for n in symbols.walk(loop.target)}
        asked = {(n.id, self.ctx.source.home(n)) for n in symbols.walk(test) if isinstance(n, ast.Name)}
        return not any(
            (n.id, self.ctx.source.home(n)) in asked and n not in targets
            for n in self.ctx.source.nodes
            if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)
        )

    def changes(self, node: ast.stmt) -> bool:
        """Whether a statement sets a mode of some module, or calls a function that does."""
        if isinstance(node, _INNER):
            return False
        return any(map(self._sets, _run(node))) or any(info in self._setting for info in self._called(node))

    def _sets(self, node: ast.AST) -> bool:
        match node:
            case ast.Call(func=ast.Attribute(attr="train" | "eval", value=owner)):
                return is_mode(ast.Expr(node)) or is_module(self.ctx.fact(owner))
        return False

    @cached_property
    def _setting(self) -> set[FunctionInfo]:
        """The functions of the file that set modes, or call others that do."""
        functions = [*self.ctx.inference.functions.values()]
        out = {info for info in functions if any(map(self._sets, symbols.walk(info.node)))}
        while more := {info for info in functions if info not in out and not out.isdisjoint(self._called(info.node))}:
            out |= more
        return out

    def _called(self, node: ast.AST) -> Iterator[FunctionInfo]:
        """The functions of the file that some code names: what it calls, and what may be called by others."""
        nodes = [*symbols.walk(node)]
        names = {n.id for n in nodes if isinstance(n, ast.Name)}
        names |= {n.attr for n in nodes if isinstance(n, ast.Attribute)}
        yield from (info for info in self.ctx.inference.functions.values() if info.name in names)
        called = (called_function(self.ctx.fact(n.func)) for n in nodes if isinstance(n, ast.Call))
        yield from (info for info in called if info is not None)


def set_by(node: ast.stmt, kind: str) -> str | None:
    """The module that a statement sets to a mode: ``model`` of ``model.train()``, or of ``model = model.train()``."""
    match node:
        case ast.Assign(targets=[target], value=ast.Call() as call) if ast.unparse(target) == set_by(
            ast.Expr(call), kind
        ):
            return ast.unparse(target)
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=attr, value=module), args=[], keywords=[])) if (
            attr == kind
        ):
            return ast.unparse(module)
    return None


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list):
            yield block


def _run(node: ast.AST) -> Iterator[ast.AST]:
    """The code of a statement, without that of functions and classes in it."""
    yield node
    for child in symbols.children(node):
        if not isinstance(child, _INNER):
            yield from _run(child)
