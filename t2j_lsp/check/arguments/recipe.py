"""Statements that make a file's own optimizer: cut from both files, run by both workers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from t2j_lsp.check.crossing import Message


@dataclass(frozen=True)
class Recipe(Message):
    """Statements of one file that make an optimizer from a module.

    ``names`` are those of the module (``model``), the optimizer, and where there are any the schedule and the loss;
    ``lines`` where these three are made. ``given`` are expressions for the parameters of the function around them.
    ``code`` are the expressions that they need of the file's top level.
    """

    path: str
    names: dict[str, str]
    lines: dict[str, int]
    statements: tuple[tuple[str, int], ...]
    given: dict[str, str]
    code: tuple[str, ...] = ()
    calls: dict[str, str] = field(default_factory=dict)
    """What is called to make each: ``torch.optim.SGD``."""
    choices: dict[str, tuple[tuple[str, int], ...]] = field(default_factory=dict)
    """Where one of several is made, what is called for each, and the line."""
    ignored: int | None = None
    """The class that the loss ignores, where the program says which."""
    trained: str = ""
    """In JAX the expression of what ``nnx.Optimizer`` is given: the module, or parts of it."""
    before: tuple[tuple[str, int], ...] = ()
    """Statements of whoever calls the function around them, which read the command line that it is given."""

    def placed(self, kind: str, line: int) -> Recipe:
        """The recipe with another line for where one of the three is made, if there is only one place."""
        choices = self.choices.get(kind, ())
        if len(choices) > 1:
            return self
        moved = {kind: tuple((called, line) for called, _ in choices)} if choices else {}
        return replace(self, lines={**self.lines, kind: line}, choices={**self.choices, **moved})

    def chosen(self, kind: str, called: str) -> int:
        """Which of several is the one that a run made, by what was called."""
        return next((i for i, (name, _) in enumerate(self.choices.get(kind, ())) if name == called), 0)

    def at(self, kind: str, number: int) -> Recipe:
        """The recipe with the line of the choice that a run made."""
        choices = self.choices.get(kind, ())
        if number >= len(choices):
            return self
        name, line = choices[number]
        return replace(self, lines={**self.lines, kind: line}, calls={**self.calls, kind: name})

    def without(self, kind: str) -> Recipe:
        """The recipe without one of the things that it makes."""

        def left(entries: dict[str, Any]) -> dict[str, Any]:
            return {k: v for k, v in entries.items() if k != kind}

        return replace(self, names=left(self.names), lines=left(self.lines), calls=left(self.calls))
