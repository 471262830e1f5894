"""What a train step is passed, and what calls pass to functions that used to read it from outside."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["module", "optimizer", "function", "array", "limit", "static"]
"""``limit`` is what gradients are clipped to: the loss doesn't take it."""


@dataclass
class Input:
    """One parameter of a train step."""

    name: str
    """What it is called inside the step."""
    text: str
    """The expression that is passed."""
    kind: Kind
    places: list[ast.expr] = field(default_factory=list)
    """Where the moved code reads it."""
    given: str = ""
    """What is passed, converted, where that is more than a variable."""
    positions: bool = False
    """Whether it is a mask, of which the positions are passed that it selects."""
    texts: bool = False
    """Whether it is a list of texts, for which the step is compiled, and which is passed as a tuple."""

    mixed: bool = False
    """Whether it is a dict with texts beside its arrays, which alone are passed."""

    def argument(self) -> str:
        """What the step is called with."""
        given = self.given or self.text
        if self.mixed:
            return f'{{k: v for k, v in {given}.items() if hasattr(v, "shape")}}'
        return f"tuple({given})" if self.texts else given


@dataclass
class PassedOn:
    """What a call passes to a function of the file that used to read it from outside."""

    inputs: Sequence[Input]
    """The function's parameters for it."""
    texts: dict[str, str]
    """What is passed, as it is named at the call, by what the function called it."""
    front: int
    """How many of them stand in front of the call's own arguments; the others stand behind."""
    names: dict[str, str] = field(default_factory=dict)
    """What that is called where the call ends up: ``self.model`` is ``model`` in a train step."""
    moved: bool = False
    """Whether the call ends up where there is no ``self``."""

    def given(self) -> list[str]:
        """The arguments besides the call's own."""
        texts = [self.texts[one.text] for one in self.inputs]
        return [self.names.get(text, text) for text in texts]


def name_passed(parts: Sequence[ast.AST], passed: Mapping[ast.Call, PassedOn], inputs: Sequence[Input]) -> None:
    """Have the calls in some code pass on what the code is passed itself."""
    names = {one.text: one.name for one in inputs}
    for part in parts if passed else ():
        for node in ast.walk(part):
            if isinstance(node, ast.Call) and node in passed:
                passed[node].names, passed[node].moved = names, True
