"""Classes of a program's own that hold the tensors that it trains: ``self.w = torch.randn(3, requires_grad=True)``.

Where a file that has gaps has one, it is read as a module: its tensors are parameters, an optimizer of all of them has
the module's, and steps that are made tensor by tensor, ``self.w -= lr * self.w.grad``, are a loop over the parameters.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence

from t2j_lsp.contract import Finding
from t2j_lsp.symbols import blocks, walk
from t2j_lsp.translate.expressions.module_methods import DROPPED_METHODS
from t2j_lsp.translate.expressions.module_refusals import REFUSED
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.facts import ListOf, Object, Qual, Scalar, Tuple
from t2j_lsp.translate.source.rearranged import RearrangedText
from t2j_lsp.translate.training.program.gradient_forms import asks_for_gradient, changes, cleared, is_flag

from .left_out import ObjectLeftOut, Stays

_OF_MODULES = {*DROPPED_METHODS, *REFUSED, "train", "eval", "to", "parameters", "children", "modules", "buffers"}
_PARAMETER = "p"


def with_tensor_classes_as_modules(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which such classes are modules; None if there are none, or everything converts."""
    source = inference.source
    if "grad" not in source.words and "requires_grad" not in source.words or not list(gaps):
        return None
    torch = next((n for n, fact in inference.env.items() if isinstance(fact, Qual) and fact.name == "torch"), None)
    left_out = ObjectLeftOut(inference)
    for node in source.tree.body if torch is not None else ():
        if isinstance(node, ast.ClassDef) and not node.bases and not node.keywords and not node.decorator_list:
            one = _TensorClass(inference, node, str(torch))
            try:
                one.write()
            except Stays:
                continue
            left_out.instead |= one.instead
    return RearrangedText.of(source.text, left_out.made_edits())


