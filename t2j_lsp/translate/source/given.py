"""What is known of a text that t2j wrote itself, on the way to a target, before its facts are inferred."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from t2j_lsp import symbols
from t2j_lsp.symbols import FunctionNode
from t2j_lsp.translate.rule.facts import Fact


@dataclass(frozen=True)
class Given:
    """Facts that the text it was written from had, and names of helpers that it calls."""

    expressions: Mapping[tuple[str, str], Fact] = field(default_factory=dict)
    """Of items, calls and attributes, by the function around them and their code as ``ast`` writes it."""
    parameters: Mapping[tuple[str, str], Fact] = field(default_factory=dict)
    """Of parameters, by their function."""
    helpers: frozenset[str] = frozenset()
    """Helpers, and modules such as ``jax``, that the text names."""
    renames: Mapping[str, str] = field(default_factory=dict)
    """Names of helpers that the file has taken, and what they are called instead."""
    original: str = ""
    """The text that it was written from."""
    kept: frozenset[int] = frozenset()
    """Lines on which statements of the module level begin that are left as they are."""

    def of_expression(self, function: str, node: ast.expr) -> Fact | None:
        """The fact of an item, a call or an attribute in a function."""
        if not isinstance(node, ast.Call | ast.Subscript | ast.Attribute):
            return None
        return self.expressions.get((function, ast.unparse(node)))

    def of_arguments(self, tree: ast.Module) -> dict[ast.AST, Fact]:
        """The facts of the parameters that a tree's functions have."""
        facts: dict[ast.AST, Fact] = {}
        for node in tree.body:
            if isinstance(node, FunctionNode):
                for argument in symbols.named_parameters(node):
                    fact = self.parameters.get((node.name, argument.arg))
                    if fact is not None:
                        facts[argument] = fact
        return facts


NOTHING_GIVEN = Given()
