"""Constructors that classes of the file have from a library's class of which a copy is written: a distribution's.

The copy takes what the constructor's rule says, which is less than PyTorch's takes, or under other names:
``validate_args`` of ``Normal`` goes, and so does ``device_ids`` of ``DistributedDataParallel``.
"""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.translate.rule.definitions import ClassInfo
from t2j_lsp.translate.rule.pieces import ATOM, Piece, bracket
from t2j_lsp.translate.rule.record import copied_class

from .context import Context
from .handlers import ExpressionRenderer
from .rule_application import RuleApplication


class CopiedConstructors:
    """Calls of such constructors: of the class, and of ``super().__init__``."""

    def __init__(self, ctx: Context, renderer: ExpressionRenderer, rules: RuleApplication) -> None:
        self.ctx = ctx
        self.renderer = renderer
        self.rules = rules

    def made(self, node: ast.Call, info: ClassInfo) -> Piece | None:
        """``Mine(loc, scale, validate_args=False)`` of a class without a constructor of its own."""
        if info.method("__init__") is not None:
            return None
        return self._called(node, info, bracket(self.renderer.render(node.func), ATOM))

    def of_base(self, node: ast.Call, func: ast.Attribute) -> Piece | None:
        """``super().__init__(loc, scale, validate_args=validate_args)``."""
        info = self.ctx.scope.class_info if func.attr == "__init__" and symbols.is_super(func.value) else None
        if info is None or any("__init__" in one.methods for one in info.ancestry()[1:]):
            return None
        return self._called(node, info, f"{self.ctx.source.segment(func.value)}.__init__")

    def _called(self, node: ast.Call, info: ClassInfo, head: str) -> Piece | None:
        rule = copied_class(info.torch_bases)
        if rule is None or (made := self.rules.apply(rule, node, None)) is None:
            return None
        return Piece(f"{head}({made.text.partition('(')[2]}", ATOM)
