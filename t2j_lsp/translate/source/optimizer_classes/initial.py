"""The state that a parameter has before the first step: what a step makes where it finds none."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from t2j_lsp import symbols
from t2j_lsp.translate.rule.library import Trait, names_with

from .expressions import StepExpressions
from .forms import asks_for_state
from .lines import indented, unparsed
from .names import StepNames, pairs

_LIKE = names_with(Trait.LIKE)


class InitialState:
    """The entries of a parameter's state, what they begin with, and under which conditions there are any."""

    def __init__(self, expressions: StepExpressions) -> None:
        self.expressions = expressions
        self.kinds: dict[str, str] = {}
        """Of each entry, what it is: a number, a tensor, or a tensor that the first step makes."""
        self.values: dict[str, str] = {}
        self.conditions: dict[str, tuple[str, ...]] = {}
        """Conditions that are known when the optimizer is made, under which there is an entry."""
        self.known: dict[str, ast.expr] = {}
        """Variables of a step that have values known before it."""
        self.made: set[ast.stmt] = set()
        self.names: StepNames | None = None

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
        self.kinds[key], self.values[key] = "number", f"{self.expressions.torch}.tensor({unparsed(value)})"
        self.conditions[key] = ()

    def late(self, key: str, value: str) -> None:
        """An entry whose first value is said."""
        self.kinds[key], self.values[key], self.conditions[key] = "tensor", value, ()

    def find(
        self, body: Sequence[ast.stmt], names: StepNames, path: tuple[ast.expr, ...] = (), new: bool = False
    ) -> None:
        """The entries that some statements make; ``new``: where there is no state yet."""
        self.names = names
        for node in body:
            match node:
                case ast.If():
                    asked = asks_for_state(node.test, names)
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
                case ast.Assign() if new:
                    self._entries(node, path)
                case ast.With():
                    self.find(node.body, names, path, new)

    def _is_plain(self, test: ast.expr) -> bool:
        """Whether a condition asks for nothing that the step computes."""
        assert self.names is not None
        read = {n.id for n in symbols.walk(test) if isinstance(n, ast.Name)}
        return not any(isinstance(n, ast.Attribute) and n.attr == "grad" for n in symbols.walk(test)) and (
            self.names.states.isdisjoint(read)
        )

    def _entries(self, node: ast.Assign, path: tuple[ast.expr, ...]) -> None:
        assert self.names is not None
        keyed = [(self.expressions.reader.key(t), v) for t, v in pairs(node)]
        keys = [(key, value) for key, value in keyed if key is not None]
        for key, value in keys:
            if key in self.kinds:
                continue
            self.conditions[key] = tuple(unparsed(ast.fix_missing_locations(test)) for test in path)
            match value:
                case ast.Constant(value=bool() | None):
                    return
                case ast.Constant(value=int() | float()):
                    self.kinds[key] = "number"
                    self.values[key] = f"{self.expressions.torch}.tensor({unparsed(value)})"
                case _:
                    first = self._first_value(value)
                    self.kinds[key] = "late" if first is None else "tensor"
                    self.values[key] = first or f"{self.expressions.torch}.zeros_like({self.names.parameter})"
        if keys and all(
            key is not None or self._is_alias(t) for (key, _), (t, _) in zip(keyed, pairs(node), strict=True)
        ):
            if all(self.kinds.get(key) in ("number", "tensor") for key, _ in keys):
                self.made.add(node)

    def _is_alias(self, target: ast.expr) -> bool:
        assert self.names is not None
        name = self.names.renames.get(target.id, target.id) if isinstance(target, ast.Name) else ""
        return name in self.names.entries.values()

    def _first_value(self, node: ast.expr) -> str | None:
        """What an entry begins with, said of the parameter; None where it comes of the first gradient."""
        assert self.names is not None
        made = self.expressions.rewrite(node)
        for inner in ast.walk(made):
            match inner:
                case ast.Call(func=ast.Attribute(attr=name), args=[ast.Name() as like, *_]) if name in _LIKE:
                    like.id = self.names.parameter if like.id == self.names.gradient else like.id
        read = {n.id for n in ast.walk(made) if isinstance(n, ast.Name)}
        others = read & (self.names.stored.keys() | {self.names.gradient, *self.names.entries.values()})
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
