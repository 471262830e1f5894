"""Writes into arrays and variables: ``x[i] = v``, ``x[i] += v``, ``self.weight *= 0.5``, ``p.data = v``."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import partial

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.alike import writes_alike
from t2j_lsp.translate.expressions.any_layer import ParametersOfAnyLayer
from t2j_lsp.translate.expressions.context import Edits, Names, Report
from t2j_lsp.translate.expressions.copying import Headers
from t2j_lsp.translate.expressions.handlers import ExpressionRenderer
from t2j_lsp.translate.expressions.in_place import why_not_bound
from t2j_lsp.translate.expressions.subscripts import Subscripts
from t2j_lsp.translate.expressions.tensor_code import TensorCode
from t2j_lsp.translate.expressions.variables import Variables
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.forward_pass import UnknownParameter
from t2j_lsp.translate.inference.item_stores import is_mask, may_be_array, only_arrays_take
from t2j_lsp.translate.rule.facts import UNKNOWN, Fact, Scalar, Tensor, is_number
from t2j_lsp.translate.rule.pieces import ANY, ARGUMENT, ATOM, UNARY, Piece, assigned, bracket
from t2j_lsp.translate.rule.tensors import behind_data, same_rank

from .masks import Masks
from .store_targets import attribute_of_name, last_name, name_of, operands, repeatable

_NOT_KNOWN = "which parameter this writes into is not known here"
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
        code: TensorCode,
        names: Names,
        any_layer: ParametersOfAnyLayer,
    ) -> None:
        self.any_layer = any_layer
        self.code = code
        self.names = names
        self.masks = Masks(inference, report, renderer, subscripts)
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
        if len(node.targets) > 1:
            return self._several(node)
        if isinstance(target, ast.Tuple | ast.List):
            return self._one_by_one(node, target)
        if not isinstance(target, ast.Subscript):
            return False
        return self._store(node, target, node.value, None)

    def _fitted(self, target: ast.Subscript, value: ast.expr) -> Piece:
        """A value to be set, without leading axes of length 1, which PyTorch ignores: it may have too many."""
        right = self.renderer.argument(value)
        part, fact = self.inference.fact(target), self.inference.fact(value)
        if not isinstance(part, Tensor) or not isinstance(fact, Tensor) or part.rank is None:
            return right
        if fact.rank is not None and fact.rank > part.rank:
            zeros = ", ".join("0" * (fact.rank - part.rank))
            return Piece(f"{bracket(right, ATOM)}[{zeros}]", ATOM)
        if not isinstance(value, ast.Name) or fact.rank is not None:
            return right
        if not self._may_exceed(value.id, part.rank, set()):
            return right
        name = self.renderer.render(value).text
        return Piece(right.text + (f".reshape({name}.shape[-{part.rank}:])" if part.rank else ".reshape(())"), ATOM)

    def _may_exceed(self, name: str, rank: int, seen: set[str]) -> bool:
        """Whether a variable is computed, element by element, from something that is known to have more axes."""
        seen.add(name)
        for node in self.edits.source.nodes:
            if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
                for part in operands(node.value):
                    fact = self.inference.fact(part)
                    if isinstance(fact, Tensor) and (fact.rank or 0) > rank:
                        return True
                    if isinstance(part, ast.Name) and part.id not in seen and self._may_exceed(part.id, rank, seen):
                        return True
        return False

    def _several(self, node: ast.Assign) -> bool:
        """``x[i] = x[j] = v``: an assignment for each target, where the value has a name or can be written twice."""
        parts = [t for t in node.targets if isinstance(t, ast.Subscript)]
        if not any(isinstance(self.inference.fact(t.value), Tensor) for t in parts):
            return False
        arrays = [t for t in parts if isinstance(self.inference.fact(t.value), Tensor)]
        names = [t for t in node.targets if isinstance(t, ast.Name)]
        read = {n.id for t in arrays for n in symbols.walk(t) if isinstance(n, ast.Name)}
        fresh = isinstance(node.value, ast.BinOp) or repeatable(node.value, arrays)  # no view of what is written
        if fresh and len(names) == 1 and len(arrays) == len(node.targets) - 1 and names[0].id not in read:
            return self._a_line_each(node, [(names[0], node.value), *((target, names[0]) for target in arrays)])
        if len(arrays) < len(node.targets) or not repeatable(node.value, arrays):
            return self._inseparable(node, "one value for several targets")
        return self._a_line_each(node, [(target, node.value) for target in arrays])

    def _one_by_one(self, node: ast.Assign, targets: ast.Tuple | ast.List) -> bool:
        """``x[i], x[j] = a, b``: an assignment for each target, where no value reads what another one writes."""
        parts = [t for t in symbols.walk(targets) if isinstance(t, ast.Subscript) and isinstance(t.ctx, ast.Store)]
        if not any(isinstance(self.inference.fact(t.value), Tensor) for t in parts):
            return False
        values = node.value.elts if isinstance(node.value, ast.Tuple | ast.List) else []
        read = {n.id for e in (*values, *(t.slice for t in parts)) for n in symbols.walk(e) if isinstance(n, ast.Name)}
        single = not any(isinstance(e, ast.Starred | ast.Tuple | ast.List) for e in (*targets.elts, *values))
        if isinstance(node.value, ast.Call) and single and self._are_arrays(parts, targets):
            return self._by_names(node, targets, parts)
        if len(values) != len(targets.elts) or not single or read & {name_of(t) for t in targets.elts}:
            return self._inseparable(node, "values for several targets at once")
        return self._a_line_each(node, list(zip(targets.elts, values, strict=True)))

    def _are_arrays(self, parts: list[ast.Subscript], targets: ast.Tuple | ast.List) -> bool:
        """Whether all parts are of arrays that have names, and no other target says which array or where in it."""
        read = {n.id for t in parts for n in symbols.walk(t.slice) if isinstance(n, ast.Name)}
        held = [self.inference.fact(t.value) for t in parts]
        named = all(isinstance(t.value, ast.Name | ast.Attribute) for t in parts)
        others = {name_of(t) for t in targets.elts if t not in parts}
        apart = not others & (read | {name_of(t) for t in parts}) and not read & {name_of(t) for t in parts}
        return named and apart and all(isinstance(fact, Tensor) for fact in held)

    def _by_names(self, node: ast.Assign, targets: ast.Tuple | ast.List, parts: list[ast.Subscript]) -> bool:
        """``actions[t], values[t] = net(x)``: what the call gives has names, by which it is written into the parts."""
        made: dict[ast.expr, ast.expr] = {}
        for part in parts:
            text = self.names.fresh(f"new_{last_name(part.value)}")
            made[part] = ast.copy_location(ast.Name(text, ast.Load()), part)
            self.renderer.put(made[part], Piece(text))
        named = ", ".join(self.renderer.render(made.get(target, target)).text for target in targets.elts)
        lead = f"{named} = {assigned(self.renderer.argument(node.value))}"
        return self._a_line_each(node, list(made.items()), lead)

    def _inseparable(self, node: ast.Assign, what: str) -> bool:
        reason = f"{what}, of which JAX can't write into some: give each a line of its own"
        self.report.gap(node, "Tensor.__setitem__", "in-place", reason)
        return True

    def _a_line_each(self, node: ast.Assign, pairs: Sequence[tuple[ast.expr, ast.expr]], lead: str = "") -> bool:
        """An assignment of each value to its target, in place of the statement; ``lead`` stands in front of them."""
        if not self.edits.source.starts_line(node):
            return self._inseparable(node, "several targets in a statement behind another one")
        span = self.edits.source.span(node)
        lines: list[str] = []
        for target, value in pairs:
            first = len(self.edits.made)
            if isinstance(target, ast.Subscript) and self._store(node, target, value, None):
                lines += [e.new for e in self.edits.made[first:] if (e.start, e.end) == span]
                self.edits.take_back(first)
            else:
                lines.append(f"{self.renderer.render(target).text} = {assigned(self.renderer.argument(value))}")
        if len(lines) == len(pairs):  # Else a target is a gap.
            self.edits.insert_before(node, [*filter(None, [lead]), *lines[:-1]])
            self.edits.replace(node, lines[-1])
        return True

    def augmented(self, node: ast.AugAssign) -> bool:
        """``x[i] += v`` and ``self.weight *= 0.5``; of others only the value is rewritten."""
        target = node.target
        if isinstance(target, ast.Subscript) and self._store(node, target, node.value, node.op):
            return True
        variable = self.variables.parameter(target)
        held = behind_data(target)
        if variable is None and isinstance(held, ast.Attribute) and self.variables.is_of_some_layer(held):
            if held.attr != "bias" and self._of_any_layer(node, held):
                return True
            if held.attr != "bias":
                self.report.gap(node, "Tensor.data", "in-place", _NOT_KNOWN)
                return True
            variable = f"{self.renderer.render(held.value).text}.bias", False
        if variable is not None:
            self._augmented_variable(node, variable)
        elif held is not target and isinstance(held, ast.Name) and isinstance(self.inference.fact(held), Tensor):
            right = bracket(self.renderer.argument(node.value), UNARY)
            self.edits.replace(node, f"{held.id} = {held.id} {_SIGNS[type(node.op)]} {right}")
        else:
            self.header.expression(node, "value", node.value)
        return True

    def _of_any_layer(self, node: ast.AugAssign, held: ast.Attribute) -> bool:
        """``layer.weight *= 0.5`` of a layer of any class."""
        sign = _SIGNS[type(node.op)]
        old = self.any_layer.looked_up(held.value, held.attr)
        right = bracket(self.renderer.argument(node.value), UNARY)
        if (written := self.any_layer.write(held, Piece(f"{old.text} {sign} {right}", ANY))) is None:
            return False
        self.edits.replace(node, written)
        return True

    def data(self, node: ast.Assign, target: ast.Attribute) -> bool:
        """``p.data = v``."""
        parameter = self.variables.parameter(target.value)
        if parameter is None:
            value = self.renderer.argument(node.value)
            if (written := self.any_layer.write(behind_data(target), value)) is not None:
                self.edits.replace(node, written)
                return True
            self.report.gap(node, "Tensor.data", "in-place", _NOT_KNOWN)
            return True
        value = self.renderer.argument(node.value)
        turned = parameter[1] and not writes_alike(self.inference, node)
        right = self.variables.in_flax_layout(target.value, value) if turned else assigned(value)
        if right is None:
            self._unknown_layout(node, parameter[0])
            return True
        written = "{}.set_value({})" if self.variables.may_change_kind(target.value) else "{}[...] = {}"
        self.edits.replace(node, written.format(parameter[0], right))
        return True

    def _store(self, node: ast.stmt, target: ast.Subscript, value: ast.expr, operator: ast.operator | None) -> bool:
        """``x[i] = v`` and ``x[i] += v`` on an array: ``x = x.at[i].set(v)``."""
        if self._is_converted(target):
            return False
        owner, outer = self._whole(target)
        while (
            isinstance(owner, ast.Attribute)
            and owner.attr == "data"
            and isinstance(self.inference.fact(owner.value), Tensor)
        ):
            owner = owner.value
        base = self.inference.fact(owner)
        if is_number(base):  # which has no parts, whatever its annotation says
            base = Tensor(sure=False)
        if not isinstance(base, Tensor):
            self._may_be_array(node, target, value, base)
            return False
        variable = self.variables.parameter(owner)
        index = ", ".join(map(self.subscripts.index, [*outer, target]))
        if variable is not None and variable[1]:
            part = partial(self._written, node, target, value, operator, index)
            if (stored := self.variables.with_part(owner, variable[0], part)) is None:
                self._unknown_layout(node, variable[0])
            else:
                self.edits.replace(node, stored)
            return True
        holder = bracket(self.renderer.render(owner), ATOM) if variable is None else variable[0]
        sign = _SIGNS[type(operator)] if operator is not None else ""
        if base.variable or variable is not None:
            whole = self._fitted(target, value) if operator is None else self.renderer.argument(value)
            self.edits.replace(node, f"{holder}[{index}] {sign}= {assigned(whole)}")
            return True
        view = self._sliced(owner)
        named = owner if view is None else view
        of_tensor = isinstance(named, ast.Attribute) and isinstance(self.inference.fact(named.value), Tensor)
        if of_tensor or not isinstance(named, ast.Name) and not attribute_of_name(named):  # ``x.T[0] = 1``
            self.report.gap(
                node,
                "Tensor.__setitem__",
                "in-place",
                "a write into a view or temporary array is not seen by its owner in JAX",
            )
            return True
        if (reason := why_not_bound(self.inference, named)) is not None:
            self.report.gap(node, "Tensor.__setitem__", "in-place", reason)
            return True
        new = self._written(node, target, value, operator, index, holder)
        if view is not None:
            assert isinstance(owner, ast.Subscript)
            holder = bracket(self.renderer.render(view), ATOM)
            new = f"{holder}.at[{self.subscripts.index(owner)}].set({new})"
        self.edits.replace(node, f"{holder} = {new}")
        self.report.count_converted()
        return True

    def _written(
        self,
        node: ast.stmt,
        target: ast.Subscript,
        value: ast.expr,
        operator: ast.operator | None,
        index: str,
        holder: str,
    ) -> str:
        """What ``holder`` is after a write into its part ``index``."""
        sign = _SIGNS[type(operator)] if operator is not None else ""
        if (masked := self.masks.written(node, target, value, index, holder, sign)) is not None:
            return masked
        right = self._fitted(target, value) if operator is None else self.renderer.argument(value)
        if operator is None:
            return f"{holder}.at[{index}].set({right.text})"
        if type(operator) in _AT and self._unique(target.slice):
            return f"{holder}.at[{index}].{_AT[type(operator)]}({right.text})"
        return f"{holder}.at[{index}].set({holder}[{index}] {sign} {bracket(right, UNARY)})"

    def _sliced(self, owner: ast.expr) -> ast.expr | None:
        """The array of which ``owner`` is a part by slices and whole numbers alone: in PyTorch a view of it."""
        if not isinstance(owner, ast.Subscript) or self.variables.parameter(owner.value) is not None:
            return None
        whole = self.inference.fact(owner.value)
        parts = owner.slice.elts if isinstance(owner.slice, ast.Tuple) else [owner.slice]
        if not isinstance(whole, Tensor) or whole.variable or any(isinstance(n, ast.Call) for n in ast.walk(owner)):
            return None
        return owner.value if all(isinstance(p, ast.Slice) or self._is_number(p) for p in parts) else None

    def _whole(self, target: ast.Subscript) -> tuple[ast.expr, list[ast.Subscript]]:
        """The array that is written into, and the parts by whole numbers that are taken of it: of ``x[i][j] = v``.

        Those are views in PyTorch, so that it says ``x[i, j] = v``.
        """
        owner, outer = target.value, list[ast.Subscript]()
        parts = target.slice.elts if isinstance(target.slice, ast.Tuple) else []
        apart = any(not isinstance(p, ast.Slice) and not self._is_number(p) for p in parts)
        if apart or is_mask(target.slice, self.inference.facts):
            return owner, []  # axes of an array of indices would come elsewhere
        while isinstance(owner, ast.Subscript) and self._is_number(owner.slice):
            if not isinstance(self.inference.fact(owner.value), Tensor):
                break
            outer.insert(0, owner)
            owner = owner.value
        return (target.value, []) if isinstance(owner, ast.Subscript) else (owner, outer)

    def _unique(self, index: ast.expr) -> bool:
        """Whether an index names every element at most once (``at[].add`` would count repeated ones twice)."""
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        return all(isinstance(p, ast.Slice | ast.Constant | ast.UnaryOp) or self._is_single(p) for p in parts)

    def _is_single(self, node: ast.expr) -> bool:
        """Whether it is one whole number, or a tensor of one."""
        fact = self.inference.fact(node)
        return self._is_number(node) or isinstance(fact, Tensor) and fact.rank == 0 and fact.dtype != "bool"

    def _is_number(self, node: ast.expr) -> bool:
        fact = self.inference.fact(node)
        return isinstance(fact, Scalar) and fact.kind == "int"

    def _is_converted(self, target: ast.Subscript) -> bool:
        """Whether it is JAX code already: what is written to is an nnx.Variable, or no array."""
        if not self.inference.has_jax:
            return False
        whole = isinstance(target.slice, ast.Constant) and target.slice.value is ...
        return whole or self.code.function is not None and self.inference.names_jax(self.code.function)

    def _may_be_array(self, node: ast.stmt, target: ast.Subscript, value: ast.expr, base: Fact) -> None:
        """A write into something of unknown type, which fails if that is an array."""
        function = self.code.function
        if base != UNKNOWN and not isinstance(base, UnknownParameter) or not self.code.among_tensors:
            return
        fact, facts = self.inference.fact(value), self.inference.facts
        if function is not None and (
            only_arrays_take(target, fact, facts) or may_be_array(target, fact, facts, function.node)
        ):
            name = ast.unparse(target.value)
            reason = f"if {name!r} is a tensor, JAX says {name} = {name}.at[...].set(...): annotate it as torch.Tensor"
            self.report.gap(node, "Tensor.__setitem__", "unsure", reason)

    def _unknown_layout(self, node: ast.stmt, text: str) -> None:
        self.report.gap(node, "in-place", "in-place", f"whether {text} is a kernel in Flax's layout is not known here")

    def _augmented_variable(self, node: ast.AugAssign, variable: tuple[str, bool]) -> None:
        """``self.weight *= 0.5`` on a parameter or buffer; into a kernel a tensor goes in Flax's layout."""
        text, flax_layout = variable
        value = self.renderer.argument(node.value)
        right, operator = assigned(value), _SIGNS[type(node.op)]
        sign = f"{operator}="
        fact, held = self.inference.fact(node.value), self.inference.fact(node.target)
        if flax_layout and not isinstance(fact, Scalar):
            if not same_rank(fact, held):
                # A number, or fewer axes: PyTorch adds those in front of its own layout.
                before = self.variables.in_torch_layout(node.target, text)
                value, sign = Piece(f"{bracket(before, ATOM)} {operator} {bracket(value, ATOM)}", ARGUMENT), "="
            moved = self.variables.in_flax_layout(node.target, value)
            if moved is None:
                self._unknown_layout(node, text)
                return
            right = moved
        self.edits.replace(node, f"{text}[...] {sign} {right}")
