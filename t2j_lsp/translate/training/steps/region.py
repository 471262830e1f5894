"""Replaces the lines of a loop by the calls of its train steps, and puts the compiled functions in front of it."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from functools import cached_property

from t2j_lsp import symbols
from t2j_lsp.symbols import statement_of_the_file
from t2j_lsp.translate.expressions.array_numbers import is_array_with_axes
from t2j_lsp.translate.expressions.context import Context, Edits
from t2j_lsp.translate.expressions.handlers import StatementRewriter
from t2j_lsp.translate.source.positions import header_end
from t2j_lsp.translate.training.program.allocations import Allocations
from t2j_lsp.translate.training.program.step_calls import Item, Refused
from t2j_lsp.translate.training.program.text import converted, indented, lead_comments, lead_lines, rendered

from .composed_step import UpdateStep
from .shared_draws import forward_outside
from .update import Update

AUTOCAST = (
    "Mixed precision goes: the step computes in float32. Give the layers dtype=jnp.bfloat16 to compute in half"
    " precision."
)
ABOUT_ZEROING = re.compile(r"\b(zero|clear|reset|flush|empty)", re.IGNORECASE)


class Region:
    """The part of one block that its updates take up."""

    def __init__(
        self,
        context: Context,
        allocations: Allocations,
        block: Sequence[ast.stmt],
        items: list[Item],
        updates: list[Update],
    ) -> None:
        self.ctx = context
        self.allocations = allocations
        self.block = block
        self.items = items
        self.updates = updates
        self.taken: set[int] = set()
        """Items that are gone from their place."""
        for update in updates:
            made = update.slice
            self.taken |= {i for i in (*made.moved, *made.split, *made.delayed) if i not in made.shared}
            self.taken.update(update.loops)
            for index in range(update.first, update.last + 1):
                if items[index].step_call is not None or items[index].condition is not None:
                    self.taken.add(index)
        self.shared = {i: u for u in updates for i in u.slice.shared}
        """Forward passes that stay for one update and are made again in a later one."""
        self._take_zeros()
        self._check_lines()

    def _take_zeros(self) -> None:
        """Gradients that are computed fresh need no zeroing and no switches, wherever these stand in the block."""
        self.taken |= {i for i, x in enumerate(self.items) if x.step_call is not None and x.step_call.kind == "switch"}
        if all(u.mode != "accumulated" for u in self.updates):
            for index, item in enumerate(self.items):
                if item.step_call is not None and item.step_call.kind in ("zero", "unscale", "rescale"):
                    self.taken.add(index)

    def owner(self, item: Item) -> ast.stmt:
        """The statement of the block that an item stands in."""
        if item.inside:
            return item.inside[0]
        return item.condition if item.condition is not None else item.node

    def moved(self) -> dict[ast.stmt, str]:
        """The statements that are part of an update, and the name of its function."""
        out: dict[ast.stmt, str] = {}
        for update in self.updates:
            parts = range(update.first, update.last + 1)
            for index in (
                *update.slice.moved,
                *update.slice.split,
                *update.loops,
                *(i for i in parts if self.items[i].step_call),
            ):
                out[self.items[index].node] = update.name
        for index in self.taken:
            step_call = self.items[index].step_call
            if step_call is not None:
                subject = ast.unparse(step_call.subject)
                owner = next((u for u in self.updates if subject in [o.text for o in u.optimized]), self.updates[0])
                out.setdefault(self.items[index].node, owner.name)
        return out

    def changed(self) -> list[ast.stmt]:
        """The statements of the block that are rewritten as a whole, in order, with those on the same lines."""
        owners = {self.owner(self.items[i]) for i in self.taken | self.shared.keys()}
        return [s for unit in self.units if not owners.isdisjoint(unit) for s in unit]

    def _check_lines(self) -> None:
        """Raises Refused if the block stands on the line of what it belongs to."""
        if not self.ctx.source.starts_line(self.block[0]):
            raise Refused("The loop stands on one line.")

    @cached_property
    def units(self) -> list[list[ast.stmt]]:
        """The statements of the block by the lines that they share: ``loss.backward(); optimizer.step()``."""
        out: list[list[ast.stmt]] = []
        for statement in self.block:
            if out and out[-1][-1].end_lineno == statement.lineno:
                out[-1].append(statement)
            else:
                out.append([statement])
        return out

    # --- writing --------------------------------------------------------------------------------------------------

    def write(self, statements: StatementRewriter, steps: list[UpdateStep]) -> None:
        """Edit the source: every changed statement's lines are replaced."""
        pending: list[str] = []
        blank = begun = False
        previous = self._header_end()
        changed = set(self.changed())
        for at, unit in enumerate(self.units):
            last = unit[-1].end_lineno
            assert last is not None
            if unit[0] not in changed:
                previous, pending, blank, begun = last, [], False, True
                continue
            lead = lead_lines(self.ctx.source, unit[0], previous)
            blank = blank or (bool(lead) and not lead[0])
            lines: list[str] = []
            for statement in unit:
                pending += self._comments(statement, lead if statement is unit[0] else [])
                for index, item in enumerate(self.items):
                    if self.owner(item) is statement:
                        lines += self._item(index, statements, steps, pending)
            if at + 1 == len(self.units) or self.units[at + 1][0] not in changed:
                lines += pending
            if lines and blank and begun:
                lines.insert(0, "")
            if lines:
                blank, begun = False, True
            self._replace(previous, last, lines, unit[0].lineno)
            previous = last

    def _header_end(self) -> int:
        """The last line of the header above the block: of the statement that holds it, or its ``else:``."""
        source = self.ctx.source
        owner = source.parents.get(self.block[0], source.tree)
        if self.block[0] in getattr(owner, "body", ()):
            return header_end(owner)
        line = self.block[0].lineno - 1
        while not source.line_text(line).lstrip().startswith(("else", "finally")):
            line -= 1
        return line

    def _comments(self, statement: ast.stmt, lead: list[str]) -> list[str]:
        """The comments of a changed statement that stay in the loop at its place."""
        above = [line for line in lead if line.startswith("#")]
        behind = self._trailing(statement)
        self.ctx.edits.placed_comments.update([*above, *behind])
        self.ctx.edits.placed_comments.update(self.ctx.source.comments_between(*self.ctx.source.span(statement)))
        index = next((i for i, x in enumerate(self.items) if x.node is statement), None)
        step_call = self.items[index].step_call if index is not None else None
        if index is not None and any(
            index in (*u.slice.moved, *u.slice.split, *u.slice.delayed, *u.loops) for u in self.updates
        ):
            return above[: len(above) - len(lead_comments(self.ctx.source, statement))]
        if step_call is not None and step_call.kind == "zero":
            return without_zeroing([*lead, "", *behind])
        if step_call is not None and step_call.kind == "switch":
            return above
        if index is not None and any(u.slice.call < index <= u.last for u in self.updates):
            return above[: len(above) - len(lead_comments(self.ctx.source, statement))]
        return [*above, *behind]

    def _step_comments(self, update: Update) -> list[str]:
        """Comments on the parts of the training step behind the call, which stand above it."""
        lines: list[str] = []
        for index in range(update.slice.call + 1, update.last + 1):
            item = self.items[index]
            if item.step_call is not None and item.condition is None:
                comments = [*lead_comments(self.ctx.source, item.node), "", *self._trailing(item.node)]
                lines += without_zeroing(comments) if item.step_call.kind == "zero" else [c for c in comments if c]
        self.ctx.edits.placed_comments.update(lines)
        return lines

    def _trailing(self, statement: ast.stmt) -> list[str]:
        """The comment behind a statement, on its last line."""
        behind = self.ctx.source.statement(statement).behind
        return [self.ctx.source.text[slice(*behind)]] if behind is not None else []

    def _item(
        self, index: int, statements: StatementRewriter, steps: list[UpdateStep], pending: list[str]
    ) -> list[str]:
        """What stands in the place of an item."""
        for update, step in zip(self.updates, steps, strict=True):
            if update.slice.call == index:
                lines = [*pending, *self._step_comments(update), *self._call(update, step, statements)]
                lines += self._delayed(update, statements)
                pending.clear()
                return lines
            if update.mode == "apart" and update.step == index:
                given = f"{update.optimized[0].modules[0]}, {update.optimized[0].text}, {update.grads}"
                apply = self.allocations.helper("apply_gradients", update.optimized[0].modules[0])
                lines = [*pending, f"{statements.renderer.need(apply)}({given})"]
                pending.clear()
                return lines
        item = self.items[index]
        if index in self.shared:
            update = self.shared[index]
            copied = self._copied(forward_outside(self.ctx, statements, item.node), update, statements)
            return [*update.slice.drawn.get(index, ()), *copied]
        if index in self.taken or item.condition is not None:
            return []
        lines = [*pending, *(lead_lines(self.ctx.source, item.node, self._before(item)) if item.inside else [])]
        pending.clear()
        return [*lines, *converted(self.ctx, statements, item.node)]

    def _copied(self, lines: list[str], update: Update, statements: StatementRewriter) -> list[str]:
        """A forward pass on a copy of the module, whose state must change only once."""
        need = statements.renderer.need
        for module in (m for o in update.optimized for m in o.modules):
            copy = f"{need(self.allocations.helper('forward', module))}({need('nnx')}.clone({module}), "
            lines = [re.sub(rf"(?<![\w.]){re.escape(module)}\(", lambda _: copy, line) for line in lines]  # noqa: B023
        return lines

    def _before(self, item: Item) -> int:
        """The line above an item of an opened ``with``, behind which its own comments begin."""
        body = item.inside[-1].body
        at = body.index(item.node) if item.node in body else 0
        return (body[at - 1].end_lineno or 0) if at else header_end(item.inside[-1])

    def _call(self, update: Update, step: UpdateStep, statements: StatementRewriter) -> list[str]:
        if update.condition is None:
            return [step.call, *step.numbers]
        before, test = rendered(self.ctx, statements, update.condition.test, update.condition)
        lines = [*before, f"if {test}:", *indented([step.call, *step.numbers], "    ")]
        for _index, item in enumerate(self.items):
            if item.condition is update.condition and item.step_call is None:
                lines += indented(converted(self.ctx, statements, item.node), "    ")
        if step.otherwise:
            lines += ["else:", *indented([step.otherwise, *step.numbers], "    ")]
        return lines

    def _delayed(self, update: Update, statements: StatementRewriter) -> list[str]:
        """What waited for the step, but for what is part of another one."""
        lines: list[str] = []
        others = [one.slice for one in self.updates if one is not update]
        elsewhere = {i for made in others for i in made.moved if i not in made.shared}
        for index in sorted({*update.slice.delayed, *update.slice.split} - elsewhere):
            node = self.items[index].node
            for (writer, held), waiting in update.slice.saved.items():
                for read in symbols.walk(node) if index in waiting else ():
                    if isinstance(read, ast.Name) and read.id == held:
                        self.ctx.scope.renamed[read] = update.saved[writer, held]
            if index not in update.slice.split:
                lines += converted(self.ctx, statements, node)
                continue
            assert isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
            name = self.ctx.source.segment(node.targets[0])
            has_axes = is_array_with_axes(self.ctx.fact(update.slice.split[index]))
            by_item = has_axes or isinstance(node.value.func, ast.Attribute)
            number = f"{name}.item()" if by_item else f"float({name})"
            lines.append(f"{name} = {number}")
        return lines

    def _replace(self, previous: int, last: int, lines: list[str], first: int) -> None:
        """Put lines in the place of the statements from line ``first`` to ``last`` and of what stands above them."""
        source = self.ctx.source
        start = source.line_end(previous)
        end = source.line_end(last)
        new = "".join(f"{line}{source.newline}" for line in indented(lines, self.ctx.edits.indent(first)))
        if not new and not source.text[end:].strip() and not source.text[:end].endswith(source.newline):
            end = len(source.text)
        self.ctx.edits.add(start, end, new)


def without_zeroing(lines: Sequence[str]) -> list[str]:
    """The comments among some lines, but for those about zeroing gradients, which is gone."""
    blocks: list[list[str]] = [[]]
    for line in lines:
        if line:
            blocks[-1].append(line)
        else:
            blocks.append([])
    return [c for block in blocks for c in block if not any(map(ABOUT_ZEROING.search, block))]


def insert_function(edits: Edits, place: ast.AST, lines: list[str], count: int, behind: ast.stmt | None = None) -> None:
    """Put a compiled function in front of the top-level statement around ``place``, or ``behind`` another one."""
    source = edits.source
    if behind is not None and behind.end_lineno is not None:
        at = source.starts[behind.end_lineno]
        spaced = not source.line_text(behind.end_lineno + 1).strip()
        lead = source.newline * (2 if not count else int(spaced))
        edits.add(at, at, lead + source.newline.join(lines) + source.newline * (2 if spaced else 3), count - 1000)
        return
    node = statement_of_the_file(place, source.parents)
    at, above = edits.in_front_of(node)
    lead = "" if count or at == 0 else source.newline * max(0, 2 - above)
    text = source.newline.join(lines) + source.newline * 3
    edits.add(at, at, lead + text, count - 1000)
