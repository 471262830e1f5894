"""The state that a parameter has before the first step: what a step makes where it finds none."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from t2j_lsp import symbols
from t2j_lsp.translate.rule.library import Trait, names_with

from .expressions import StepExpressions
from .forms import asks_for_state, or_new_state
from .lines import indented, unparsed
from .names import StepNames, is_gradient, is_state, pairs, same
from .unfit import need

_LIKE = names_with(Trait.LIKE)
_REDUCE = names_with(Trait.OF_ALL_ELEMENTS)
_OF_ALL = ("device", "dtype")
"""What all tensors of a parameter's state have in common with it."""


class InitialState:
    """The entries of a parameter's state, what they begin with, and under which conditions there are any."""

    def __init__(self, expressions: StepExpressions) -> None:
        self.expressions = expressions
        self._names = expressions.names
        self.kinds: dict[str, str] = {}
        """Of each entry, what it is: a number, a tensor, or a tensor that the first step makes."""
        self.values: dict[str, str] = {}
        self.conditions: dict[str, tuple[str, ...]] = {}
        """Conditions that are known when the optimizer is made, under which there is an entry."""
        self.known: dict[str, ast.expr] = {}
        """Variables of a step that have values known before it."""
        self.made: set[ast.stmt] = set()

    @property
    def conditional(self) -> set[str]:
        return {key for key, path in self.conditions.items() if path}

    def numbers(self, names: StepNames) -> set[str]:
        """The variables that hold numbers of the state."""
        return {names.entries.get(key, key) for key, kind in self.kinds.items() if kind == "number"}

    def is_made(self, node: ast.stmt) -> bool:
        """Whether a statement only makes what a state begins with."""
        return node in self.made

    def number(self, key: str, value: ast.expr) -> None:
        """An entry that is a number."""
        made = unparsed(value)
        is_tensor = isinstance(value, ast.Call)
        self.kinds[key] = "number"
        self.values[key] = made if is_tensor else f"{self.expressions.torch}.tensor({made})"
        self.conditions[key] = ()

    def late(self, key: str, value: str) -> None:
        """An entry whose first value is said."""
        self.kinds[key], self.values[key], self.conditions[key] = "tensor", value, ()

    def find(
        self, body: Sequence[ast.stmt], names: StepNames, path: tuple[ast.expr, ...] = (), new: bool = False
    ) -> None:
        """The entries that some statements make; ``new``: where there is no state yet."""
        for node in body:
            match node:
                case ast.If():
                    asked = True if or_new_state(node, names) is not None else asks_for_state(node, names)
                    if asked is not None:
                        self.find(node.body, names, path, asked or new)
                        self.find(node.orelse, names, path, (not asked) or new)
                        if all(self.is_made(s) for s in (*node.body, *node.orelse)):
                            self.made.add(node)
                        continue
                    inside = (*path, self.expressions.rewrite(node.test)) if self._is_plain(node.test) else path
                    other = (*path, ast.UnaryOp(ast.Not(), inside[-1])) if inside != path else path
                    self.find(node.body, names, inside, new)
                    self.find(node.orelse, names, other, new)
                    if new and all(self.is_made(s) for s in (*node.body, *node.orelse)):
                        self.made.add(node)
                case ast.Assign() if new and is_state(node.value, names.parameter):
                    self.made.add(node)
                case ast.Assign() if new:
                    self._entries(node, path)
                case ast.With():
                    self.find(node.body, names, path, new)

    def _is_plain(self, test: ast.expr) -> bool:
        """Whether a condition asks for nothing that the step computes."""
        read = {n.id for n in symbols.walk(test) if isinstance(n, ast.Name)}
        return not any(isinstance(n, ast.Attribute) and n.attr == "grad" for n in symbols.walk(test)) and (
            self._names.states.isdisjoint(read)
        )

    def _entries(self, node: ast.Assign, path: tuple[ast.expr, ...]) -> None:
        """What an assignment puts into a state that is new."""
        names = self._names
        keyed = [(self.expressions.reader.key(t), t, v) for t, v in pairs(node)]
        for key, _, value in keyed:
            if key is not None and key in self.kinds:
                again = self.kinds[key] == "number" or self._first_value(value) == self.values[key]
                need(again, f"its state {key!r} is made in two ways", value)
                need(self.conditions[key] == self._of_options(path, value), f"when its state {key!r} is made", value)
            elif key is not None and key not in names.written:
                self._entry(key, value, path)
        kinds = [self.kinds.get(key, "tensor") for key, _, _ in keyed if key is not None]
        others = [t for key, t, _ in keyed if key is None and not self._is_alias(t)]
        if kinds and not others and "late" not in kinds:
            self.made.add(node)

    def _entry(self, key: str, value: ast.expr, path: tuple[ast.expr, ...]) -> None:
        """What an entry begins with. Raises Unfit where that is the parameter itself, which later steps change."""
        names, reader = self._names, self.expressions.reader
        shared = is_gradient(value, names.parameter) or isinstance(same(value), ast.Name)
        if shared:
            made = self.expressions.rewrite(same(value))
            shared = isinstance(made, ast.Name) and made.id in (names.parameter, names.gradient)
            writes = isinstance(made, ast.Name) and made.id == names.gradient and not reader.writes(key)
            need(not shared or writes, f"its state {key!r} shares the memory of what it is made of", value)
        self.conditions[key] = self._of_options(path, value)
        torch = self.expressions.torch
        containers = ast.List | ast.Dict | ast.Set | ast.Tuple | ast.ListComp | ast.DictComp
        unknown = isinstance(value, ast.Constant) and type(value.value) not in (int, float)
        need(not unknown and not isinstance(value, containers), f"its state {key!r} is no number or tensor", value)
        if self._is_number(value):
            rewritten = unparsed(self.expressions.rewrite(value))
            self.kinds[key], self.values[key] = "number", f"{torch}.tensor({rewritten})"
            return
        first = self._first_value(value)
        self.kinds[key] = "late" if first is None else "tensor"
        self.values[key] = first or f"{torch}.zeros_like({names.parameter})"

    def _of_options(self, path: tuple[ast.expr, ...], place: ast.expr) -> tuple[str, ...]:
        """The conditions under which all parameters have an entry; what asks for one by one is left out. Raises Unfit.

        Where some parameters need an entry all of them have one.
        """
        names = self._names
        out: list[str] = []
        for test in path:
            read = {n.id for n in ast.walk(test) if isinstance(n, ast.Name)}
            if read.isdisjoint({names.parameter, names.gradient}):
                local = sorted((read & names.stored.keys()) - self._options())
                need(not local, f"its state is made by the value of {', '.join(local)}", place)
                out.append(unparsed(ast.fix_missing_locations(test)))
        return tuple(out)

    def _options(self) -> set[str]:
        """The variables that have options."""
        return {*self.expressions.attributes.values(), *self.expressions.reader.options.values()}

    def _is_number(self, value: ast.expr) -> bool:
        """Whether a value is computed of options alone."""
        options = self._options()
        plain = ast.BinOp | ast.UnaryOp | ast.Constant | ast.Name | ast.operator | ast.unaryop | ast.expr_context
        made = self.expressions.rewrite(value)
        names = {n.id for n in ast.walk(made) if isinstance(n, ast.Name)}
        return all(isinstance(n, plain) for n in ast.walk(made)) and names <= options | self.known.keys()

    def _is_alias(self, target: ast.expr) -> bool:
        name = self._names.renames.get(target.id, target.id) if isinstance(target, ast.Name) else ""
        return name in self._names.entries.values()

    def _first_value(self, node: ast.expr) -> str | None:
        """What an entry begins with, said of the parameter; None where it comes of the first gradient."""
        made = self.expressions.rewrite(node)
        for inner in ast.walk(made):
            match inner:
                case ast.Call(func=ast.Attribute(attr=name), args=[ast.Name() as like, *_]) if name in _LIKE:
                    like.id = self._names.parameter if like.id == self._names.gradient else like.id
                case ast.Attribute(value=ast.Name() as owner, attr=name) if name in _OF_ALL:
                    owner.id = self._names.parameter if owner.id in self.expressions.traced else owner.id
        read = {n.id for n in ast.walk(made) if isinstance(n, ast.Name)}
        others = read & (self._names.stored.keys() | {self._names.gradient, *self._names.entries.values()})
        reduced = any(isinstance(n, ast.Attribute) and n.attr in _REDUCE for n in ast.walk(made))
        need(not others or not reduced, "the first gradient says what shape its state has", node)
        return None if others else unparsed(made)

    def lines(self, state: str) -> list[str]:
        """The body of the function that makes a state."""
        plain = [key for key in self.kinds if not self.conditions[key]]
        made = ", ".join(f'"{key}": {self.values[key]}' for key in plain)
        if len(plain) == len(self.kinds):
            return [f"return {{{made}}}"]
        out = [f"{state} = {{{made}}}"]
        for key in self.kinds:
            if self.conditions[key]:
                depth = len(self.conditions[key])
                out += [line for at, test in enumerate(self.conditions[key]) for line in indented([f"if {test}:"], at)]
                out += indented([f'{state}["{key}"] = {self.values[key]}'], depth)
        return [*out, f"return {state}"]
