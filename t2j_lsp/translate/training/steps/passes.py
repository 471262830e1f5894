"""Forward passes outside of train steps, with what is computed around them: ``eval_step``.

Where a loop evaluates or acts, the module's call is compiled, and so is what follows from it: losses, predictions, the
number of right ones. Each operation by itself costs as much as the forward pass of a small module.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from functools import partial

from t2j_lsp import symbols
from t2j_lsp.symbols import nearest
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.rule.definitions import is_module
from t2j_lsp.translate.rule.library import is_loss
from t2j_lsp.translate.training.data.batch_loops import is_move
from t2j_lsp.translate.training.program.dict_order import DictOrder
from t2j_lsp.translate.training.program.flow import DataFlow, Liveness
from t2j_lsp.translate.training.program.held_numbers import HeldNumbers
from t2j_lsp.translate.training.program.objects import Objects, VariableScope
from t2j_lsp.translate.training.program.step_calls import Refused

from .array_code import ArrayCode, outermost
from .effects import CallEffects
from .pass_writer import Pass, PassWriter
from .training_steps import Steps
from .update import Measure
from .updates import read_elsewhere

_SIMPLE = (ast.Assign, ast.AugAssign, ast.Expr, ast.Return)
_LEAVES = (ast.Return, ast.Break, ast.Continue, ast.Raise)


class Passes:
    """Plans them for the calls of modules that are worth a compilation."""

    def __init__(self, context: Context, objects: Objects, steps: Steps, calls: Collection[ast.Call]) -> None:
        self.ctx = context
        self.objects = objects
        self.steps = steps
        self.calls = calls
        self.compiled: set[ast.AST] = set()
        """Statements and expressions that are computed in one."""

    def plan(self) -> set[ast.Call]:
        """Put handlers on the statements around the calls; the calls that are part of one."""
        waiting = sorted(self.calls, key=lambda call: (call.lineno, call.col_offset))
        taken: set[ast.Call] = set()
        for call in waiting:
            statement = nearest(ast.stmt, call, self.ctx.source.parents)
            if call in taken or not isinstance(statement, _SIMPLE):
                continue
            block = self._block(statement)
            scope = _ScopePasses(self, self.objects.scope(statement))
            try:
                made = scope.made(block, block.index(statement))
            except Refused:
                continue
            if made is not None:
                scope.writer.handle(made)
                self.compiled.update(made.parts)
                inside = (n for part in made.parts for n in symbols.walk(part))
                taken |= {n for n in inside if isinstance(n, ast.Call) and n in self.calls}
        return taken

    def _block(self, node: ast.stmt) -> list[ast.stmt]:
        """The statements around one, those in contexts without gradients among them."""
        around = self.ctx.source.parents.get(node)
        while isinstance(around, ast.With) and self._goes(around):
            node, around = around, self.ctx.source.parents.get(around)
        return [*self._opened(self.ctx.source.block_of(node) or [node])]

    def _opened(self, block: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
        for node in block:
            if isinstance(node, ast.With) and self._goes(node):
                yield from self._opened(node.body)
            else:
                yield node

    def _goes(self, node: ast.With) -> bool:
        """Whether a context is none in the output: nothing is differentiated in it, and it holds more than one line."""
        reader = self.steps.reader
        return reader.has_no_gradient(node) and len(node.items) == 1 and node not in self.ctx.plan.statement_handlers


class _ScopePasses:
    """Those of one scope."""

    def __init__(self, passes: Passes, scope: VariableScope) -> None:
        self.passes = passes
        self.ctx = passes.ctx
        self.objects = passes.objects
        self.scope = scope
        owner = self.objects.holder(scope)
        effects = CallEffects(self.ctx.inference, owner)
        self.flow = DataFlow(self.ctx.source.symbols, owner, passes.steps.lifting.passed, effects=effects)
        self.code = ArrayCode(self.ctx, self.flow, passes.steps.jittable)
        self.writer = PassWriter(self.ctx, self.objects, passes.steps, scope, self.flow)

    def made(self, block: Sequence[ast.stmt], first: int) -> Pass | None:
        """What is computed with a forward pass; None where that is no more than the pass itself."""
        made = self._behind(block, first)
        if not made.parts:
            return None
        self._before(made)
        made.live = self._live(made)
        if not self._is_more(made) or self.writer.inputs(made) is None:
            return None
        held = HeldNumbers(self.ctx.inference)  # numbers would come back as arrays
        return None if any(held.assigned(name, made.parts).has_numbers for name in made.live) else made

    def _behind(self, block: Sequence[ast.stmt], first: int) -> Pass:
        """The forward pass and what follows from it."""
        made = Pass(block, first)
        given, changed, staying = set[str](), set[str](), list[ast.stmt]()
        for index in range(first, len(block)):
            node = block[index]
            if any(isinstance(n, _LEAVES) for n in symbols.walk(node)) and not isinstance(node, ast.Return):
                break
            value = self.code.assigns(node) if self._may_move(node) else None
            known = value is not None and self._is_known_code(value, given, changed) and self._is_new(node, staying)
            if known and value is not None and (made.parts or self._is_of(value, given, changed)):
                made.moved.append(index)
                given |= self.flow.writes(node)
                continue
            if isinstance(node, _SIMPLE) and node not in self.ctx.plan.statement_handlers:
                is_of = partial(self._is_of, given=given, changed=changed)
                for one in outermost(node, is_of, self.ctx.plan.expression_handlers):
                    made.measures.append(Measure("", one, node))
            if index == first and not made.parts:
                break
            staying.append(node)
            changed |= self.code.changes(node)
        for index in reversed(made.moved):
            self._give_back(made, index)
        return made

    def _give_back(self, made: Pass, index: int) -> None:
        """Leave a statement in its place that is neither computed of a forward pass nor needed for what is."""
        node, others = made.block[index], [i for i in made.moved if i != index]
        results, parts = set[str](), Pass(made.block, made.first, others, made.measures).parts
        for part in parts:
            of_pass = any(isinstance(n, ast.Call) and n in self.passes.calls for n in symbols.walk(part))
            if of_pass or self.flow.reads(part) & results:
                results |= self.flow.writes(part)
        of_pass = any(isinstance(n, ast.Call) and n in self.passes.calls for n in symbols.walk(node))
        if (
            of_pass
            or self.flow.reads(node) & results
            or any(self.flow.writes(node) & self.flow.reads(p) for p in parts)
        ):
            return
        made.moved = others

    def _may_move(self, node: ast.stmt) -> bool:
        """Whether a statement can be written elsewhere: not one that makes arrays of a batch."""
        place = self.ctx.source.statement(node)
        alone = place.alone and place.separator is None and not self._makes_batch(node)
        return alone and node not in self.ctx.plan.statement_handlers and node not in self.passes.compiled

    def _makes_batch(self, node: ast.stmt) -> bool:
        """Whether a statement moves a batch to a device, which makes arrays of it: ``x = x.to(device)``."""
        handlers = self.ctx.plan.expression_handlers
        return any(isinstance(n, ast.Call) and n in handlers and is_move(n) for n in symbols.walk(node))

    def _is_of(self, node: ast.expr, given: Collection[str], changed: Collection[str]) -> bool:
        """Whether an expression is computed of a forward pass or of what one gave, and else of what is known."""
        if not self._is_known_code(node, given, changed):
            return False
        calls = any(isinstance(n, ast.Call) and n in self.passes.calls for n in symbols.walk(node))
        return calls or any(self.flow.variable(n) in given for n in self.code.variables(node))

    def _is_known_code(self, node: ast.expr, given: Collection[str], changed: Collection[str]) -> bool:
        """Whether an expression computes arrays of what the function has made, and of what is known in front of it."""
        if not self.code.is_computed(node) or self.code.draws(node):
            return False
        inner = [*symbols.walk(node)]
        modules = [n for n in inner if isinstance(n, ast.Call) and self._calls_module(n)]
        if not self.passes.compiled.isdisjoint(inner) or not all(n in self.passes.calls for n in modules):
            return False
        read = self.code.variables(node)
        return all(self._is_known(n, given) and self.flow.variable(n) not in changed for n in read)

    def _calls_module(self, call: ast.Call) -> bool:
        owner = call.func.value if isinstance(call.func, ast.Attribute) else call.func
        facts = [self.ctx.fact(call.func), self.ctx.fact(owner)]
        return any(is_module(fact) and not is_loss(fact) for fact in facts)

    def _is_known(self, node: ast.Name | ast.Attribute, given: Collection[str]) -> bool:
        return self.flow.variable(node) in given or self.code.is_passed(node) or is_loss(self.ctx.fact(node))

    def _is_new(self, node: ast.stmt, staying: Sequence[ast.stmt]) -> bool:
        """Whether nothing that stays in front of a statement knows the variables that it gives values."""
        names = self.flow.writes(node) - {"_"}
        return not any(names & (self.flow.reads(one) | self.flow.writes(one)) for one in staying)

    def _before(self, made: Pass) -> None:
        """Have what is made for the forward pass alone move into the function: ``x = x.view(-1, 784)``."""
        for index in range(made.first - 1, -1, -1):
            node = made.block[index]
            if any(isinstance(n, _LEAVES) for n in symbols.walk(node)):
                return
            if self._is_made_for(made, index):
                moved = sorted([index, *made.moved])
                more = Pass(made.block, made.first, moved, made.measures)
                if not self.flow.writes(node) & set(self._live(more)):
                    made.moved = moved

    def _is_made_for(self, made: Pass, index: int) -> bool:
        node = made.block[index]
        value = self.code.assigns(node) if self._may_move(node) else None
        if value is None or not self.code.is_computed(value) or self.code.draws(value):
            return False
        if any(isinstance(n, ast.Call) and self._calls_module(n) for n in symbols.walk(value)):
            return False
        if not all(map(self.code.is_passed, self.code.variables(value))):
            return False
        reads, writes = self.flow.reads(node), self.flow.writes(node)
        if not any(writes & self.flow.reads(part) for part in made.parts):
            return False
        between = [made.block[i] for i in range(index + 1, made.first) if i not in made.moved]
        return not any(self.code.changes(one) & (reads | writes) or self.flow.reads(one) & writes for one in between)

    def _live(self, made: Pass) -> list[str]:
        """The variables that the function has to give, in their order."""
        nodes = [made.block[i] for i in made.moved]
        flow = self.flow.without([*nodes, *(one.value for one in made.measures)])
        body = self.scope.function.node.body if self.scope.function is not None else self.ctx.source.tree.body
        liveness = Liveness(flow, body, read_elsewhere(self.ctx, self.scope, self.flow))
        start = min([made.first, *made.moved])
        wanted = liveness.after.get(made.block[start], set()) | flow.reads(made.block[start])
        out: list[str] = []
        for node in nodes:
            names = (self.flow.variable(n) for n in symbols.walk(node) if not _is_load(n))
            out += [name for name in names if name is not None and name in wanted and name not in out]
        return out

    def _is_more(self, made: Pass) -> bool:
        """Whether it computes more than the modules' calls themselves, which is given and keeps its order."""
        values = [self.code.assigns(made.block[i]) for i in made.moved] + [one.value for one in made.measures]
        alone = all(value in self.passes.calls for value in values)
        given = [n for i in made.moved for n in symbols.walk(made.block[i]) if not _is_load(n)]
        ordered = DictOrder(self.ctx)
        if any(isinstance(n, ast.Name) and n.id in made.live and ordered.loses(n.id, made.parts) for n in given):
            return False
        return not alone and bool(made.live or made.measures)


def _is_load(node: ast.AST) -> bool:
    return isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
