"""Writes by masks: ``x[mask] = v`` is a choice between two arrays, which runs under jit; ``x.at[mask]`` does not."""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Report
from t2j_lsp.translate.expressions.handlers import ExpressionRenderer
from t2j_lsp.translate.expressions.subscripts import PICKED_BY_MASK, Subscripts
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.item_stores import is_mask, may_be_mask
from t2j_lsp.translate.rule.facts import Qual, Scalar, Tensor
from t2j_lsp.translate.rule.pieces import ARGUMENT, ATOM, UNARY, bracket


class Masks:
    """What writes by masks become."""

    def __init__(
        self, inference: Inference, report: Report, renderer: ExpressionRenderer, subscripts: Subscripts
    ) -> None:
        self.inference = inference
        self.report = report
        self.renderer = renderer
        self.subscripts = subscripts

    def written(
        self, node: ast.stmt, target: ast.Subscript, value: ast.expr, index: str, holder: str, sign: str
    ) -> str | None:
        """What a write by a mask gives, or by what is named as masks are and may as well be places; None for others."""
        if is_mask(target.slice, self.inference.facts):
            masked = self._chosen(target, value, index, holder, sign)
            if masked is None:
                self.report.note(node, "Tensor.__setitem__", "value-needed", PICKED_BY_MASK)
            return masked
        if isinstance(target.slice, ast.Tuple):
            return self._among_axes(node, target.slice.elts, target, value, holder, sign)
        picks = self.subscripts.may_pick(target.slice)
        if sign or not (picks or may_be_mask(target.slice, self.inference.facts)) or not self._is_number(value):
            if picks:
                self.report.note(node, "Tensor.__setitem__", "value-needed", PICKED_BY_MASK)
            return None
        return f"{self.renderer.need('set_at')}({holder}, {index}, {bracket(self.renderer.argument(value), ARGUMENT)})"

    def _among_axes(
        self, node: ast.stmt, parts: list[ast.expr], target: ast.Subscript, value: ast.expr, holder: str, sign: str
    ) -> str | None:
        """``x[..., mask] = 0`` and ``x[:, mask] = 0`` as a choice; None where it stays, and is told of."""
        places = [i for i, part in enumerate(parts) if self.subscripts.is_mask(part)]
        if not places:
            if any(map(self.subscripts.may_pick, parts)):
                self.report.note(node, "Tensor.__setitem__", "value-needed", PICKED_BY_MASK)
            return None
        before, after = parts[: places[0]], parts[places[0] + 1 :]
        number = self._is_number(value)
        whole = value if number else _masked(value, target.slice)
        if whole is None or not all(map(_is_all, before + after)) or sum(map(_is_rest, parts)) > 1:
            if any(self.subscripts.may_pick(parts[i]) for i in places):
                self.report.note(node, "Tensor.__setitem__", "value-needed", PICKED_BY_MASK)
            return None
        mask, piece = self.renderer.render(parts[places[0]]), self.renderer.argument(whole)
        text = f"{holder} {sign} {bracket(piece, UNARY)}" if sign else bracket(piece, ARGUMENT)
        if not any(map(_is_rest, before)):
            index = f"[{', '.join('None' for _ in before)}]" if before else ""
            mask_text = f"{bracket(mask, ATOM)}{index}" if index else bracket(mask, ARGUMENT)
            return f"{self.renderer.need('set_where')}({holder}, {mask_text}, {text})"
        jnp = self.renderer.need("jnp")
        mask_text = f"{bracket(mask, ATOM)}[{', '.join(['...', *('None' for _ in after)])}]" if after else mask.text
        if not sign and not self._has_dtype_of(target.value, whole):
            text = f"{jnp}.asarray({text}, {holder}.dtype)"
        elif sign:
            text = f"({text}).astype({holder}.dtype)"
        return f"{jnp}.where({mask_text}, {text}, {holder})"

    def _has_dtype_of(self, owner: ast.expr, value: ast.expr) -> bool:
        """Whether a plain number takes the dtype of what it is chosen against."""
        held, number = self.inference.fact(owner), self.inference.fact(value)
        return isinstance(held, Tensor) and held.dtype == "float" and isinstance(number, Scalar)

    def _chosen(self, target: ast.Subscript, value: ast.expr, mask: str, holder: str, sign: str) -> str | None:
        """``x[mask] = 1`` and ``x[mask] = y[mask]`` as a choice; None where the value isn't such."""
        number = self._is_number(value)
        whole = value if number else _masked(value, target.slice)
        if whole is None:
            return None
        piece = self.renderer.argument(whole)
        text = f"{holder} {sign} {bracket(piece, UNARY)}" if sign else bracket(piece, ARGUMENT)
        if number and self._is_whole(target, value):
            return f"{self.renderer.need('jnp')}.where({mask}, {text}, {holder})"
        return f"{self.renderer.need('set_where')}({holder}, {mask}, {text})"

    def _is_number(self, value: ast.expr) -> bool:
        fact = self.inference.fact(value)
        named = isinstance(fact, Qual) and fact.name.rpartition(".")[2] in ("inf", "nan", "pi", "e")
        return named or isinstance(fact, Scalar) or isinstance(fact, Tensor) and fact.rank == 0

    def _is_whole(self, target: ast.Subscript, value: ast.expr) -> bool:
        """Whether the mask surely has the shape of x, and the value fits x's dtype."""
        mask, held = self.inference.fact(target.slice), self.inference.fact(target.value)
        number = self.inference.fact(value)
        if not isinstance(held, Tensor):
            return False
        kind = number.dtype if isinstance(number, Tensor) else number.kind if isinstance(number, Scalar) else "float"
        if held.dtype == "bool" and kind != "bool" or held.dtype == "int" and kind not in ("int", "bool"):
            return False  # jnp.where would widen the dtype, where a store rounds
        if held.dtype is None and kind == "float" and not (isinstance(number, Tensor) or self._asks_floats(target)):
            return False
        match target.slice:
            case ast.Compare(left=left, comparators=[other]):
                while isinstance(left, ast.Call) and isinstance(left.func, ast.Attribute) and left.func.attr == "abs":
                    left = left.func.value
                own = ast.unparse(target.value)
                if ast.unparse(left) == own and (self._is_number(other) or ast.unparse(other) == own):
                    return True
        return isinstance(mask, Tensor) and mask.rank is not None and mask.rank == held.rank

    def _asks_floats(self, target: ast.Subscript) -> bool:
        """Whether the mask compares x as one does floats: with one, with infinity, or with itself, for NaN."""
        match target.slice:
            case ast.Compare(left=left, comparators=[other]) if ast.unparse(left) == ast.unparse(target.value):
                fact = self.inference.fact(other)
                return ast.unparse(left) == ast.unparse(other) or (
                    self._is_number(other) and not (isinstance(fact, Scalar) and fact.kind != "float")
                )
        return False


def _is_all(part: ast.expr) -> bool:
    """Whether a part of an index takes all of its axes."""
    return _is_rest(part) or isinstance(part, ast.Slice) and not any((part.lower, part.upper, part.step))


def _is_rest(part: ast.expr) -> bool:
    return isinstance(part, ast.Constant) and part.value is ...


def _masked(value: ast.expr, mask: ast.expr) -> ast.expr | None:
    """The ``y`` of ``y[mask]``; None for anything else, and for a mask that is computed anew by a call."""
    if not isinstance(value, ast.Subscript) or ast.unparse(value.slice) != ast.unparse(mask):
        return None
    return value.value if not any(isinstance(n, ast.NamedExpr) for n in symbols.walk(mask)) else None
