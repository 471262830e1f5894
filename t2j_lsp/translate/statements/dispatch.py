"""Walks the statements of a file and records their edits: each kind has its handlers."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import Any

from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.render import Renderer
from t2j_lsp.translate.expressions.scope import CurrentStatement
from t2j_lsp.translate.source.text import apply_edits

from .assignments import Assignments
from .attribute_stores import AttributeStores
from .classes import Classes
from .control_flow import ControlFlow
from .decorators import Decorators
from .effects import Effects
from .functions import Functions
from .headers import Headers
from .module_loops import ModuleLoops
from .module_statements import ModuleStatements
from .no_gradient import NoGradient
from .stores import Stores
from .unwrapping import unwrap
from .weight_tying import WeightTying

Handler = Callable[[Any], bool]
"""Rewrites statements of one kind; whether this was one for it."""
Handlers = dict[type[ast.stmt], tuple[Handler, ...]]


class Statements:
    """Asks the handlers of a statement's kind in turn; where none takes it, its expressions are rewritten."""

    def __init__(self, context: Context, renderer: Renderer) -> None:
        self.ctx = context
        self.renderer = renderer
        self.header = Headers(context, renderer.copier, renderer.annotations)
        self._handlers = {**self._compound(), **self._assignments(), **self._calls()}

    def _compound(self) -> Handlers:
        """The handlers of statements that hold others."""
        context, renderer, header = self.ctx, self.renderer, self.header
        no_gradient = NoGradient(context, renderer, renderer.variables)
        decorators = Decorators(context, header)
        classes = Classes(context, renderer, self, header, decorators)
        functions = Functions(context, renderer, self, header, decorators, no_gradient)
        flow = ControlFlow(context, self, header, ModuleLoops(context, renderer), no_gradient)
        return {
            ast.ClassDef: (classes.rewrite,),
            ast.FunctionDef: (functions.rewrite,),
            ast.AsyncFunctionDef: (functions.rewrite,),
            ast.If: (flow.condition,),
            ast.For: (flow.for_loop,),
            ast.AsyncFor: (flow.for_loop,),
            ast.While: (flow.while_loop,),
            ast.With: (flow.with_block,),
            ast.AsyncWith: (flow.with_block,),
            ast.Try: (flow.try_block,),
            ast.Match: (flow.match_block,),
        }

    def _assignments(self) -> Handlers:
        """The handlers of assignments."""
        context, renderer, header = self.ctx, self.renderer, self.header
        plain = Assignments(context, renderer, header)
        stores = Stores(context, renderer, renderer.variables, renderer.subscripts, header)
        attributes = AttributeStores(context, renderer, header, stores, WeightTying(context, renderer, renderer.layers))
        return {
            ast.Assign: (
                plain.factory_dict,
                plain.setting,
                plain.used_part,
                plain.only_moves,
                plain.device,
                stores.part,
                attributes.assigned,
            ),
            ast.AnnAssign: (attributes.annotated,),
            ast.AugAssign: (stores.augmented,),
        }

    def _calls(self) -> Handlers:
        """The handlers of expressions that are statements."""
        effects = Effects(self.ctx, self.renderer)
        modules = ModuleStatements(self.ctx, self.renderer, self.renderer.methods)
        return {ast.Expr: (effects.dropped, effects.seed, modules.call)}

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
            elif node in ctx.plan.shared_writes:
                self._refuse_shared(node, ctx.plan.shared_writes[node])
            else:
                self.dispatch(node)
            if not hasattr(node, "body") and len(ctx.edits.made) > first_edit:
                self._undo_broken(node, first_edit)
                self._leave_marked(node, first_edit)
            if ctx.scope.statement.before:
                ctx.edits.insert_before(node, ctx.scope.statement.before, priority=2)
        finally:
            ctx.scope.statement = saved

    def dispatch(self, node: ast.stmt) -> None:
        """Rewrite a statement by its kind."""
        for handler in self._handlers.get(type(node), ()):
            if handler(node):
                return
        self.header.expressions(node)

    def unwrap(self, node: ast.stmt, body: list[ast.stmt]) -> None:
        """Replace a compound statement by its body, one level less indented."""
        unwrap(self.ctx, node, body)
        self.block(body)

    def _refuse_shared(self, node: ast.stmt, name: str) -> None:
        """An in-place write that another name sees is left alone, with what stands in it."""
        reason = f"PyTorch writes in place here, and {name!r}, read later, shares the memory; in JAX it keeps its value"
        self.ctx.report.gap(node, "in-place", "in-place-shared", reason)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            self.ctx.report.quiet += 1
            self.dispatch(node)
            self.ctx.report.quiet -= 1

    def _leave_marked(self, node: ast.stmt, first_edit: int) -> None:
        """A statement that an earlier conversion marked was converted as far as it goes; it waits for its author."""
        if node.lineno > 1 and self.ctx.source.line_text(node.lineno - 1).lstrip().startswith("# TODO(t2j)"):
            assert self.ctx.scope.statement is not None
            self.ctx.edits.take_back(first_edit)
            self.ctx.scope.statement.before.clear()

    def _undo_broken(self, node: ast.stmt, first_edit: int) -> None:
        """Leave a statement alone whose conversion isn't Python: a defect of a rule must not cost the file."""
        start, end = self.ctx.source.span(node)
        # Lines behind it are statements of their own.
        inside = [e for e in self.ctx.edits.made[first_edit:] if start <= e.start < max(end, e.end) and e.end <= end]
        text = apply_edits(self.ctx.source.text, inside, start, end)
        try:
            ast.parse(text.lstrip())
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