class _TensorClass(ObjectLeftOut):
    """One class, and what becomes of it."""

    def __init__(self, inference: Inference, node: ast.ClassDef, torch: str) -> None:
        super().__init__(inference)
        self.node, self.torch = node, torch
        self.methods = {s.name: s for s in node.body if isinstance(s, ast.FunctionDef)}
        self.leaves: dict[str, ast.Call] = {}
        """The attributes that are trained, in the order in which they are made, with what they are made of."""

    def write(self) -> None:
        """What goes, and what stands for it. Raises Stays."""
        constructor = self.methods.get("__init__")
        if constructor is None or not _OF_MODULES.isdisjoint(self.methods):
            raise Stays
        for statement in constructor.body:
            self._read(statement)
        if not self.leaves:
            raise Stays
        self._check_attributes(constructor)
        self._write_optimizers()
        for method in self.methods.values():
            for block in blocks(method.body):
                self._write_steps(block)
        self._check_gradients()
        for made in self.leaves.values():
            self.make_parameter(made, self.torch)
        name_end = self.source.text.index(self.node.name, self.source.span(self.node)[0]) + len(self.node.name)
        header = re.compile(r"(\(\s*\))?\s*:").match(self.source.text, name_end)
        if header is None or not self.source.starts_line(constructor.body[0]):
            raise Stays
        self.instead[name_end, header.end()] = f"({self.torch}.nn.Module):"
        first = self.source.span(self._first(constructor))[0]
        indent = self.source.indent(constructor.body[0].lineno)
        if any(start <= first < end or start == end == first for start, end in self.instead):
            raise Stays
        self.instead[first, first] = f"super().__init__(){self.source.newline}{indent}"

    def _first(self, constructor: ast.FunctionDef) -> ast.stmt:
        """The first statement of the constructor that is no docstring."""
        return constructor.body[ast.get_docstring(constructor) is not None]

    # --- what is trained ------------------------------------------------------------------------------------------

    def _read(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)], value=ast.Call() as call):
                if any(is_flag(k) for k in call.keywords) or is_flag(call):
                    self.leaves[name] = call

    def _check_attributes(self, constructor: ast.FunctionDef) -> None:
        """Raises Stays where it keeps what a module of Flax can't, or what a step would be compiled for."""
        inside = set(walk(constructor))
        for node in walk(self.node):
            match node:
                case ast.Attribute(value=ast.Name(id="self"), attr=name):
                    parent = self.parents.get(node)
                    if not isinstance(node.ctx, ast.Load) and name not in self.leaves and node not in inside:
                        raise Stays
                    if name in _OF_MODULES or isinstance(parent, ast.Attribute) and parent.attr in ("append", "extend"):
                        raise Stays
                    if isinstance(node.ctx, ast.Store) and isinstance(parent, ast.Assign) and name not in self.leaves:
                        self._check_value(parent.value)
                case _:
                    pass

    def _check_value(self, value: ast.expr) -> None:
        fact = self.inference.fact(value)
        listed = fact.items if isinstance(fact, Tuple) else [fact.item] if isinstance(fact, ListOf) else []
        plain = all(isinstance(one, Scalar) for one in listed)
        if not plain or isinstance(value, ast.Dict | ast.List | ast.ListComp | ast.Lambda):
            raise Stays

    # --- how it is trained ----------------------------------------------------------------------------------------

    def _write_optimizers(self) -> None:
        """``SGD([self.w, self.b])`` updates the parameters. Raises Stays where it leaves some out."""
        for call in self.source.nodes:
            fact = self.inference.fact(call) if isinstance(call, ast.Call) else None
            if not isinstance(call, ast.Call) or not isinstance(fact, Object) or fact.kind != "optimizer":
                continue
            given = call.args[0] if call.args else None
            if not isinstance(given, ast.List | ast.Tuple) or not all(isinstance(e, ast.Attribute) for e in given.elts):
                continue
            owners = {ast.unparse(e.value) for e in given.elts if isinstance(e, ast.Attribute)}
            names = [e.attr for e in given.elts if isinstance(e, ast.Attribute)]
            if not set(names) & self.leaves.keys():
                continue
            if names != [*self.leaves] or len(owners) != 1:
                raise Stays
            self.put(given, f"{owners.pop()}.parameters()")

    def _write_steps(self, block: Sequence[ast.stmt]) -> None:
        """Statements that update or clear each of the tensors by itself, as one that does so for all."""
        for kind in (self._updated, self._cleared):
            alike = [(s, name) for s in block if (name := kind(s)) is not None]
            if not alike:
                continue
            first, *others = (s for s, _ in alike)
            forms = {re.sub(rf"\bself\.{name}\b", _PARAMETER, ast.unparse(s)) for s, name in alike}
            at = block.index(first)
            together = [*block[at : at + len(alike)]] == [first, *others]
            names = sorted(name for _, name in alike)
            if names != sorted(self.leaves) or len(forms) > 1 or not together or not self.source.starts_line(first):
                raise Stays
            form, indent = forms.pop(), self.source.indent(first.lineno)
            text = f"for {_PARAMETER} in self.parameters():{self.source.newline}{indent}    {form}"
            self.put(first, text if kind == self._updated else "self.zero_grad()")
            for other in others:
                self.drop(other)

    def _updated(self, statement: ast.stmt) -> str | None:
        """The tensor that a statement gives a new value by its gradient."""
        names = {name for name, _ in self._named(statement)}
        name = names.pop() if len(names) == 1 else None
        if name is None or cleared(statement) is not None:
            return None
        text = re.sub(rf"\bself\.{name}\b", _PARAMETER, ast.unparse(statement))
        if any(isinstance(n, ast.Name) and n.id == _PARAMETER for n in walk(statement)):
            raise Stays
        plain = ast.parse(text).body[0]
        return name if f"{_PARAMETER}.grad" in text and changes(plain, _PARAMETER) else None

    def _cleared(self, statement: ast.stmt) -> str | None:
        match statement:
            case ast.If(test=test, body=[inner], orelse=[]) if asks_for_gradient(test):
                return self._cleared(inner)
        owner = cleared(statement)
        match owner:
            case ast.Attribute(value=ast.Name(id="self"), attr=name) if name in self.leaves:
                return name
        return None

    def _named(self, statement: ast.AST) -> Iterator[tuple[str, ast.Attribute]]:
        for node in walk(statement):
            match node:
                case ast.Attribute(value=ast.Name(id="self"), attr=name) if name in self.leaves:
                    yield name, node

    def _check_gradients(self) -> None:
        """Raises Stays where a gradient is read, or a tensor is given a value, otherwise."""
        gone = [span for span, text in self.instead.items() if span[0] < span[1]]
        constructed = {self.parents.get(made) for made in self.leaves.values()}
        for node in self.source.nodes:
            if not isinstance(node, ast.Attribute) or node.attr not in self.leaves:
                continue
            start, end = self.source.span(node)
            if any(begin <= start and end <= stop for begin, stop in gone):
                continue
            parent = self.parents.get(node)
            stored = not isinstance(node.ctx, ast.Load) and parent not in constructed
            if stored or isinstance(parent, ast.Attribute) and parent.attr in ("grad", "data", "requires_grad"):
                raise Stays
