"""Rewrites statements: assignments into arrays and variables, conditions, loops, ``with torch.no_grad()``."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.copying import children
from t2j_lsp.translate.expressions.fold import fold
from t2j_lsp.translate.expressions.render import Renderer
from t2j_lsp.translate.expressions.scope import Statement
from t2j_lsp.translate.inference.rngs import start_of_rngs
from t2j_lsp.translate.inference.unit_tests import seeds_all
from t2j_lsp.translate.rule.facts import Qual, is_tensor
from t2j_lsp.translate.rule.precedence import ANY, ATOM, bracket, breaks_line
from t2j_lsp.translate.rule.record import REGISTRY
from t2j_lsp.translate.source.text import apply_edits

from .module_loops import ModuleLoops
from .no_gradient import NO_GRAD, NoGradient
from .stores import Stores

TRANSPARENT = ("torch.enable_grad", "torch.autograd.profiler.record_function", "torch.profiler.record_function")
SEEDS = ("torch.manual_seed", "torch.random.manual_seed")


class Statements(Stores, ModuleLoops, NoGradient):
    """Walks the statements of a file and records their edits. Classes and functions are in ``modules``."""

    def __init__(self, context: Context, renderer: Renderer) -> None:
        self.ctx = context
        self.renderer = renderer

    def block(self, body: Iterable[ast.stmt]) -> None:
        for node in body:
            self.visit(node)

    def visit(self, node: ast.stmt, planned: bool = True) -> None:
        """Rewrite one statement, as planned if it is, then put in front of it what its expressions asked for."""
        ctx = self.ctx
        saved = ctx.scope.statement
        starts = ctx.source.starts_line(node)
        elif_ = isinstance(node, ast.If) and ctx.source.text.startswith("elif", ctx.source.span(node)[0])
        ctx.scope.statement = Statement(node, hoistable=starts and not elif_ and not isinstance(node, ast.While))
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

    def dispatch(self, node: ast.stmt) -> None:
        match node:
            case (
                ast.Import()
                | ast.ImportFrom()
                | ast.Pass()
                | ast.Break()
                | ast.Continue()
                | ast.Global()
                | ast.Nonlocal()
            ):
                return
            case ast.ClassDef():
                self.class_def(node)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.function_def(node)
            case ast.If():
                self._if(node)
            case ast.For() | ast.AsyncFor():
                self._for(node)
            case ast.While():
                self._note_branch(node.test)
                self.header(node)
                self.block(node.body)
                self.block(node.orelse)
            case ast.With() | ast.AsyncWith():
                self._with(node)
            case ast.Try():
                for handler in node.handlers:
                    if handler.type is not None:
                        self.expression(handler, "type", handler.type)
                    self.block(handler.body)
                self.block(node.body)
                self.block(node.orelse)
                self.block(node.finalbody)
            case ast.Match():
                self.expression(node, "subject", node.subject)
                for case in node.cases:
                    self.block(case.body)
            case ast.Expr():
                self._expression_statement(node)
            case ast.Assign():
                self._assign(node)
            case ast.AnnAssign():
                self._annotated(node)
            case ast.AugAssign():
                self._augmented(node)
            case _:
                self.header(node)

    def class_def(self, node: ast.ClassDef) -> None:
        raise NotImplementedError

    def function_def(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        raise NotImplementedError

    def module_statement(self, node: ast.Expr, call: ast.Call) -> bool:
        raise NotImplementedError

    # --- expressions of a statement -------------------------------------------------------------------------------

    def header(self, node: ast.AST) -> None:
        """Render every expression that belongs to the statement itself."""
        for parent, field, child in children(node):
            self.expression(parent, field, child)

    def expression(self, parent: ast.AST, field: str, child: ast.expr) -> None:
        piece = self.renderer.copier.render_in(parent, field, child)
        if piece.text != self.ctx.source.segment(child):
            text = piece.text
            start, end = self.ctx.source.span(child)
            if breaks_line(text) and self.ctx.source.concrete.around(start, end) is None:
                text = bracket(piece, ATOM) if piece.precedence < ATOM else text
            # A call that became an assignment takes the place of the whole statement, with any brackets around it.
            self.ctx.edits.replace(parent if isinstance(parent, ast.Expr) and piece.precedence == ANY else child, text)

    def annotation(self, node: ast.expr | None) -> None:
        if node is None:
            return
        with self.renderer.annotations.within():
            self.expression(ast.Module([], []), "annotation", node)

    # --- control flow ---------------------------------------------------------------------------------------------

    def _if(self, node: ast.If) -> None:
        known = fold(node.test, self.ctx)
        if known is not None and self._take_branch(node, node.body if known else node.orelse):
            return
        self._note_branch(node.test)
        self.expression(node, "test", node.test)
        self.block(node.body)
        self.block(node.orelse)

    def _take_branch(self, node: ast.If, body: list[ast.stmt]) -> bool:
        """Keep one branch of a condition whose value is known; whether that could be done."""
        source = self.ctx.source
        if source.text.startswith("elif", source.span(node)[0]) or not self.ctx.source.starts_line(node):
            return False
        if not body:
            self.ctx.edits.delete(node)
            return True
        if body[0].lineno == node.lineno or (
            body is node.orelse and source.text.startswith("elif", source.span(body[0])[0])
        ):
            return False
        self.unwrap(node, body)
        return True

    def unwrap(self, node: ast.stmt, body: list[ast.stmt]) -> None:
        """Replace a compound statement by its body, one level less indented."""
        source = self.ctx.source
        first, last = body[0], body[-1]
        decorators = getattr(first, "decorator_list", None)
        first_line = min([first.lineno, *(d.lineno for d in decorators or ())])
        start = source.starts[node.lineno - 1]
        body_start = self._comments_above(first_line, node.lineno)
        assert last.end_lineno is not None and node.end_lineno is not None
        width = len(source.indent(first.lineno)) - len(source.indent(node.lineno))
        self.ctx.edits.add(start, source.starts[body_start - 1], "", -1)
        if last.end_lineno < node.end_lineno:
            begin = source.starts[last.end_lineno]
            end = source.starts[node.end_lineno] if node.end_lineno < len(source.starts) else len(source.text)
            self.ctx.edits.add(begin, end, "", -1)
        self._dedent(body_start, last.end_lineno, width)
        self.block(body)

    def _comments_above(self, line: int, header: int) -> int:
        """The first of the comment lines that stand directly above ``line``, inside the block."""
        while line - 1 > header and self.ctx.source.line_text(line - 1).lstrip().startswith("#"):
            line -= 1
        return line

    def _dedent(self, first: int, last: int, width: int) -> None:
        inside = self._string_lines()
        for line in range(first, last + 1):
            if line in inside or width <= 0 or len(self.ctx.source.indent(line)) < width:
                continue
            start = self.ctx.source.starts[line - 1]
            done = self.ctx.edits.dedented.get(line, 0)
            self.ctx.edits.add(start + done, start + done + width, "", -2)
            self.ctx.edits.dedented[line] = done + width

    def _string_lines(self) -> set[int]:
        """Lines that begin inside a string literal, whose indentation is part of its value."""
        lines: set[int] = set()
        for node in self.ctx.source.nodes:
            if isinstance(node, ast.Constant | ast.JoinedStr) and (node.end_lineno or 0) > node.lineno > 0:
                if isinstance(node, ast.JoinedStr) or isinstance(node.value, str | bytes):
                    lines.update(range(node.lineno + 1, (node.end_lineno or 0) + 1))
        return lines

    def _note_branch(self, test: ast.expr) -> None:
        """``if x.sum() > 0`` works eagerly and fails under jit."""
        fact = self.ctx.fact(test)
        inside = self.ctx.scope.class_info is not None and self.ctx.scope.class_info.is_module
        if is_tensor(fact) and inside:
            self.ctx.report.note(
                test, "if", "tensor-branch", "a condition on array values fails under jit; use jnp.where or lax.cond"
            )

    def _for(self, node: ast.For | ast.AsyncFor) -> None:
        if not self.walks(node):
            self.header(node)
        self.block(node.body)
        self.block(node.orelse)

    def _with(self, node: ast.With | ast.AsyncWith) -> None:
        names = [self._context_name(item) for item in node.items]
        if all(name in NO_GRAD or name in TRANSPARENT for name in names) and node.body[0].lineno > node.lineno:
            self.unwrap(node, node.body)
            if any(name in NO_GRAD for name in names):
                self._stop_gradients(node)
            return
        self.header(node)
        self.block(node.body)

    def _context_name(self, item: ast.withitem) -> str:
        expression = item.context_expr
        fact = self.ctx.fact(expression.func if isinstance(expression, ast.Call) else expression)
        return fact.name if isinstance(fact, Qual) and item.optional_vars is None else ""

    # --- expression statements ------------------------------------------------------------------------------------

    def _expression_statement(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Call):
            self.header(node)
            return
        call = node.value
        fact = self.ctx.fact(call.func)
        if isinstance(fact, Qual):
            rule = REGISTRY.get(fact.name)
            if rule is not None and rule.drop:
                self.ctx.edits.delete(node)
                self.ctx.report.converted += 1
                return
            if fact.name in SEEDS and call.args:
                self._seed(node, call)
                return
        if self.module_statement(node, call):
            return
        self.header(node)

    def _seed(self, node: ast.Expr, call: ast.Call) -> None:
        """``torch.manual_seed(0)`` becomes the seed of the Rngs that the code after it uses."""
        seed = self.renderer.render(call.args[0]).text
        function = self.ctx.scope.function
        self.ctx.report.converted += 1
        if function is not None and seeds_all(function, self.ctx.inference):
            self.ctx.edits.delete(node)
            return
        generator = f"{self.renderer.need('nnx')}.Rngs({seed})"
        self.ctx.edits.replace(call, start_of_rngs(function, generator) if function else f"rngs = {generator}")
        self.ctx.rngs.seeds[node] = "rngs"
        self.ctx.edits.removable[node] = "rngs"

    # --- assignments ----------------------------------------------------------------------------------------------
