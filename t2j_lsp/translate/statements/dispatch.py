"""Walks the statements of a file and records their edits: each kind has its handlers."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.copying import Headers
from t2j_lsp.translate.expressions.render import Renderer
from t2j_lsp.translate.expressions.scope import CurrentStatement
from t2j_lsp.translate.source.text import apply_edits

from .assignments import Assignments
from .attribute_stores import AttributeStores
from .averages import Averages
from .classes import Classes
from .context_choices import ContextChoices
from .control_flow import ControlFlow
from .decorators import Decorators
from .effects import Effects
from .functions import Functions
from .generators import Generators
from .layer_parameters import LayerParameters
from .module_loops import ModuleLoops
from .module_statements import ModuleStatements
from .no_gradient import NoGradient
from .state_copies import StateCopies
from .stores import Stores
from .unwrapping import unwrap
from .weight_tying import WeightTying

Handler = Callable[[Any], bool]
"""Rewrites statements of one kind; whether this was one for it."""


class Statements:
    """Asks the handlers of a statement's kind in turn; where none takes it, its expressions are rewritten."""

    def __init__(self, context: Context, renderer: Renderer) -> None:
        self.ctx = context
        self.renderer = renderer
        self.header = Headers(context.edits, context.scope, renderer.copier)
        self._handlers: dict[type[ast.stmt], tuple[Handler, ...]] = {}
        """Those of the kinds that the file was found to have."""
        self._parts: dict[type[ast.stmt], Callable[[], tuple[Handler, ...]]] = {
            ast.ClassDef: lambda: (self.classes.rewrite,),
            ast.FunctionDef: lambda: (self.functions.rewrite,),
            ast.AsyncFunctionDef: lambda: (self.functions.rewrite,),
            ast.Assign: self._of_assignments,
            ast.AnnAssign: lambda: (self.attributes.annotated,),
            ast.AugAssign: lambda: (self.attributes.augmented, self.stores.augmented),
            ast.Delete: lambda: (self.parameters.deleted,),
            ast.Expr: self._of_effects,
            ast.If: lambda: (self.effects.dropped_condition, self.flow.condition),
            ast.For: lambda: (Averages(self.ctx, self.renderer).loop, self.flow.for_loop),
            ast.AsyncFor: lambda: (self.flow.for_loop,),
            ast.While: lambda: (self.flow.while_loop,),
            ast.Assert: lambda: (self.flow.assertion,),
            ast.With: lambda: (self.flow.with_block,),
            ast.AsyncWith: lambda: (self.flow.with_block,),
            ast.Try: lambda: (self.flow.try_block,),
            ast.Match: lambda: (self.flow.match_block,),
        }

    def _of_kind(self, kind: type[ast.stmt]) -> tuple[Handler, ...]:
        """The handlers of a kind of statement."""
        handlers = self._handlers.get(kind)
        if handlers is None:
            handlers = self._handlers[kind] = self._parts[kind]() if kind in self._parts else ()
        return handlers

    def _of_assignments(self) -> tuple[Handler, ...]:
        plain = Assignments(self.ctx, self.renderer, self.header)
        return (
            self.renderer.known_values.kept,
            self.generators.assigned,
            plain.factory_dict,
            plain.setting,
            plain.used_part,
            plain.only_moves,
            plain.device,
            self.choices.assigned,
            self.stores.part,
            self.parameters.assigned,
            self.attributes.of_class,
            self.attributes.assigned,
        )

    def _of_effects(self) -> tuple[Handler, ...]:
        """The handlers of expressions that are statements."""
        effects = self.effects
        modules = ModuleStatements(self.ctx, self.renderer, self.renderer.methods, self.renderer.variables)
        return (
            effects.dropped,
            StateCopies(self.ctx, self.renderer).copy,
            effects.chosen,
            effects.seed,
            effects.seeded_by_function,
            self.generators.seeded,
            self.parameters.by_name,
            self.attributes.set_by_name,
            modules.call,
        )

    # --- the parts, each made when it is first asked for ----------------------------------------------------------

    @cached_property
    def effects(self) -> Effects:
        return Effects(self.ctx, self.renderer)

    @cached_property
    def generators(self) -> Generators:
        return Generators(self.ctx, self.renderer)

    @cached_property
    def decorators(self) -> Decorators:
        return Decorators(self.ctx, self.header, self.renderer)

    @cached_property
    def no_gradient(self) -> NoGradient:
        return NoGradient(self.ctx, self.renderer, self.renderer.variables, self.renderer.tensor_code)

    @cached_property
    def choices(self) -> ContextChoices:
        return ContextChoices(self.ctx, self.no_gradient)

    @cached_property
    def classes(self) -> Classes:
        return Classes(self.ctx, self.renderer, self, self.header, self.decorators)

    @cached_property
    def functions(self) -> Functions:
        return Functions(self.ctx, self.renderer, self, self.header, lambda: self.decorators, lambda: self.no_gradient)

    @cached_property
    def flow(self) -> ControlFlow:
        loops, code = ModuleLoops(self.ctx, self.renderer), self.renderer.tensor_code
        return ControlFlow(self.ctx, self, self.header, loops, self.no_gradient, self.choices, code)

    @cached_property
    def stores(self) -> Stores:
        of, renderer = self.ctx, self.renderer
        names, code = (renderer.variables, renderer.subscripts), renderer.tensor_code
        return Stores(
            of.inference, of.edits, of.report, renderer, *names, self.header, code, of.names, renderer.any_layer
        )

    @cached_property
    def attributes(self) -> AttributeStores:
        return AttributeStores(self.ctx, self.renderer, self.header, self.stores, self.renderer.variables)

    @cached_property
    def parameters(self) -> LayerParameters:
        tying = WeightTying(self.ctx, self.renderer, self.renderer.layers)
        return LayerParameters(self.ctx, self.renderer, self.renderer.variables, tying)

    # --- rewriting ------------------------------------------------------------------------------------------------

    def block(self, body: Iterable[ast.stmt]) -> None:
        """Rewrite statements in order."""
        for node in body:
            self.visit(node)

    def visit(self, node: ast.stmt, planned: bool = True) -> None:
        """Rewrite one statement, as planned if it is, then put in front of it what its expressions asked for."""
        ctx = self.ctx
        saved = ctx.scope.statement
        starts = ctx.source.starts_line(node)
        elif_ = isinstance(node, ast.If) and ctx.source.text.startswith("elif", ctx.source.span(node)[0])
        ctx.scope.statement = CurrentStatement(node, hoistable=starts and not elif_ and not isinstance(node, ast.While))
        first_edit = len(ctx.edits.made)
        try:
            if planned and node in ctx.plan.statement_handlers:
                ctx.plan.statement_handlers[node](self)
            elif node in ctx.plan.writes.statements:
                self._refuse_shared(node, ctx.plan.writes.statements[node])
            else:
                if (seen := ctx.plan.writes.seen.get(node)) is not None:
                    ctx.report.note(node, "in-place", "in-place-seen", seen)
                if (name := ctx.plan.writes.rectified.get(node)) is not None:
                    ctx.scope.statement.before.append(f"{name} = {self.renderer.need('jax')}.nn.relu({name})")
                self.dispatch(node)
            if isinstance(node, ast.Expr | ast.Assign | ast.AugAssign) and len(ctx.edits.made) > first_edit:
                self.no_gradient.leave_data(node)
            if not hasattr(node, "body") and len(ctx.edits.made) > first_edit:
                self._undo_broken(node, first_edit)
                self._leave_marked(node, first_edit)
            elif isinstance(node, ast.For) and ctx.source.is_marked(node):
                ctx.edits.drop(ctx.source.span(node)[0], ctx.source.span(node.iter)[1])
            if ctx.scope.statement.before:
                ctx.edits.insert_before(node, ctx.scope.statement.before, priority=2)
        finally:
            ctx.scope.statement = saved

    def dispatch(self, node: ast.stmt) -> None:
        """Rewrite a statement by its kind."""
        for handler in self._of_kind(type(node)):
            if handler(node):
                return
        self.header.expressions(node)

    def unwrap(self, node: ast.stmt, body: list[ast.stmt]) -> None:
        """Replace a compound statement by its body, one level less indented."""
        unwrap(self.ctx.edits, node, body)
        self.block(body)

    def _refuse_shared(self, node: ast.stmt, reason: str) -> None:
        """An in-place write that another name sees is left alone, with what stands in it."""
        self.ctx.report.gap(node, "in-place", "in-place-shared", reason)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            with self.ctx.report.silent():
                self.dispatch(node)

    def _leave_marked(self, node: ast.stmt, first_edit: int) -> None:
        """A statement that an earlier conversion marked was converted as far as it goes; it waits for its author."""
        if self.ctx.source.is_marked(node):
            assert self.ctx.scope.statement is not None
            self.ctx.edits.take_back(first_edit)
            self.ctx.scope.statement.before.clear()

    def _undo_broken(self, node: ast.stmt, first_edit: int) -> None:
        """Leave a statement alone whose conversion isn't Python: a defect of a rule must not cost the file."""
        start, end = self.ctx.source.span(node)
        # Lines behind it are statements of their own.
        inside = [e for e in self.ctx.edits.made[first_edit:] if start <= e.start < max(end, e.end) and e.end <= end]
        text = apply_edits(self.ctx.source.text, inside, start, end)
        indent = self.ctx.edits.indent(node.lineno) if self.ctx.source.starts_line(node) else ""
        try:
            ast.parse(f"if True:\n{indent}{text.lstrip()}" if indent else text.lstrip())
        except SyntaxError as error:
            self.ctx.edits.take_back(first_edit)
            assert self.ctx.scope.statement is not None
            self.ctx.scope.statement.before.clear()
            self.ctx.report.gap(
                node,
                "t2j",
                "rule-error",
                f"the conversion of this statement is not Python ({error.msg}); please report it",
            )
