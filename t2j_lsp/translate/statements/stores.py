"""Writes into arrays and variables: ``x[i] = v``, ``x[i] += v``, ``self.weight *= 0.5``, ``p.data = v``."""

from __future__ import annotations

import ast

from t2j_lsp.translate.expressions.context import Edits, Report
from t2j_lsp.translate.expressions.copying import Headers
from t2j_lsp.translate.expressions.handlers import ExpressionRenderer
from t2j_lsp.translate.expressions.subscripts import Subscripts
from t2j_lsp.translate.expressions.variables import Variables
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.facts import Scalar, Tensor
from t2j_lsp.translate.rule.pieces import ATOM, UNARY, bracket

_SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.MatMult: "@",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
}

_AT: dict[type[ast.operator], str] = {ast.Add: "add", ast.Mult: "multiply", ast.Div: "divide"}


class Stores:
    """Assignments into arrays and variables."""

    def __init__(
        self,
        inference: Inference,
        edits: Edits,
        report: Report,
        renderer: ExpressionRenderer,
        variables: Variables,
        subscripts: Subscripts,
        header: Headers,
    ) -> None:
        self.inference = inference
        self.edits = edits
        self.report = report
        self.renderer = renderer
        self.variables = variables
        self.subscripts = subscripts
        self.header = header

    def part(self, node: ast.Assign) -> bool:
        """``x[i] = v``; whether ``x`` is an array."""
        target = node.targets[0]
        if len(node.targets) != 1 or not isinstance(target, ast.Subscript):
            return False
        return self._store(node, target, node.value, None)

    def augmented(self, node: ast.AugAssign) -> bool:
        """``x[i] += v`` and ``self.weight *= 0.5``; of others only the value is rewritten."""
        target = node.target
        if isinstance(target, ast.Subscript) and self._store(node, target, node.value, node.op):
            return True
        variable = self.variables.parameter(target)
        if variable is not None:
            self._augmented_variable(node, variable)
        else:
            self.header.expression(node, "value", node.value)
        return True

    def data(self, node: ast.Assign, target: ast.Attribute) -> bool:
        """``p.data = v``."""
        parameter = self.variables.parameter(target.value)
        if parameter is None:
            self.report.gap(node, "Tensor.data", "in-place", "which parameter this writes into is not known here")
            return True
        value = self.renderer.argument(node.value)
        right = self.variables.in_flax_layout(target.value, value) if parameter[1] else value.text
        if right is None:
            self._unknown_layout(node, parameter[0])
            return True
        self.edits.replace(node, f"{parameter[0]}[...] = {right}")
        return True

    def _store(self, node: ast.stmt, target: ast.Subscript, value: ast.expr, operator: ast.operator | None) -> bool:
        """``x[i] = v`` and ``x[i] += v`` on an array: ``x = x.at[i].set(v)``."""
        base = self.inference.fact(target.value)
        if not isinstance(base, Tensor):
            return False
        variable = self.variables.parameter(target.value)
        if variable is not None and variable[1]:
            reason = f"{variable[0]} has Flax's layout; assign to its part explicitly"
            self.report.gap(node, "Tensor.__setitem__", "in-place", reason)
            return True
        holder = bracket(self.renderer.render(target.value), ATOM) if variable is None else variable[0]
        index = self.subscripts.index(target)
        right = self.renderer.argument(value)
        if base.variable or variable is not None:
            sign = _SIGNS[type(operator)] if operator is not None else ""
            self.edits.replace(node, f"{holder}[{index}] {sign}= {right.text}")
            return True
        if not isinstance(target.value, ast.Name) and not _attribute_of_name(target.value):
            self.report.gap(
                node,
                "Tensor.__setitem__",
                "in-place",
                "a write into a view or temporary array is not seen by its owner in JAX",
            )
            return True
        if self._whole_mask(target, value):
            amount = bracket(self.renderer.render(value), UNARY)
            text = right.text if operator is None else f"{holder} {_SIGNS[type(operator)]} {amount}"
            self.edits.replace(node, f"{holder} = {self.renderer.need('jnp')}.where({index}, {text}, {holder})")
            self.report.converted += 1
            return True
        if operator is None:
            new = f"{holder}.at[{index}].set({right.text})"
        elif type(operator) in _AT and _unique(target.slice):
            new = f"{holder}.at[{index}].{_AT[type(operator)]}({right.text})"
        else:
            symbol = _SIGNS[type(operator)]
            new = f"{holder}.at[{index}].set({holder}[{index}] {symbol} {bracket(right, ATOM)})"
        self.edits.replace(node, f"{holder} = {new}")
        self.report.converted += 1
        return True

    def _whole_mask(self, target: ast.Subscript, value: ast.expr) -> bool:
        """``x[x > 1] = 1``: one number in the places of a mask of x's shape. ``x.at[mask]`` doesn't run under jit."""
        mask, held = self.inference.fact(target.slice), self.inference.fact(target.value)
        if not isinstance(mask, Tensor) or mask.dtype != "bool" or not isinstance(held, Tensor):
            return False
        number = self.inference.fact(value)
        if not (isinstance(number, Scalar) or isinstance(number, Tensor) and number.rank == 0):
            return False
        kind = number.kind if isinstance(number, Scalar) else number.dtype
        if held.dtype == "bool" and kind != "bool" or held.dtype == "int" and kind not in ("int", "bool"):
            return False  # jnp.where would widen the dtype, where a store rounds
        match target.slice:
            case ast.Compare(left=left, comparators=[other]):
                while isinstance(left, ast.Call) and isinstance(left.func, ast.Attribute) and left.func.attr == "abs":
                    left = left.func.value
                own = ast.unparse(target.value)
                if ast.unparse(left) == own and (
                    isinstance(self.inference.fact(other), Scalar) or ast.unparse(other) == own
                ):
                    return True
        return mask.rank is not None and mask.rank == held.rank

    def _unknown_layout(self, node: ast.stmt, text: str) -> None:
        reason = f"whether {text} is a kernel in Flax's layout is not known here"
        self.report.gap(node, "in-place", "in-place", reason)

    def _augmented_variable(self, node: ast.AugAssign, variable: tuple[str, bool]) -> None:
        """``self.weight *= 0.5`` on a parameter or buffer; into a kernel a tensor goes in Flax's layout."""
        text, flax_layout = variable
        value = self.renderer.argument(node.value)
        right = value.text
        if flax_layout and not isinstance(self.inference.fact(node.value), Scalar):
            moved = self.variables.in_flax_layout(node.target, value)
            if moved is None:
                self._unknown_layout(node, text)
                return
            right = moved
        self.edits.replace(node, f"{text}[...] {_SIGNS[type(node.op)]}= {right}")


def _unique(index: ast.expr) -> bool:
    """Whether an index names every element at most once (``at[].add`` would count repeated ones twice)."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return all(isinstance(p, ast.Slice | ast.Constant | ast.UnaryOp) for p in parts)


def _attribute_of_name(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
