"""The step of an optimizer as functions of one parameter: what its state is at first, and what a step makes of both.

Values that only the running step knows, as the count of steps and a learning rate that changes, are no conditions of
Python's: what stands behind one is computed and chosen by ``torch.where``.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from dataclasses import dataclass

from t2j_lsp import symbols

from .apart import written_first
from .constructor import RATE
from .counters import StepCounter
from .forms import asks_for_state, is_in_place, or_new_state, raises_for_sparse, skips
from .lines import indented, unparsed
from .names import pairs
from .unfit import Unfit, need
from .values import FIRST, StepValues
from .walks import is_without_gradient


@dataclass
class StepFunctions:
    """The lines of what stands above the functions, and of their bodies."""

    above: list[str]
    initial: list[str]
    update: list[str]
    parameter: str
    gradient: str


class OptimizerStepWriter(StepValues):
    """Writes the functions."""

    def is_given(self, name: str) -> None:
        """A variable has a value that each step computes before its walk."""
        need(name not in self.names.renames and name not in self.names.stored, f"what {name} is", self.walk.body[0])
        self.expressions.traced.add(name)
        self.defined.add(name)

    def functions(self) -> StepFunctions:
        """What a step is. Raises Unfit."""
        entries = {**self.names.entries, **{one.name: one.name for one in self.counters.values()}}
        self.expressions.traced |= {self.names.parameter, self.names.gradient, RATE, *entries.values()}
        self.defined |= {self.names.parameter, self.names.gradient, *entries.values()}
        for one in self.counters.values():
            self.initial.number(one.name, one.first)
        self.initial.find(self.walk.body, self.names)
        self.beyond = self._beyond(self.walk.body, ())
        body = self.block([*self.walk.before, *self.walk.body, *self.walk.after], None)
        if self.late:
            entries[FIRST] = FIRST
        entries = {key: name for key, name in entries.items() if not self._is_local(key)}
        loose = sorted(self.initial.conditional & entries.keys())
        missing = [k for k in entries if k not in self.initial.kinds and k != FIRST]
        need(not missing, f"where its state {missing[:1]} is made", self.walk.body[0])
        kept = {key: name for key, name in entries.items() if key not in self.initial.conditional}
        state = "state"
        head = [f"{name} = {name}.clone()" for name in (self.names.parameter, self.names.gradient)]
        head += [f'{name} = {state}["{key}"].clone()' for key, name in kept.items()]
        for key in (key for key in loose if key in self.beyond):
            head += self._under(key, f'{entries[key]} = {state}["{key}"].clone()')
            body += self._under(key, f'{state}["{key}"] = {entries[key]}')
        values = {key: f"{self.torch}.tensor(False)" if key == FIRST else name for key, name in kept.items()}
        parts = [f"**{state}"] * bool(loose) + [f'"{key}": {value}' for key, value in values.items()]
        body += [f"return {self.names.parameter}, {{{', '.join(parts)}}}"]
        if self.late:
            self.initial.late(FIRST, f"{self.torch}.tensor(True)")
        return StepFunctions(
            self.above, self.initial.lines(state), head + body, self.names.parameter, self.names.gradient
        )

    def _under(self, key: str, line: str) -> list[str]:
        """A line under the conditions under which a parameter has an entry of the state."""
        for test in reversed(self.initial.conditions[key]):
            line = "\n".join([f"if {test}:", *indented(line.split("\n"))])
        return line.split("\n")

    def _beyond(self, body: Sequence[ast.stmt], path: tuple[str, ...]) -> set[str]:
        """The entries of the state that are used outside of the condition under which they are made."""
        out: set[str] = set()
        for node in body:
            if (
                isinstance(node, ast.If)
                and asks_for_state(node, self.names) is None
                and not or_new_state(node, self.names)
            ):
                test = self.expressions.rewrite(node.test)
                other = ast.UnaryOp(ast.Not(), test)
                out |= self._beyond(node.body, (*path, unparsed(test)))
                out |= self._beyond(node.orelse, (*path, unparsed(ast.fix_missing_locations(other))))
                continue
            for key, tests in self.initial.conditions.items():
                if tests and not set(tests) <= set(path) and not self.initial.is_made(node) and self._uses(node, key):
                    out.add(key)
        return out

    def _is_of_state(self, node: ast.If) -> bool:
        """Whether a statement asks for a state."""
        return asks_for_state(node, self.names) is not None or or_new_state(node, self.names) is not None

    def _uses(self, node: ast.stmt, key: str) -> bool:
        """Whether a statement uses an entry of the state, or a variable that holds it."""
        held = self.reader.aliases.get(key, [])
        return any(
            isinstance(n, ast.Name) and n.id in held or isinstance(n, ast.Subscript) and self.reader.key(n) == key
            for n in symbols.walk(node)
        )

    def _is_local(self, key: str) -> bool:
        """Whether every step gives an entry of the state its value before it reads it: it is a variable."""
        if key in self.initial.kinds or key not in self.names.entries:
            return False
        nodes = [n for n in self.reader.nodes if isinstance(n, ast.Subscript) and self.reader.key(n) == key]
        mentions = sum(isinstance(n, ast.Constant) and n.value == key for n in self.reader.file)
        return mentions == len(nodes) and any(self._begins(block, nodes) for block in symbols.blocks(self.walk.body))

    def _begins(self, block: Sequence[ast.stmt], uses: Sequence[ast.AST]) -> bool:
        """Whether a statement of a block gives a value to what is used nowhere but behind it in the block."""
        for at, node in enumerate(block):
            if isinstance(node, ast.Assign) and any(target in uses for target, _ in pairs(node)):
                behind = {n for s in block[at + 1 :] for n in symbols.walk(s)} | set(node.targets)
                return all(use in behind for use in uses)
        return False

    # --- blocks ---------------------------------------------------------------------------------------------------

    def block(self, body: Sequence[ast.stmt], mask: ast.expr | None) -> list[str]:
        """The lines of some statements; ``mask`` is the condition of the running step under which they count."""
        out: list[str] = []
        for node in body:
            made = self.statement(node, mask)
            if made:
                above = self.lines.above(node)
                out += [*(above if out else [c for c in above if c]), *made]
        return out

    def statement(self, node: ast.stmt, mask: ast.expr | None) -> list[str]:
        """The lines of one statement."""
        if parts := written_first(node):
            return [line for part in parts for line in self.statement(part, mask)]
        match node:
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                return []
            case ast.If():
                return self._if(node, mask)
            case ast.Assign():
                return self._assign(node, mask)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                return self._assign(ast.copy_location(ast.Assign([target], value), node), mask)
            case ast.AugAssign():
                return self._augmented(node, mask)
            case ast.Expr(value=value) if is_in_place(value):
                return self._in_place(node, value, mask)
            case ast.Expr(value=ast.Call(func=func)) if mask is None and self._is_seen(func):
                return self._written(ast.Expr(self.expressions.rewrite(node.value)), node)
            case ast.With() if is_without_gradient(node):
                return self.block(node.body, mask)
            case ast.For() if mask is None and not node.orelse:
                return self._loop(node)
            case ast.Assert() if raises_for_sparse(node):
                return []
            case ast.Raise() | ast.Assert() if mask is None:
                return self._raised(node)
            case ast.Continue() | ast.Return() | ast.Break():
                raise Unfit("it leaves a parameter as it is on a condition", node)
        raise Unfit("a statement of its step", node)

    def _is_seen(self, func: ast.expr) -> bool:
        """Whether a call by itself is one of PyTorch, or of a function of the file, which may write into tensors."""
        if isinstance(func, ast.Attribute):
            return isinstance(func.value, ast.Name) and func.value.id == self.torch
        functions = (n for n in self.lines.source.nodes if isinstance(n, ast.FunctionDef))
        return isinstance(func, ast.Name) and any(n.name == func.id for n in functions)

    def _raised(self, node: ast.Raise | ast.Assert) -> list[str]:
        new = copy.deepcopy(node)
        if isinstance(new, ast.Assert):
            new.test = self.expressions.rewrite(new.test)
            need(not self.expressions.is_traced(new.test), "it asserts what the running step computes", node)
        return self._written(new, node)

    def _loop(self, node: ast.For) -> list[str]:
        iterated = self.expressions.rewrite(node.iter)
        need(not self.expressions.is_traced(iterated), "a loop whose length the running step computes", node)
        state = copy.deepcopy(self.initial)
        self.block(node.body, None)  # what the body computes may be traced when it is there again
        self.initial = state
        return [
            f"for {unparsed(node.target)} in {unparsed(iterated)}:",
            *indented(self.block(node.body, None) or ["pass"]),
        ]

    # --- conditions -----------------------------------------------------------------------------------------------

    def _if(self, node: ast.If, mask: ast.expr | None) -> list[str]:
        if (absent := skips(node.test, self.names)) is not None:
            without, having = (node.body, node.orelse) if absent else (node.orelse, node.body)
            need(all(isinstance(s, ast.Continue | ast.Pass) for s in without), "what it does without gradient", node)
            return self.block(having, mask)
        if raises_for_sparse(node) or self._is_counter(node):
            return self._counted(node)
        if (new := asks_for_state(node, self.names)) is not None:
            return self._first(*((node.body, node.orelse) if new else (node.orelse, node.body)), mask)
        if (other := or_new_state(node, self.names)) is not None:
            need(not node.orelse, "what it does where a parameter has a state", node)
            return self._first(node.body, [], mask, other)
        test = self.expressions.rewrite(node.test)
        if isinstance(test, ast.Constant):
            return self.block(node.body if test.value else node.orelse, mask)
        if self.expressions.is_traced(test):
            return self._chosen(node, test, mask)
        before = set(self.defined)
        body = self._branch(node.body, test, mask)
        then, self.defined = self.defined, before
        orelse = self._branch(node.orelse, ast.UnaryOp(ast.Not(), test), mask)
        self.defined = self.defined & then if node.orelse else before & then
        self.defined |= before
        if not body and not orelse:
            return []
        if not body:
            body, orelse, test = orelse, [], ast.UnaryOp(ast.Not(), test)
        out = [f"if {unparsed(ast.fix_missing_locations(test))}:", *indented(body)]
        if orelse and orelse[0].startswith("if ") and len(node.orelse) == 1:
            return [*out, f"el{orelse[0]}", *orelse[1:]]
        return [*out, *(["else:", *indented(orelse)] if orelse else [])]

    def _branch(self, body: Sequence[ast.stmt], test: ast.expr, mask: ast.expr | None) -> list[str]:
        """The lines of a branch, with the entries of the state that there are under its condition only."""
        self.path.append(test)
        try:
            made = self.block(body, mask)
        finally:
            self.path.pop()
        keys = [key for key, path in self.initial.conditions.items() if path and path[-1] == unparsed(test)]
        keys = [key for key in keys if key not in self.beyond]
        used = {n.id for line in body for n in symbols.walk(line) if isinstance(n, ast.Name)}
        text = "\n".join(made)
        keys = [k for k in keys if (name := self.names.entries.get(k)) and (name in text or name in used)]
        if not made or not keys:
            return made
        state, names = "state", self.names.entries
        loads = [f'{names[k]} = {state}["{k}"].clone()' for k in keys]
        return [*loads, *made, *(f'{state}["{k}"] = {names[k]}' for k in keys)]

    def _first(
        self,
        first: Sequence[ast.stmt],
        later: Sequence[ast.stmt],
        mask: ast.expr | None,
        other: ast.expr | None = None,
    ) -> list[str]:
        """What is done of a parameter when it has no state yet (or something ``other`` holds), and when it has one."""
        rest = [s for s in first if other is not None or not self.initial.is_made(s)]
        later = [s for s in later if not self._casts(s)]
        if not rest and not later:
            return []
        need(mask is None, "a state that is made on a condition of the running step", (*rest, *later)[0])
        self._mark_first()
        if other is None:
            return self._both(rest, later, ast.Name(FIRST, ast.Load()), None)
        either = ast.BinOp(ast.Name(FIRST, ast.Load()), ast.BitOr(), self.expressions.rewrite(other))
        return self._chosen(ast.copy_location(ast.If(either, rest, later), rest[0]), either, None)

    def _casts(self, node: ast.stmt) -> bool:
        """``state["exp_avg"] = state["exp_avg"].type_as(p)``: it has that type."""
        match node:
            case ast.Assign(
                targets=[target],
                value=ast.Call(func=ast.Attribute(value=value, attr="type_as" | "to"), args=[_], keywords=[]),
            ):
                return self.reader.key(target) is not None and self.reader.key(target) == self.reader.key(value)
        return False

    def _chosen(self, node: ast.If, test: ast.expr, mask: ast.expr | None) -> list[str]:
        """A condition that the running step computes: both branches are computed, and their values chosen."""
        condition = self.expressions.condition(test)
        out: list[str] = []
        if not isinstance(condition, ast.Name):
            text = unparsed(ast.fix_missing_locations(condition))
            if text not in self.conditions:
                self.conditions[text] = self._fresh("condition")
                out.append(f"{self.conditions[text]} = {text}")
                self.expressions.traced.add(self.conditions[text])
                self.expressions.of_numbers.add(self.conditions[text])
            condition = ast.Name(self.conditions[text], ast.Load())
        return out + self._both(node.body, node.orelse, condition, mask)

    def _both(
        self, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt], condition: ast.Name, mask: ast.expr | None
    ) -> list[str]:
        """Both branches of a condition of the running step."""
        one, other = self._only(body), self._only(orelse)
        if mask is None and one is not None and other is not None and one[0] == other[0]:
            value = self.expressions.chosen(condition, one[1], other[1])
            self.expressions.traced.add(one[0])
            return self._given(ast.Name(one[0], ast.Store()), value, None, body[0])

        def under(one: ast.expr) -> ast.expr:
            return one if mask is None else ast.BinOp(mask, ast.BitAnd(), one)

        out = self.block(body, under(condition))
        return out + self.block(orelse, under(self.expressions.negated(condition)))

    # --- counters -------------------------------------------------------------------------------------------------

    def _is_counter(self, node: ast.If) -> bool:
        return any(node is one.made for one in self.counters.values())

    def _counted(self, node: ast.If) -> list[str]:
        one: StepCounter | None = next((c for c in self.counters.values() if c.made is node), None)
        return [f"{one.name} = {one.name} + 1"] if one is not None and one.counts_where_made else []
