"""Functions of a file that are only called where the file itself says so: only these may change what they take.

Of a class that is its ``forward``: every instance is made by another class of the file, and is only called there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Set
from dataclasses import dataclass, field

from t2j_lsp import symbols
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import Class, ClassInfo, FunctionInfo, Instance
from t2j_lsp.translate.rule.facts import Layer, Qual, Scalar, Tensor

from .attributes import ExchangedAttributes, of_foreign_base
from .handed import HandedOn
from .uses import is_asked, is_of_super, leaves_layout


@dataclass
class Closed:
    """How a function is reached. It is closed as long as all of these are known calls."""

    calls: list[ast.AST] = field(default_factory=list)
    """Nodes that have to be calls that were met."""
    built: list[tuple[ast.Call, list[ast.AST] | None]] = field(default_factory=list)
    """Constructor calls: part of a chain of layers, or behind attributes whose uses these are; None: nowhere else."""

    def holds(self, met: Set[ast.AST], chained: Set[ast.Call]) -> bool:
        known = all(node in met for node in self.calls)
        return known and all(
            call in chained or uses is not None and all(use in met for use in uses) for call, uses in self.built
        )


class ClosedFunctions:
    """Finds them in a file."""

    def __init__(self, inference: Inference, handed: HandedOn, handed_on: bool) -> None:
        self.inference, self.parents, self.handed = inference, inference.source.parents, handed
        self.handed_on = handed_on
        """Whether what nobody in the file calls may take and give channels-last values too."""
        self.reads = handed.reads
        self.exchanged = ExchangedAttributes(inference)
        self.bases = {b.info for info in inference.classes.values() for b in info.bases if isinstance(b, Class)}

    def all(self) -> Iterator[tuple[FunctionInfo, Closed]]:
        for info in self.inference.classes.values():
            if not info.is_module or info.external or info in self.bases:
                continue
            if not all(isinstance(base, Qual) for base in info.bases) or info.layer_base is not None:
                continue
            for method in info.methods.values():
                closed = self._of_class(info) if method.name == "forward" else self._of_method(method)
                if closed is not None and not method.static:
                    yield method, closed

    def _of_method(self, method: FunctionInfo) -> Closed | None:
        if not method.name.startswith("_") or method.name.endswith("__"):
            return None
        reads = self.reads.get(method, [])
        return Closed([self.parents.get(read, read) for read in reads]) if reads else None

    def _of_class(self, info: ClassInfo) -> Closed | None:
        closed = Closed([self.parents.get(read, read) for read in self.reads.get(info.methods["forward"], [])])
        for read in self.reads.get(info, []):
            parent = self.parents.get(read)
            if isinstance(parent, ast.Call) and parent.func is read:
                closed.built.append((parent, self._uses(parent)))
            elif (handed := self.handed.given_to(read)) is not None:
                closed.built += [(call, self._uses(call)) for call in handed]
            elif not is_asked(read, self.parents) and not is_of_super(parent):
                return None
        return closed if closed.built or self.handed_on else None

    def _uses(self, made: ast.Call) -> list[ast.AST] | None:
        """The calls of what a constructor call is assigned to; None where it is assigned to nothing known."""
        node: ast.AST = made
        parent = self.parents[node]
        listed = False
        while not isinstance(parent, ast.stmt):
            match parent:
                case ast.IfExp():
                    if node is parent.test:
                        return None
                case ast.List() | ast.Tuple() | ast.ListComp() | ast.GeneratorExp():
                    listed = True
                case ast.Call(args=[one], func=ast.Attribute(value=held, attr="append" | "extend" as method)):
                    if one is not node or listed != (method == "extend"):
                        return None
                    return self._of_list(held)
                case ast.Call(args=[one], keywords=[]) if one is node and listed and self._is_list(parent):
                    pass
                case _:
                    return None
            node, parent = parent, self.parents[parent]
        match parent:
            case ast.Assign(targets=[ast.Attribute() as target]):
                return self._of_attribute(target, listed)
            case ast.Assign(targets=[ast.Name() as target]) | ast.AugAssign(op=ast.Add(), target=target) if listed:
                return self._of_list(target)
        return None

    def _is_list(self, call: ast.Call) -> bool:
        fact = self.inference.facts.get(call)
        return isinstance(fact, Layer) and fact.name == "torch.nn.ModuleList"

    def _of_attribute(self, target: ast.Attribute, listed: bool) -> list[ast.AST] | None:
        """The calls of what an attribute of a module holds, or of the items of the list that it holds."""
        fact, name = self.inference.facts.get(target.value), target.attr
        if not isinstance(fact, Instance) or (None, name) in self.inference.attribute_reads:
            return None
        if (fact.cls.info, name) in self.exchanged or of_foreign_base(fact.cls.info, name):
            return None
        reads = self.inference.attribute_reads.get((fact.cls.info, name), [])
        reads = [read for read in reads if not leaves_layout(read, self.inference)]
        return [use for read in reads for use in (self._of_items(read) if listed else [self.parents[read]])]

    def _of_list(self, held: ast.expr) -> list[ast.AST] | None:
        """The calls of the items of a list: of an attribute, or of a variable that becomes one."""
        if isinstance(held, ast.Attribute):
            return self._of_attribute(held, True)
        function = symbols.nearest(ast.FunctionDef, held, self.parents)
        if not isinstance(held, ast.Name) or function is None:
            return None
        uses: list[ast.AST] = []
        for read in (n for n in symbols.walk(function) if isinstance(n, ast.Name) and n.id == held.id):
            parent = self.parents[read]
            if not isinstance(read.ctx, ast.Load) or _fills(parent):
                continue
            match self.parents[parent]:
                case ast.Assign(targets=[ast.Attribute() as target]) if self._is_made_of(parent, read):
                    of_list = self._of_attribute(target, True)
                    if of_list is None:
                        return None
                    uses += of_list
                case _:
                    return None
        return uses

    def _is_made_of(self, node: ast.AST, read: ast.Name) -> bool:
        return isinstance(node, ast.Call) and node.args == [read] and not node.keywords and self._is_list(node)

    def _of_items(self, read: ast.expr) -> Iterator[ast.AST]:
        """The calls of a list's items where the list is read; the read itself, which is no call, elsewhere."""
        node: ast.AST = read
        parent = self.parents[node]
        while isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and node in parent.args:
            if parent.func.id == "len":
                return
            if parent.func.id not in ("enumerate", "zip", "reversed"):
                break
            node, parent = parent, self.parents[parent]
        match parent:
            case ast.Attribute() if _fills(parent):
                return
            case ast.For(iter=held, target=target) if held is node:
                yield from self._of_target(target, parent)
            case ast.Subscript(value=held) if held is node:
                yield self.parents[parent]
            case _:
                yield read

    def _of_target(self, target: ast.expr, loop: ast.For) -> Iterator[ast.AST]:
        names = {n.id for n in symbols.walk(target) if isinstance(n, ast.Name)}
        for node in (n for one in loop.body for n in symbols.walk(one)):
            if isinstance(node, ast.Name) and node.id in names:
                if not isinstance(self.inference.facts.get(node), Scalar | Tensor) or not isinstance(
                    node.ctx, ast.Load
                ):
                    yield self.parents[node]


def _fills(parent: ast.AST) -> bool:
    """Whether something is put into a list: ``layers.append(...)``."""
    return isinstance(parent, ast.Attribute) and parent.attr in ("append", "extend")
