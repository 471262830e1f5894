"""``self.add_positions(x)``, which writes into ``x``: where a file has gaps, it hands ``x`` back.

JAX writes into no array that a caller has. A function of the file that writes into one parameter, and that is only
called by statements that give it a variable, means the same when it returns the parameter as well.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from t2j_lsp import symbols
from t2j_lsp.contract import Finding
from t2j_lsp.translate.inference.call_sites import called_function, own_parameters
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.fillers import ends, filled, in_place
from t2j_lsp.translate.rule.definitions import FunctionInfo
from t2j_lsp.translate.rule.facts import ListOf, MixedDict, Tensor, Tuple
from t2j_lsp.translate.source.rearranged import Edits, Fragment, RearrangedText


def with_written_arguments_handed_back(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which functions hand back what they write into; None where there are none that may."""
    if not any(gap.name == "in-place" for gap in gaps):
        return None
    edits: Edits = []
    for function in _writing(inference):
        edits += function.edits()
    return RearrangedText.of(inference.source.text, edits)


def _writing(inference: Inference) -> list[_WritingFunction]:
    """The functions that may hand back what they write into, those that hand it on to them among these."""
    written: dict[FunctionInfo, str] = {}
    while True:
        made = [_WritingFunction(inference, info, written) for info in inference.functions.values()]
        held = {one.info: one.parameter for one in made if one.parameter and one.calls is not None}
        if held.keys() <= written.keys():
            break
        written.update(held)
    while lost := [one.info for one in made if one.info in written and not one.is_whole(written)]:
        for info in lost:
            del written[info]
    return [one for one in made if one.info in written]


