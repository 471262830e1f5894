"""What the variables of a step are given: values, or those that a condition of the running step chooses."""

from __future__ import annotations

import ast
import builtins
import copy
import keyword
from collections.abc import Sequence

from t2j_lsp import symbols

from .constructor import RATE, OptimizerConstructor
from .counters import read_counters
from .expressions import StepExpressions
from .forms import asks_for_state, functional, is_in_place
from .functions import KnownFunctions
from .initial import InitialState
from .lines import Lines, unparsed
from .names import StepNamesReader, is_state, pairs, writes_into
from .unfit import need
from .walks import Walk

FIRST = "is_first"
"""The entry of a state that says whether the parameter had none before the step."""


def _reads(text: str, name: str) -> bool:
    """Whether an expression reads a variable."""
    return any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(ast.parse(text)))


def _is_taken(name: str) -> bool:
    """Whether no variable can have a name, or it is Python's own."""
    return not name.isidentifier() or keyword.iskeyword(name) or hasattr(builtins, name)


class StepValues:
    """Writes statements that give variables values."""

    def __init__(
        self,
        walk: Walk,
        constructor: OptimizerConstructor,
        lines: Lines,
        torch: str,
        taken: set[str],
        functions: KnownFunctions,
    ) -> None:
        self.walk, self.constructor, self.lines, self.torch = walk, constructor, lines, torch
        self.reader = StepNamesReader(walk, constructor.options, lines.source.nodes)
        self.names = self.reader.read()
        self.expressions = StepExpressions(self.names, self.reader, constructor.attributes, torch, functions)
        self.taken = taken | {n.id for s in self.reader.statements for n in symbols.walk(s) if isinstance(n, ast.Name)}
        self.counters = read_counters(self.reader.statements, walk, constructor, self.taken)
        self.expressions.counters = {text: one.name for text, one in self.counters.items()}
        self._rename_options()
        self.initial = InitialState(self.expressions)
        self.expressions.numbers = lambda: self.initial.numbers(self.names)
        self.path: list[ast.expr] = []
        """The conditions that are known when the optimizer is made, around what is written."""
        self.above: list[str] = []
        self.hoisted: set[str] = set()
        self.defined: set[str] = set()
        self.late = False
        self.beyond: set[str] = set()
        """Entries that some options have, which are used outside of the condition under which they are made."""
        self.conditions: dict[str, str] = {}
        """Conditions of the running step that have a name."""

    def _rename_options(self) -> None:
        """Variables that are called as an option, or as what the functions take, get another name."""
        own = {a.arg for a in symbols.named_parameters(ast.Lambda(self.constructor.arguments, ast.Constant(0)))}
        own |= {*self.constructor.options.values(), *self.constructor.attributes.values()}
        entries = set(self.names.entries.values())
        for name in [*self.names.stored]:
            if name in own and name not in self.names.renames and name != self.names.parameter:
                new = self._fresh(f"new_{name}")
                self.names.renames[name] = new
                self.names.stored[new] = self.names.stored[name]
                if name in entries:
                    self.names.entries = {k: new if v == name else v for k, v in self.names.entries.items()}
        self.names.entries = {
            key: self._fresh(f"{key}_of_state") if name in own or _is_taken(name) else name
            for key, name in self.names.entries.items()
        }
        need("state" not in self.names.stored or "state" in self.names.states, "what state is", self.walk.body[0])

    def _fresh(self, name: str) -> str:
        made, count = name, 1
        while made in self.taken:
            count += 1
            made = f"{name}{count}"
        self.taken.add(made)
        return made

    def _written(self, new: ast.stmt, node: ast.stmt) -> list[str]:
        new = ast.fix_missing_locations(ast.copy_location(new, node))
        made = [*self.lines.of(new, node)]
        return [*made[:-1], made[-1] + self.lines.beside(node)]

    def _assign(self, node: ast.Assign, mask: ast.expr | None) -> list[str]:
        if self.initial.is_made(node) or is_state(node.value, self.names.parameter):
            return []
        if self._asks_for_state(node):
            node = ast.copy_location(ast.Assign(node.targets, ast.Name(FIRST, ast.Load())), node)
        given = [pair for pair in pairs(node) if not is_state(pair[1], self.names.parameter)]
        given = [pair for pair in given if self.reader.key(pair[0]) not in self.names.written]
        for target, value in given:
            self._check_parameter(target, value)
        made = [(self._target(t), self.expressions.rewrite(v)) for t, v in given]
        for (old, _), (_, value) in zip(given, made, strict=True):
            self._check_entry(old, value)
        made = [(t, v) for t, v in made if ast.unparse(t) != ast.unparse(v)]
        if len(node.targets) > 1:
            made = [
                pair
                for at, pair in enumerate(made)
                if ast.unparse(pair[0]) not in {ast.unparse(t) for t, _ in made[:at]}
            ]
        if mask is None and self._is_static(made):
            self.hoisted |= {n.id for t, _ in made for n in ast.walk(t) if isinstance(n, ast.Name)}
            self.above += [unparsed(ast.fix_missing_locations(ast.Assign([t], v))) for t, v in made]
            return []
        if mask is None and len(node.targets) == 1 and len(made) == len([*pairs(node)]):
            new = ast.Assign([self._target(node.targets[0])], self.expressions.rewrite(node.value))
            for target, value in made:
                self._define(target, value)
            return self._written(new, node)
        return [line for target, value in made for line in self._given(target, value, mask, node)]

    def _asks_for_state(self, node: ast.Assign) -> bool:
        """Whether it keeps ``len(state) == 0``, which is asked before the state is made. Raises Unfit."""
        if not isinstance(node.value, ast.Compare | ast.UnaryOp):
            return False
        asked = asks_for_state(ast.If(node.value, [], []), self.names)
        if asked is None:
            return False
        makes = [s for s in self.reader.nodes if isinstance(s, ast.If) and asks_for_state(s, self.names)]
        before = all(self.reader.places[node] < self.reader.places[s] for s in makes)
        need(before and asked, "when it asks for a state", node)
        self._mark_first()
        return True

    def _mark_first(self) -> None:
        """Keeps that the state says whether the parameter had none."""
        self.late = True
        self.expressions.traced.add(FIRST)
        self.expressions.of_numbers.add(FIRST)

    def _check_parameter(self, target: ast.expr, value: ast.expr) -> None:
        """Raises Unfit where the variable of the parameter becomes another value, which leaves the parameter alone."""
        name = self.names.renames.get(target.id, target.id) if isinstance(target, ast.Name) else ""
        if name == self.names.parameter and not self.reader.is_parameter(value):
            into = writes_into(value)
            itself = into is not None and self.reader.is_parameter(into)
            need(itself, f"{name} is the parameter and then another value", target)

    def _check_entry(self, target: ast.expr, value: ast.expr) -> None:
        """Raises Unfit where an entry of the state becomes the parameter itself, or another entry, which change."""
        key = self.reader.key(target)
        if key is not None and isinstance(value, ast.Name) and value.id != self.names.entries.get(key):
            tensors = set(self.names.entries.values()) - self.initial.numbers(self.names)
            shared = value.id in tensors | {self.names.parameter}
            need(not shared, f"its state {key!r} shares the memory of {value.id}", target)

    def _target(self, node: ast.expr) -> ast.expr:
        return self.expressions.rewrite(node)

    def _is_static(self, made: list[tuple[ast.expr, ast.expr]]) -> bool:
        """Whether values are those of options alone, so that they are computed when the optimizer is made."""
        if self.path or not made:
            return False
        for target, value in made:
            stored = {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}
            read = {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}
            steps = (self.names.stored.keys() | self.expressions.traced | {self.names.parameter}) - self.hoisted
            once = all(self.names.stored[n] == 1 for n in stored)
            if not once or not read.isdisjoint(steps) or not isinstance(target, ast.Name | ast.Tuple):
                return False
            if isinstance(value, ast.List | ast.Dict | ast.Set | ast.Call):
                return False
        return True

    def _given(self, target: ast.expr, value: ast.expr, mask: ast.expr | None, node: ast.stmt) -> list[str]:
        """A variable that is given a value, under a condition of the running step if there is one."""
        if mask is not None:
            need(isinstance(target, ast.Name), "what it computes on a condition of the running step", node)
            assert isinstance(target, ast.Name)
            if target.id in self.defined:
                value = self.expressions.chosen(mask, value, ast.Name(target.id, ast.Load()))
            self._follow(target.id, value)
        self._define(target, value)
        return [unparsed(ast.fix_missing_locations(ast.Assign([target], value)))]

    def _define(self, target: ast.expr, value: ast.expr) -> None:
        for inner in ast.walk(target):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                self.defined.add(inner.id)
                self.conditions = {t: n for t, n in self.conditions.items() if not _reads(t, inner.id)}
                if self.expressions.is_traced(value):
                    self._follow(inner.id, value)
                else:
                    self.initial.known[inner.id] = value

    def _follow(self, name: str, value: ast.expr) -> None:
        """Keeps that a variable has a value that only the running step knows, and whether that is a number."""
        seen = self.expressions
        of_tensors = seen.traced - seen.of_numbers - {RATE} - self.initial.numbers(self.names)
        number = not any(isinstance(n, ast.Name) and n.id in of_tensors for n in ast.walk(value))
        if number and name not in seen.traced:
            seen.of_numbers.add(name)
        elif not number:
            seen.of_numbers.discard(name)
        seen.traced.add(name)

    def _augmented(self, node: ast.AugAssign, mask: ast.expr | None) -> list[str]:
        target = self.expressions.rewrite(node.target)
        value = self.expressions.rewrite(node.value)
        number = isinstance(target, ast.Name) and target.id in self.initial.numbers(self.names)
        if mask is None and not number:
            self._define(target, value)
            return self._written(ast.AugAssign(target, node.op, value), node)  # type: ignore[arg-type]
        read = copy.deepcopy(target)
        for inner in ast.walk(read):
            if isinstance(inner, ast.Name | ast.Attribute | ast.Subscript):
                inner.ctx = ast.Load()
        return self._given(target, ast.BinOp(read, node.op, value), mask, node)

    def _in_place(self, node: ast.Expr, value: ast.Call, mask: ast.expr | None) -> list[str]:
        new = self.expressions.rewrite(value)
        target = writes_into(new)
        if isinstance(target, ast.Name):
            self.conditions = {t: n for t, n in self.conditions.items() if not _reads(t, target.id)}
        need(isinstance(target, ast.Name | ast.Subscript), "what it writes into", node)
        if isinstance(target, ast.Name):
            need(target.id in self.defined, f"it writes into {target.id}", node)
        match new:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="copy_"), args=[ast.Name(id=other)]):
                if name == other:
                    return []
                return self._given(ast.Name(name, ast.Store()), ast.Name(other, ast.Load()), mask, node)
        if mask is None:
            return self._written(ast.Expr(new), node)
        need(isinstance(target, ast.Name), "what it writes into on a condition of the running step", node)
        assert isinstance(target, ast.Name)
        return self._given(ast.Name(target.id, ast.Store()), functional(new, self.torch), mask, node)

    def _only(self, body: Sequence[ast.stmt]) -> tuple[str, ast.expr] | None:
        """The only variable that a branch gives a value, and the value; None for other branches."""
        body = [s for s in body if not self._says_nothing(s)]
        match body:
            case [ast.Assign() as node]:
                given = {(ast.unparse(self._target(t)), ast.unparse(v)) for t, v in pairs(node)}
                target, value = next(pairs(node))
                new = self._target(target)
                return (
                    (new.id, self.expressions.rewrite(value)) if len(given) == 1 and isinstance(new, ast.Name) else None
                )
            case [ast.Expr(value=value)] if is_in_place(value):
                changed = self.expressions.rewrite(value)
                into = writes_into(changed)
                return (into.id, functional(changed, self.torch)) if isinstance(into, ast.Name) else None
        return None

    def _says_nothing(self, node: ast.stmt) -> bool:
        """Whether a statement only gives a variable its own value."""
        if not isinstance(node, ast.Assign):
            return isinstance(node, ast.Pass)
        if is_state(node.value, self.names.parameter):
            return True
        return all(ast.unparse(self._target(t)) == ast.unparse(self.expressions.rewrite(v)) for t, v in pairs(node))
