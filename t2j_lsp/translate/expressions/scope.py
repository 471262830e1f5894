"""Where the pass over the statements stands: in which class and functions, and at which statement."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from t2j_lsp.translate.rule.definitions import ClassInfo, FunctionInfo


@dataclass
class CurrentStatement:
    """The statement that is being rewritten: what its expressions put in front of it."""

    node: ast.stmt
    before: list[str] = field(default_factory=list)
    """Lines to put in front (hoisted arguments), without indentation."""
    hoistable: bool = True
    """Whether an expression here is evaluated exactly once, right after what is put in front."""


@dataclass
class Scope:
    """What stands around the code that is being rewritten. The pass over statements sets it."""

    class_info: ClassInfo | None = None
    functions: list[FunctionInfo] = field(default_factory=list)
    """The functions around the current statement, innermost last."""
    statement: CurrentStatement | None = None
    renamed: dict[ast.expr, str] = field(default_factory=dict)
    """What values are called inside the train step that is being written: ``self.model`` is ``model``."""
    stopped: dict[ast.expr, str] = field(default_factory=dict)
    """Values that carry no gradient on, written in ``jax.lax.stop_gradient``, and what is written behind each."""
    annotation: bool = False
    """Whether the expression at hand stands in an annotation."""

    @property
    def function(self) -> FunctionInfo | None:
        return self.functions[-1] if self.functions else None
