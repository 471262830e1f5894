"""``context = no_grad if frozen else nullcontext``: a context that a condition chooses, and its blocks.

Or what such a one makes, ``no_grad() if frozen else nullcontext()``, which blocks are under as it is.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.rule.facts import Qual
from t2j_lsp.translate.rule.library import Trait, names_with

from .no_gradient import NO_GRAD, NoGradient

_HARMLESS = names_with(Trait.FORWARD)
_CONDITIONS = (
    ast.Name, ast.Attribute, ast.Constant, ast.BoolOp, ast.UnaryOp, ast.Compare, ast.boolop, ast.unaryop, ast.cmpop,
    ast.expr_context,
)  # fmt: skip


@dataclass(frozen=True)
class ChosenContext:
    """What a block is under: gradients stop where ``test`` is true, or, ``otherwise``, where it is not."""

    test: ast.expr
    otherwise: bool
    names: tuple[str, ...]
    """What leaves the block and carries a gradient."""


class ContextChoices:
    """Takes such contexts out of a function, where each block under one has a sure form."""

    def __init__(self, context: Context, no_gradient: NoGradient) -> None:
        self.ctx = context
        self.no_gradient = no_gradient
        self.chosen: dict[ast.stmt, ChosenContext] = {}
        """The blocks under them."""

    def assigned(self, node: ast.Assign) -> bool:
        """The assignment goes; what leaves the blocks has its gradient stopped under the same condition."""
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.IfExp(test=test, body=body, orelse=orelse)):
                made = [isinstance(branch, ast.Call) for branch in (body, orelse)]
                kinds = [self._stops(branch) for branch in (body, orelse)]
            case _:
                return False
        if None in kinds or all(kinds) or len(set(made)) > 1:
            return False
        blocks = self._blocks(node, name, all(made))
        if blocks is None or any(kinds) and not self._is_same_in(test, node):
            return False
        choices: dict[ast.stmt, ChosenContext] = {}
        for block in blocks:
            names = self.no_gradient.leaving(block) if any(kinds) else []
            if names is None:
                return False
            choices[block] = ChosenContext(test, not kinds[0], tuple(names))
        self.chosen |= choices
        self.ctx.edits.delete(node)
        self.ctx.report.count_converted()
        return True

    def _stops(self, node: ast.expr) -> bool | None:
        """Whether a context stops gradients; None for any that is not about them."""
        fact = self.ctx.fact(node)
        if isinstance(node, ast.Call) and not node.args and not node.keywords:
            fact = self.ctx.fact(node.func)
        if not isinstance(fact, Qual) or fact.name not in NO_GRAD | _HARMLESS:
            return None
        return fact.name in NO_GRAD

    def _blocks(self, node: ast.Assign, name: str, made: bool) -> list[ast.With] | None:
        """The blocks under what is assigned here; None where it is assigned elsewhere or used in any other way."""
        function, parents = self.ctx.scope.function, self.ctx.source.parents
        if function is None or name in symbols.parameter_names(function.node):
            return None
        around = parents.get(node)
        blocks: list[ast.With] = []
        for use in symbols.walk(function.node):
            if not isinstance(use, ast.Name) or use.id != name or use is node.targets[0]:
                continue
            call = use if made else parents.get(use)
            item = parents.get(call) if call is not None else None
            block = parents.get(item) if item is not None else None
            match call, item, block:
                case (
                    ast.Call(args=[], keywords=[]) | ast.Name(),
                    ast.withitem(optional_vars=None),
                    ast.With(items=[_]) as block,
                ) if block.lineno > node.lineno and block.body[0].lineno > block.lineno:
                    if around is None or around not in [*ancestors(block, parents)]:
                        return None
                    blocks.append(block)
                case _:
                    return None
        return blocks

    def _is_same_in(self, test: ast.expr, node: ast.Assign) -> bool:
        """Whether a condition, asked once more anywhere below a statement, is what it is there."""
        function = self.ctx.scope.function
        if function is None or not all(isinstance(part, _CONDITIONS) for part in symbols.walk(test)):
            return False
        names = {ast.unparse(part) for part in symbols.walk(test) if isinstance(part, ast.Name | ast.Attribute)}
        stored = (n for n in symbols.walk(function.node) if isinstance(n, ast.Name | ast.Attribute))
        below = (n for n in stored if isinstance(n.ctx, ast.Store) and n.lineno > node.lineno)
        return not any(ast.unparse(n) in names for n in below)

    def lines(self, choice: ChosenContext, condition: str, stop: str) -> list[str]:
        """What stands behind a block."""
        if not choice.names:
            return []
        names = ", ".join(choice.names)
        value = f"({names})" if len(choice.names) > 1 else names
        return [f"if {condition}:", f"    {names} = {stop}({value})"]
