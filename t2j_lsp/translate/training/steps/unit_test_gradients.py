"""Gradients in tests: what stands before ``loss.backward()`` becomes a function of what ``.grad`` is read from.

::

    x = torch.randn(3, 4, requires_grad=True)      x = rngs.normal((3, 4))

    loss = net(x).sum()                            def loss_fn(x):
    loss.backward()                                    loss = net(x).sum()
                                                       return loss

    assert x.grad.shape == x.shape                 x_grad = jax.grad(loss_fn)(x)
                                                   assert x_grad.shape == x.shape
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import ExpressionHandler, ExpressionRenderer, StatementRewriter
from t2j_lsp.translate.inference.unit_tests import caller_of
from t2j_lsp.translate.rule.definitions import FunctionInfo
from t2j_lsp.translate.rule.pieces import Piece
from t2j_lsp.translate.source.text import Source
from t2j_lsp.translate.training.program.text import converted, indented, lead_comments, rendered, span_of_lines

from .unit_test_losses import Left, Loss, LossPlan, Root, find, plain

UNUSED = "Where PyTorch leaves .grad None, for what the loss does not depend on, JAX gives zeros."


def plan_gradients(context: Context) -> set[FunctionInfo]:
    """Put handlers on the tests that convert, and give these tests."""
    done: set[FunctionInfo] = set()
    if not context.inference.holds_tests:
        return done
    for info in context.inference.functions.values():
        if info.external or not caller_of(info, context.inference) or info.outer is not None:
            continue
        try:
            plans = [_Gradients(context, planned) for planned in find(context, info)]
            names: set[str] = set()
            for one in plans:
                one.look()
            roots = [text for one in plans for text in one.loss_plan.roots]
            if len(set(roots)) < len(roots):
                continue  # their gradients add up
            for one in plans:
                names |= one.plan(names, set(roots))
            for one in plans:
                one.take()
            if plans:
                done.add(info)
        except Left:
            continue
    return done


class _Gradients(Loss):
    """Finds where the gradients of one backward pass are read, and writes it."""

    def __init__(self, context: Context, plan: LossPlan) -> None:
        super().__init__(context, plan)
        self.source: Source = context.source
        self.names: set[str] = set()
        """Names that the backward passes of the test have taken."""
        self.handlers: list[tuple[ast.expr, ExpressionHandler]] = []
        self.undone: list[Callable[[], None]] = []

    def plan(self, names: set[str], roots: set[str]) -> set[str]:
        """Finds out where gradients are read, and gives the names that it takes beside ``names``. Raises Left.

        ``roots`` are those of all backward passes of the test.
        """
        plan = self.loss_plan
        reads = self._gradient_reads(roots)
        self.names = set(names)
        for root in plan.roots.values():
            root.grad = self._fresh("grads" if root.module and self._modules == 1 else f"{root.name}_grad")
        self.name = self._fresh("loss_fn")
        self.handlers = [handler for read in reads for handler in self._read(read)]
        return self.names

    def take(self) -> None:
        """Puts the handlers on the test."""
        for node, handler in self.handlers:
            self.ctx.plan.on_expression(node, handler)
        self._take()

    def _fresh(self, hint: str) -> str:
        """A name like ``hint`` that the test and what it sees have not."""
        taken = {n.id for n in symbols.walk(self.loss_plan.info.node) if isinstance(n, ast.Name)}
        taken |= {a.arg for a in symbols.walk(self.loss_plan.info.node) if isinstance(a, ast.arg)}
        taken |= {*self.ctx.inference.env, *self.ctx.names.reserved, *self.names}
        name, count = hint, 1
        while name in taken:
            count += 1
            name = f"{hint}{count}"
        self.names.add(name)
        return name

    # --- where gradients are read ---------------------------------------------------------------------------------

    def _gradient_reads(self, roots: set[str]) -> list[ast.Attribute]:
        """The gradients of this pass that are read; those of arrays that no pass has are not understood."""
        plan, reads = self.loss_plan, []
        for node in symbols.walk(plan.info.node):
            if isinstance(node, ast.Attribute) and node.attr == "grad":
                text = plain(node.value)
                if text in roots and text not in plan.roots:
                    continue  # another pass's
                if not text and len(roots) > len(plan.roots):
                    raise Left
                parent = self.ctx.source.parents.get(node)
                written = isinstance(parent, ast.Attribute) and parent.attr.endswith("_") and parent.attr[0] != "_"
                if not isinstance(node.ctx, ast.Load) or written or node.lineno <= plan.call.lineno:
                    raise Left
                reads.append(node)
        return reads

    def _read(self, node: ast.Attribute) -> Iterator[tuple[ast.expr, ExpressionHandler]]:
        """What ``x.grad`` and ``p.grad`` become, with the loop that ``p`` comes from."""
        root = self.loss_plan.roots.get(plain(node.value))
        if root is not None and not root.module:
            yield node, lambda renderer: Piece(root.grad)
            return
        if isinstance(node.value, ast.Name):
            yield from self._looped(node, node.value.id)
            return
        owner = next(
            (r for t, r in self.loss_plan.roots.items() if r.module and plain(node.value).startswith(t + ".")), None
        )
        if owner is None:
            raise Left
        owner.wanted = True
        parameter = node.value

        def of_parameter(renderer: ExpressionRenderer) -> Piece:
            text = renderer.render(parameter).text
            return Piece(owner.grad + text.removeprefix(owner.text))

        yield node, of_parameter

    def _looped(self, node: ast.Attribute, name: str) -> Iterator[tuple[ast.expr, ExpressionHandler]]:
        """``p.grad`` where ``p`` runs over the parameters of a module: the gradients are run over instead."""
        for place in ancestors(node, self.ctx.source.parents):
            loops = [place] if isinstance(place, ast.For) else getattr(place, "generators", [])
            for loop in loops:
                if any(isinstance(n, ast.Name) and n.id == name for n in symbols.walk(loop.target)):
                    yield from self._over_gradients(node, name, loop, place)
                    return
        raise Left

    def _over_gradients(
        self, node: ast.Attribute, name: str, loop: ast.For | ast.comprehension, around: ast.AST | None
    ) -> Iterator[tuple[ast.expr, ExpressionHandler]]:
        match loop.iter:
            case ast.Call(
                func=ast.Attribute(attr="parameters" | "named_parameters", value=owner), args=[], keywords=[]
            ):
                root, part = self._module_of(owner)
            case _:
                raise Left
        assert around is not None and isinstance(loop.iter, ast.Call) and isinstance(loop.iter.func, ast.Attribute)
        reads = [
            n for n in symbols.walk(around) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)
        ]
        if root is None or part and loop.iter.func.attr == "named_parameters":
            raise Left
        if not all(self._only_gradient(n) for n in reads):
            raise Left
        root.wanted = True
        named = loop.iter.func.attr == "named_parameters"
        yield node, lambda renderer: Piece(name)
        if isinstance(loop, ast.For):
            self._loop_head(loop, root, named, part)
            return

        def iterated(renderer: ExpressionRenderer) -> Piece:
            if not named:
                return Piece(f"{renderer.need('jax')}.tree.leaves({root.grad}{part})")
            key = f"{renderer.need('torch_name')}({root.text}, path)"
            return Piece(f"(({key}, g) for path, g in {renderer.need('nnx')}.to_flat_state({root.grad}))")

        yield loop.iter, iterated

    def _module_of(self, owner: ast.expr) -> tuple[Root | None, str]:
        """The module that the loss is computed with and the part of it: ``net`` and ``.head`` of ``net.head``."""
        text = plain(owner)
        for root in self.loss_plan.roots.values():
            if root.module and (text == root.text or text.startswith(f"{root.text}.")):
                return root, text.removeprefix(root.text)
        return None, ""

    def _only_gradient(self, node: ast.Name) -> bool:
        parent = self.ctx.source.parents.get(node)
        return isinstance(parent, ast.Attribute) and parent.attr in ("grad", "requires_grad")

    def _loop_head(self, loop: ast.For, root: Root, named: bool, part: str) -> None:
        targets = loop.target.elts if isinstance(loop.target, ast.Tuple) else [loop.target]
        if len(targets) != 1 + named or not all(isinstance(t, ast.Name) for t in targets):
            raise Left

        def handler(statements: StatementRewriter) -> None:
            renderer, ctx = statements.renderer, self.ctx
            names = [t.id for t in targets if isinstance(t, ast.Name)]
            used = any(isinstance(n, ast.Name) and n.id == names[0] for s in loop.body for n in symbols.walk(s))
            if not named:
                ctx.edits.replace(loop.iter, f"{renderer.need('jax')}.tree.leaves({root.grad}{part})")
            else:
                path = self._fresh("path")
                ctx.edits.replace(loop.iter, f"{renderer.need('nnx')}.to_flat_state({root.grad})")
                ctx.edits.replace(loop.target, f"{path if used else '_'}, {names[1]}")
                if used:
                    line = f"{names[0]} = {renderer.need('torch_name')}({root.text}, {path})"
                    ctx.edits.insert_before(loop.body[0], [line])
            ctx.report.count_converted()
            statements.block(loop.body)
            statements.block(loop.orelse)

        if loop.body[0].lineno == loop.lineno:
            raise Left
        self.undone.append(lambda: self.ctx.plan.statement_handlers.__setitem__(loop, handler))

    # --- writing --------------------------------------------------------------------------------------------------

    def _take(self) -> None:
        """Put handlers on the statements, which are written where the first of them stands."""
        plan = self.loss_plan
        if not any(root.wanted for root in plan.roots.values()):
            for root in plan.roots.values():
                root.wanted = root.module or not self._modules
        for done in self.undone:
            done()
        region = list(plan.block[plan.first : plan.at + 1])
        for node in region[1:]:
            self.ctx.plan.on_statement(node, lambda statements: None)
        self.ctx.plan.on_statement(region[0], lambda statements: self._write(statements, region))
        for root in plan.roots.values():
            if root.text != root.name:
                for inner in (n for s in [*plan.moved, plan.call] for n in symbols.walk(s)):
                    if isinstance(inner, ast.Attribute) and plain(inner) == root.text:
                        self.ctx.plan.on_expression(inner, lambda renderer, name=root.name: Piece(name))  # type: ignore[misc]

    def _write(self, statements: StatementRewriter, region: Sequence[ast.stmt]) -> None:
        ctx, plan = self.ctx, self.loss_plan
        body: list[str] = []
        for node in plan.moved:
            body += [*lead_comments(self.source, node), *converted(self.ctx, statements, node)]
        before, loss = rendered(self.ctx, statements, self.loss, region[-1])
        if self.weights is not None:
            more, weights = rendered(self.ctx, statements, self.weights, region[-1])
            before += more
            loss = f"{statements.renderer.need('jnp')}.sum({loss} * {weights})"
        body += before
        returned = ", ".join([loss, _packed(plan.outputs)] if plan.outputs else [loss])
        parameters = ", ".join(root.name for root in plan.roots.values())
        lines = [f"def {self.name}({parameters}):", *indented([*body, f"return {returned}"], "    "), ""]
        lines.append(self._call(statements.renderer))
        for node in region[:-1]:
            if node not in plan.moved:
                lines += converted(self.ctx, statements, node)
        start, _ = span_of_lines(self.source, region[0])
        _, end = span_of_lines(self.source, region[-1])
        indent = ctx.edits.indent(region[0].lineno)
        above = self.source.line_text(region[0].lineno - 1).strip() if region[0].lineno > 1 else ""
        lead = [""] if above and region[0] is not plan.info.node.body[0] and not above.startswith("#") else []
        ctx.edits.add(start, end, self.source.newline.join([*lead, *indented(lines, indent)]))
        ctx.edits.placed_comments.update(line for line in body if line.startswith("#"))
        ctx.report.count_converted()
        ctx.report.note(plan.call, "torch.Tensor.backward", "note", UNUSED)

    def _call(self, renderer: ExpressionRenderer) -> str:
        """The statement that calls the loss function's gradient."""
        plan, roots = self.loss_plan, list(self.loss_plan.roots.values())
        wanted = [index for index, root in enumerate(roots) if root.wanted]
        library = renderer.need("nnx" if self._modules else "jax")
        options = ""
        if wanted != [0]:
            options += f", argnums={wanted[0] if len(wanted) == 1 else tuple(wanted)}"
        if plan.outputs:
            options += ", has_aux=True"
        grads = _packed([roots[index].grad for index in wanted])
        given = ", ".join(root.text for root in roots)
        if plan.reads:
            assert isinstance(self.loss, ast.Name)
            value = f"({self.loss.id}, {_packed(plan.outputs)})" if plan.outputs else self.loss.id
            return f"{value}, {grads} = {library}.value_and_grad({self.name}{options})({given})"
        bare = ", ".join(roots[index].grad for index in wanted)
        target = f"{grads}, {_packed(plan.outputs)}" if plan.outputs else bare
        return f"{target} = {library}.grad({self.name}{options})({given})"


def _packed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"({', '.join(names)})"
