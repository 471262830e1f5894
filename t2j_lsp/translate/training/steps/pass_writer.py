"""Writes a forward pass outside of train steps as a compiled function, and its call."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import StatementRewriter
from t2j_lsp.translate.rule.facts import Scalar
from t2j_lsp.translate.rule.pieces import Piece
from t2j_lsp.translate.training.program.flow import DataFlow, is_mode
from t2j_lsp.translate.training.program.objects import Objects, VariableScope
from t2j_lsp.translate.training.program.passed import Input, name_passed
from t2j_lsp.translate.training.program.step_calls import Refused
from t2j_lsp.translate.training.program.text import (
    converted,
    indented,
    lead_comments,
    rendered,
    returned_at_once,
    span_of_lines,
)

from .array_code import measured_name
from .compiled_function import RANK, CompiledFunction, StepScope
from .composed_step import unused
from .inputs import Inputs
from .step import renamed
from .training_steps import Steps
from .update import Measure

_EVALUATES = re.compile(r"eval|test|valid|accuracy|score|infer|predict")
_ACTS = re.compile(r"^(act|select|choose|get|sample|explore)(_|$)")


@dataclass
class Pass:
    """What of a block is computed in one compiled function, which is called where ``first`` stands."""

    block: Sequence[ast.stmt]
    first: int
    moved: list[int] = field(default_factory=list)
    measures: list[Measure] = field(default_factory=list)
    live: list[str] = field(default_factory=list)

    @property
    def parts(self) -> list[ast.AST]:
        """What it computes, in its order."""
        out: list[ast.AST] = []
        for index, node in enumerate(self.block):
            out += [node] if index in self.moved else [one.value for one in self.measures if one.node is node]
        return out

    @property
    def place(self) -> ast.stmt:
        return self.block[self.first]


class PassWriter:
    """Writes those of one scope."""

    def __init__(self, context: Context, objects: Objects, steps: Steps, scope: VariableScope, flow: DataFlow) -> None:
        self.ctx = context
        self.objects = objects
        self.steps = steps
        self.scope = scope
        self.flow = flow

    def inputs(self, made: Pass) -> list[Input] | None:
        """What the function is passed; None where something can't be."""
        finder = Inputs(self.ctx, self.flow, self.scope, self.objects)
        try:
            inputs = [*finder.of(made.parts, ()).values()]
        except Refused:
            return None
        return inputs if all(map(self._is_passed, inputs)) else None

    def _is_passed(self, one: Input) -> bool:
        """Whether an input is no number for each value of which the function would be compiled."""
        facts = [self.ctx.fact(place) for place in one.places]
        numbers = any(isinstance(fact, Scalar) and fact.kind not in ("str", "bool") for fact in facts)
        plain = not (one.positions or one.texts or one.mixed)
        return plain and not (one.kind == "static" and numbers)

    def handle(self, made: Pass) -> None:
        """Put handlers on the statements of a pass."""
        made.measures = [
            Measure(self.ctx.names.fresh(measured_name(one.node, one.value)), one.value, one.node)
            for one in made.measures
        ]
        name = self._name(made)
        for node in made.block:
            around = ancestors(node, self.ctx.source.parents)
            contexts = (at for at in takewhile(lambda at: not isinstance(at, ast.FunctionDef), around))
            self.ctx.plan.undifferentiated.update(at for at in contexts if isinstance(at, ast.With))

        inline = self._inline(made)

        def write(statements: StatementRewriter) -> None:
            results, call = self._write(made, name, statements)
            if inline is not None:
                statements.renderer.put(inline, Piece(call))
            elif made.first in made.moved:
                start, end = span_of_lines(self.ctx.source, made.place)
                self.ctx.edits.add(start, end, f"{self.ctx.edits.indent(made.place.lineno)}{results} = {call}")
            if made.first not in made.moved:
                assert self.ctx.scope.statement is not None
                statements.dispatch(made.place)
                self.ctx.scope.statement.before[:0] = [f"{results} = {call}"] if inline is None else []
            self.ctx.report.count_converted()

        gone = {made.block[index] for index in made.moved if index != made.first or inline is not None}
        for node in gone:
            self.ctx.plan.on_statement(node, self._remove)
        if made.place not in gone:
            self.ctx.plan.on_statement(made.place, write)
        for context in {self.ctx.source.parents.get(node) for node in gone}:
            if isinstance(context, ast.With) and gone.issuperset(context.body):
                self.ctx.plan.on_statement(context, self._remove)
        if made.place in gone:
            assert inline is not None
            (only,) = made.measures

            def write_there(statements: StatementRewriter) -> None:
                write(statements)
                statements.dispatch(only.node)

            self.ctx.plan.on_statement(only.node, write_there)

    def _remove(self, statements: StatementRewriter) -> None:
        """Remove the statement that is being written, with its comments."""
        assert self.ctx.scope.statement is not None
        node = self.ctx.scope.statement.node
        comments = lead_comments(self.ctx.source, node)
        self.ctx.edits.placed_comments.update(comments)
        self.ctx.edits.delete(node, above=len(comments))

    def _name(self, made: Pass) -> str:
        """What the function is called: whether it evaluates, or acts, as the function around it says."""
        around = self.scope.function.name if self.scope.function is not None else ""
        modes = (n for node in made.block[: made.first] if is_mode(node) for n in symbols.walk(node))
        evaluates = _EVALUATES.search(around) or any(isinstance(n, ast.Attribute) and n.attr == "eval" for n in modes)
        hints = ["eval_step"] if evaluates and not _ACTS.search(around) else []
        hints += [f"{around}_step"] if _ACTS.search(around) else []
        return unused(self.ctx.names, *hints, "forward_step")

    def _inline(self, made: Pass) -> ast.expr | None:
        """What the call stands in place of: the one value that the function gives, where nothing is in between."""
        if made.live or len(made.measures) != 1:
            return None
        (only,) = made.measures
        between = range(made.first, made.block.index(only.node))
        return only.value if all(index in made.moved for index in between) else None

    def _write(self, made: Pass, name: str, statements: StatementRewriter) -> tuple[str, str]:
        """Write the function; what it gives, and the text of its call."""
        inputs = self.inputs(made) or []
        parts = made.parts
        for one in inputs:
            if one.given:
                _, one.given = rendered(self.ctx, statements, one.places[0], made.place)
        renamed(inputs, parts, self.ctx)
        name_passed(parts, self.flow.passed, inputs)
        for one in inputs:
            for place in one.places if one.given else ():
                statements.renderer.put(place, Piece(one.name))
        lines = [line for node in made.block for line in self._lines(made, node, statements)]
        results = [*made.live, *(one.name for one in made.measures)]
        given = ", ".join(name.rpartition(".")[2] for name in results)
        body = returned_at_once([*lines, f"return {given}"])
        used = sorted(inputs, key=lambda one: RANK[one.kind])
        at = StepScope(self.ctx, self.objects, self.scope, self.flow, statements.renderer.need)
        # in a step that isn't compiled, gradients are traced through each call, of a copy of the module
        called = made.place if not self.steps.uncompiled else None
        function = CompiledFunction(at, used, "\n".join(body), place=called)
        text = [*function.decorators(), f"def {name}({function.parameters(used)}):", *indented(body, "    ")]
        self.steps.insert(made.place, text, self._in_front(made.place))
        return ", ".join(results), function.call(name, used)

    def _in_front(self, node: ast.stmt) -> ast.stmt | None:
        """The statement of the module level in front of one of it; None inside others."""
        body = self.ctx.source.tree.body
        at = body.index(node) if node in body else 0
        return body[at - 1] if at else None

    def _lines(self, made: Pass, node: ast.stmt, statements: StatementRewriter) -> Iterator[str]:
        """What the function has of a statement."""
        if made.block.index(node) in made.moved:
            yield from lead_comments(self.ctx.source, node) if node is not made.place else ()
            yield from converted(self.ctx, statements, node)
            return
        for one in made.measures:
            if one.node is node:
                before, text = rendered(self.ctx, statements, one.value, node)
                yield from [*before, f"{one.name} = {text}"]
                statements.renderer.put(one.value, Piece(one.name))
