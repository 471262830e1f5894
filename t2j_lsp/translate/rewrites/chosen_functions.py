"""Functions that are chosen by a condition, ``pool = F.max_pool2d if sharp else F.avg_pool2d``, and called later.

Where the two have other arguments in JAX, a file that has gaps is read as if the condition were kept, and each function
called by its name where it holds: ``F.max_pool2d(x, 2) if use_max_pool2d else F.avg_pool2d(x, 2)``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from t2j_lsp import symbols
from t2j_lsp.contract import Finding
from t2j_lsp.symbols import FunctionNode
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.facts import Qual
from t2j_lsp.translate.rule.names import is_torch
from t2j_lsp.translate.source.positions import spans_lines
from t2j_lsp.translate.source.rearranged import RearrangedText

from .left_out import ObjectLeftOut, Stays


def with_chosen_functions_called_by_name(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which each of two functions is called by its name; None if there are none, or all convert."""
    names = {gap.name for gap in gaps}
    written = _ChosenFunctions(inference)
    for node in inference.source.nodes if names else ():
        match node:
            case ast.Assign(targets=[ast.Name(id=name) as target], value=ast.IfExp() as choice) if name in names:
                try:
                    written.of(node, target, choice)
                except Stays:
                    continue
    return RearrangedText.of(inference.source.text, written.made_edits())


class _ChosenFunctions(ObjectLeftOut):
    def of(self, made: ast.Assign, target: ast.Name, choice: ast.IfExp) -> None:
        """A choice that one function makes, and calls. Raises Stays."""
        home = self.source.home(target)
        if not isinstance(home, FunctionNode) or not all(map(self._is_function, (choice.body, choice.orelse))):
            raise Stays
        several = choice.test.lineno != choice.test.end_lineno
        if several or any(isinstance(n, ast.arg) and n.arg == target.id for n in symbols.walk(home)):
            raise Stays
        named = [n for n in self.source.names.get(target.id, ()) if self.source.home(n) is home and n is not target]
        calls = [call for n in named if isinstance(call := self.parents.get(n), ast.Call) and call.func is n]
        if not calls or len(calls) != len(named) or any(self.source.home(n) is None for n in named):
            raise Stays
        kept = self.free_name(f"use_{ast.unparse(choice.body).rpartition('.')[2]}")
        texts = {call: self._called(call, choice, kept) for call in calls}
        if any(n in texts for call in calls for n in symbols.walk(call) if n is not call):
            raise Stays
        self.put(made, f"{kept} = {self.source.segment(choice.test)}")
        for node, text in texts.values():
            self.put(node, text)

    def _is_function(self, node: ast.expr) -> bool:
        fact = self.inference.fact(node)
        last = fact.name.rpartition(".")[2] if isinstance(fact, Qual) else ""
        return isinstance(fact, Qual) and is_torch(fact.name) and last[:1].islower()

    def _called(self, call: ast.Call, choice: ast.IfExp, kept: str) -> tuple[ast.AST, str]:
        """What stands for a call, or for the statement that it is. Raises Stays."""
        if spans_lines(call) or any(isinstance(n, ast.NamedExpr | ast.Await | ast.Yield) for n in symbols.walk(call)):
            raise Stays
        function_end, end = self.source.span(call.func)[1], self.source.span(call)[1]
        given = self.source.text[function_end:end]
        one, other = (f"{self.source.segment(part)}{given}" for part in (choice.body, choice.orelse))
        around = self.parents.get(call)
        if isinstance(around, ast.Expr):
            if not self.source.starts_line(around):
                raise Stays
            line = f"{self.source.newline}{self.source.indent(around.lineno)}"
            return around, f"if {kept}:{line}    {one}{line}else:{line}    {other}"
        plain = isinstance(around, ast.Assign | ast.Return) and around.value is call
        text = f"{one} if {kept} else {other}"
        return call, text if plain else f"({text})"
