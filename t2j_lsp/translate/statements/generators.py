"""Generators that are made for draws: ``g = torch.Generator().manual_seed(0)``, ``torch.randn(3, generator=g)``."""

from __future__ import annotations

import ast
from functools import cached_property

from t2j_lsp.symbols import FunctionNode, scopes_around
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import ExpressionRenderer
from t2j_lsp.translate.rule.binding import argument
from t2j_lsp.translate.rule.facts import Object, Qual
from t2j_lsp.translate.rule.own_generators import own_generators, seeding_methods
from t2j_lsp.translate.rule.record import REGISTRY


class Generators:
    """Statements of a file's top level that make and seed generators which only its draws are given.

    Draws are made from ``rngs`` whichever generator they were given, so that to seed a generator is to seed ``rngs``.
    """

    def __init__(self, context: Context, renderer: ExpressionRenderer) -> None:
        self.ctx = context
        self.renderer = renderer

    def assigned(self, node: ast.Assign) -> bool:
        """``g = torch.Generator()`` goes, ``g = torch.Generator().manual_seed(0)`` seeds."""
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call) if (
                self._makes(call) or self._is_made_and_seeded(call)
            ) and self._is_own(name):
                if not self._makes(call):
                    return self._makes_own(node, name, call)
                self.ctx.edits.delete(node)  # the next statement seeds it
                self.ctx.report.count_converted()
                return True
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call) if self._only_draws(name):
                if self._makes(call):
                    self.ctx.edits.delete(node)
                    self.ctx.report.count_converted()
                    return True
                return self._seeds(node, call)
        return False

    def seeded(self, node: ast.Expr) -> bool:
        """``g.manual_seed(0)``."""
        match node.value:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr)) as call if (
                attr in seeding_methods() and self._is_own(name)
            ):
                return self._makes_own(node, name, call)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name))) as call if self._only_draws(name):
                return self._seeds(node, call)
        return False

    def _is_own(self, name: str) -> bool:
        return self.ctx.scope.function is not None and name in own_generators(self.ctx.scope.function)

    def _makes_own(self, node: ast.Assign | ast.Expr, name: str, call: ast.Call) -> bool:
        """``g = nnx.Rngs(0)``, of a generator that a function makes for its own draws."""
        given = argument(call, 0, "seed")
        if given is None:
            return False
        self.ctx.edits.replace(node, f"{name} = {self.renderer.need('nnx')}.Rngs({self.renderer.render(given).text})")
        self.ctx.report.count_converted()
        return True

    def _seeds(self, node: ast.Assign | ast.Expr, call: ast.Call) -> bool:
        given = argument(call, 0, "seed")
        if given is None or self.ctx.scope.function is not None or not self._is_seeding(call):
            return False
        self.ctx.edits.replace(node, f"rngs = {self.renderer.need('nnx')}.Rngs({self.renderer.render(given).text})")
        self.ctx.report.count_converted()
        self.ctx.rngs.seeds[node] = "rngs"
        self.ctx.edits.removable[node] = "rngs"
        return True

    def _is_seeding(self, call: ast.Call) -> bool:
        """Whether it is ``torch.Generator().manual_seed(...)``, or so of a name that only draws are given."""
        match call.func:
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if attr in seeding_methods():
                return self._only_draws(name)
        return self._is_made_and_seeded(call)

    def _makes(self, call: ast.Call) -> bool:
        fact = self.ctx.fact(call)
        return isinstance(self.ctx.fact(call.func), Qual) and isinstance(fact, Object) and fact.kind == "generator"

    def _only_draws(self, name: str) -> bool:
        return name in self._of_draws

    @cached_property
    def _of_draws(self) -> frozenset[str]:
        """Names of the file's top level that hold generators, which nothing but draws is given."""
        source = self.ctx.source
        made: set[str] = set()
        for node in source.tree.body:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call):
                    if self._makes(call) or self._is_made_and_seeded(call):
                        made.add(name)
        uses = [n for n in source.nodes if isinstance(n, ast.Name) and n.id in made] if made else []
        return frozenset(made - {n.id for n in uses if not self._is_another(n) and not self._is_of_draw(n)})

    def _is_another(self, use: ast.Name) -> bool:
        """Whether a function around has an own generator of the same name."""
        known = self.ctx.inference.functions
        functions = (at for at in scopes_around(use, self.ctx.source.parents) if isinstance(at, FunctionNode))
        return any(at in known and use.id in own_generators(known[at]) for at in functions)

    def _is_of_draw(self, use: ast.Name) -> bool:
        """Whether a name is bound or seeded here, at the file's top level, or given to what draws."""
        parents = self.ctx.source.parents
        match parents.get(use):
            case ast.Assign(targets=[target], value=ast.Call() as call) as made if target is use:
                return made in self.ctx.source.tree.body and (self._makes(call) or self._is_made_and_seeded(call))
            case ast.Attribute(attr=attr) as method if attr in seeding_methods():
                seeding = parents.get(method)
                return isinstance(seeding, ast.Call) and isinstance(parents.get(seeding), ast.Expr)
            case ast.keyword(arg="generator") as keyword:
                draw = parents.get(keyword)
                fact = self.ctx.fact(draw.func) if isinstance(draw, ast.Call) else None
                rule = REGISTRY.get(fact.name) if isinstance(fact, Qual) else None
                return rule is not None and rule.random and rule.emit is not None
        return False

    def _is_made_and_seeded(self, call: ast.Call) -> bool:
        match call.func:
            case ast.Attribute(value=ast.Call() as made, attr=attr) if attr in seeding_methods():
                return self._makes(made)
        return False