class _WritingFunction:
    """One function: the parameter that it writes into, and the statements that call it."""

    def __init__(self, inference: Inference, info: FunctionInfo, written: dict[FunctionInfo, str]) -> None:
        self.inference, self.source, self.info = inference, inference.source, info
        self.nodes = list(symbols.own_nodes(info.node))
        self.parameter = self._parameter(written)
        self.calls = self._calls() if self.parameter else None
        self.returns = [n for n in self.nodes if isinstance(n, ast.Return)]

    def _parameter(self, written: dict[FunctionInfo, str]) -> str:
        """The only parameter that the function writes into, and never binds anew; "" if there is none."""
        info, node = self.info, self.info.node
        if info.external or info.outer is not None or node.decorator_list or isinstance(node, ast.AsyncFunctionDef):
            return ""
        if any(isinstance(n, ast.Yield | ast.YieldFrom | ast.Try | ast.Await) for n in self.nodes):
            return ""
        alike = [one for one in self.inference.functions.values() if one.name == info.name]
        if len(alike) != 1 or info.name == "forward" or info.name.startswith("__") or filled(info, self.inference):
            return ""
        given = {a.arg for a in symbols.named_parameters(node)}
        own = set(self.nodes)
        everywhere = {n: name for n in symbols.walk(node) if (name := self._written(n, written)) in given}
        names = {name for n, name in everywhere.items() if n in own}
        if any(n not in own for n in everywhere):
            return ""
        changed = {n.target for n in self.nodes if isinstance(n, ast.AugAssign)}
        bound = {
            n.id for n in self.nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load) and n not in changed
        }
        name = names.pop() if len(names) == 1 and names.isdisjoint(bound) else ""
        return "" if self._keeps_items(name) else name

    def _keeps_items(self, name: str) -> bool:
        """Whether a variable is a list or a dict, which has what is written into it wherever it is held."""
        facts = [self.inference.fact(n) for n in self.nodes if isinstance(n, ast.Name) and n.id == name]
        return any(isinstance(fact, ListOf | MixedDict | Tuple) for fact in facts)

    def _written(self, node: ast.AST, written: dict[FunctionInfo, str]) -> str:
        """The name that a statement writes into."""
        match node:
            case ast.AugAssign(target=ast.Name(id=name) as target):
                return name if self._is_tensor(name, target) else ""
            case ast.AugAssign(target=ast.Subscript() as target):
                return _held(target)
            case ast.Assign(targets=targets):
                return next((_held(t) for t in targets if isinstance(t, ast.Subscript)), "")
            case ast.Expr(value=ast.Call() as call):
                if (handed := self._handed(call, written)) is not None:
                    return handed
                inside = call.func.value if isinstance(call.func, ast.Attribute) else call
                return _held(inside) if isinstance(call.func, ast.Attribute) and in_place(call.func.attr) else ""
            case ast.Assign(value=ast.Call() as call):
                return self._handed(call, written) or ""
        return ""

    def _handed(self, call: ast.Call, written: dict[FunctionInfo, str]) -> str | None:
        """The variable that a call of such a function is given to write into."""
        info = called_function(self.inference.fact(call.func))
        if info is None or info not in written:
            return None
        value = _argument(call, info, written[info])
        return _held(value) if value is not None else None

    def _is_tensor(self, name: str, target: ast.expr) -> bool:
        """Whether a variable is surely a tensor: numbers are changed for the function alone."""
        facts = [self.inference.fact(n) for n in self.nodes if isinstance(n, ast.Name) and n.id == name]
        return any(isinstance(fact, Tensor) and fact.sure for fact in facts)

    def _calls(self) -> list[ast.Expr | ast.Assign] | None:
        """The statements that call it with a variable; None where it is used in another way."""
        out: list[ast.Expr | ast.Assign] = []
        for node in self.source.nodes:
            if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Load):
                continue
            if (node.id if isinstance(node, ast.Name) else node.attr) != self.info.name:
                continue
            call = self.source.parents.get(node)
            statement = self.source.parents.get(call) if isinstance(call, ast.Call) and call.func is node else None
            if (
                not isinstance(statement, ast.Expr | ast.Assign)
                or called_function(self.inference.fact(node)) is not self.info
            ):
                return None
            if isinstance(statement, ast.Assign) and len(statement.targets) != 1 or statement.value is not call:
                return None
            assert isinstance(call, ast.Call)
            value = self._given(call)
            if value is None or not self._is_local(value if isinstance(value, ast.Name) else value.value):
                return None
            out.append(statement)
        return out or None

    def _given(self, call: ast.Call) -> ast.Name | ast.Subscript | None:
        """The variable that a call is given to write into, or a part of one: ``images[i]``."""
        match _argument(call, self.info, self.parameter):
            case ast.Name() | ast.Subscript(value=ast.Name(), slice=ast.Name() | ast.Constant()) as value:
                return value
        return None

    def _is_local(self, name: ast.expr) -> bool:
        """Whether a variable is one of the function in which a call stands, or of the module where it stands there."""
        function = symbols.nearest(ast.FunctionDef, name, self.source.parents)
        if function is None or not isinstance(name, ast.Name):
            return function is None
        stored = (n.id for n in symbols.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
        return name.id in symbols.parameter_names(function) or name.id in stored

    def is_whole(self, written: dict[FunctionInfo, str]) -> bool:
        """Whether its returns may give the parameter as well: it gives a value on every way, or on none."""
        assert self.calls is not None
        valued = [n for n in self.returns if n.value is not None]
        parts = [p for n in valued for p in (n.value.elts if isinstance(n.value, ast.Tuple) else [n.value])]
        if any(isinstance(p, ast.Name) and p.id == self.parameter for p in parts):
            return False  # it does already
        if valued:
            return len(valued) == len(self.returns) and ends(list(self.info.node.body))
        return all(isinstance(call, ast.Expr) for call in self.calls)

    # --- its text -------------------------------------------------------------------------------------------------

    def edits(self) -> Edits:
        """The function, and the calls of it, with the parameter handed back."""
        assert self.calls is not None
        edits: Edits = []
        for node in self.returns:
            at = self.source.span(node)[1]
            text = f", {self.parameter}" if node.value is not None else f" {self.parameter}"
            if isinstance(node.value, ast.Tuple):
                start, end = self.source.span(node.value)
                edits.append((start, end, [Fragment(self._tuple(node.value), start, end)]))
            edits.append((at, at, [Fragment(text, at, at)]))
        body = list(self.info.node.body)
        if not ends(body):
            at = self.source.line_end(body[-1].end_lineno or body[-1].lineno)
            line = f"{self.source.indent(body[0].lineno)}return {self.parameter}{self.source.newline}"
            lead = "" if at and self.source.text[at - 1] == "\n" else self.source.newline
            edits.append((at, at, [Fragment(lead + line, at, at)]))
        return [*edits, *self._annotation(), *(edit for call in self.calls for edit in self._call(call))]

    def _tuple(self, node: ast.Tuple) -> str:
        """A tuple in brackets."""
        text = self.source.segment(node)
        bracketed = bool(node.elts) and self.source.span(node)[0] < self.source.span(node.elts[0])[0]
        return text if bracketed else f"({text})"

    def _annotation(self) -> Edits:
        """``-> None`` as what the parameter is."""
        returned = self.info.node.returns
        if returned is None:
            return []
        given = next(a for a in symbols.named_parameters(self.info.node) if a.arg == self.parameter)
        tensor = "torch.Tensor" if "torch" in self.inference.torch_names else "object"
        kind = ast.unparse(given.annotation) if given.annotation is not None else tensor
        if not (isinstance(returned, ast.Constant) and returned.value is None):
            kind = f"tuple[{ast.unparse(returned)}, {kind}]"
        start, end = self.source.span(returned)
        return [(start, end, [Fragment(kind, start, end)])]

    def _call(self, statement: ast.Expr | ast.Assign) -> Edits:
        assert isinstance(statement.value, ast.Call)
        value = self._given(statement.value)
        assert value is not None
        name = ast.unparse(value)
        start = self.source.span(statement)[0]
        edits: Edits = []
        if isinstance(value, ast.Subscript):  # the part is stored again: the function writes into a copy
            at = self.source.span(value)[1]
            edits.append((at, at, [Fragment(".clone()", at, at)]))
        if isinstance(statement, ast.Expr):
            text = f"_, {name} = " if any(n.value is not None for n in self.returns) else f"{name} = "
            return [*edits, (start, start, [Fragment(text, start, start)])]
        target = statement.targets[0]
        first, last = self.source.span(target)
        kept = self._tuple(target) if isinstance(target, ast.Tuple) else self.source.segment(target)
        return [*edits, (first, last, [Fragment(f"{kept}, {name}", first, last)])]


def _argument(call: ast.Call, info: FunctionInfo, name: str) -> ast.expr | None:
    """What a call gives a parameter."""
    for parameter, value in zip(own_parameters(info), call.args, strict=False):
        if isinstance(value, ast.Starred):
            break
        if parameter.arg == name:
            return value
    return next((k.value for k in call.keywords if k.arg == name), None)


def _held(node: ast.expr) -> str:
    """The variable into whose tensor something writes: ``x`` of ``x[:, 0]``, also behind other writes."""
    while True:
        match node:
            case ast.Subscript(value=value):
                node = value
            case ast.Call(func=ast.Attribute(value=value, attr=name)) if in_place(name):
                node = value
            case ast.Name(id=name):
                return name
            case _:
                return ""
