"""``self.loss_D = ...`` in a method that trains: a value of the step, which the object keeps.

A compiled step assigns no attributes. Where a file that has gaps does so in a method of a plain class, it is read as
if the method computed with variables, and gave the object their values at its end, or at the end of the loop's body or
the branch that computes them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from t2j_lsp import symbols
from t2j_lsp.contract import Finding
from t2j_lsp.translate.inference.call_sites import reached_functions
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import FunctionInfo
from t2j_lsp.translate.rule.facts import Tensor
from t2j_lsp.translate.source.folding.uses import runs
from t2j_lsp.translate.source.rearranged import Edits, Fragment, RearrangedText
from t2j_lsp.translate.training.steps.jittable import ASSIGNS

_ASSIGNS = re.compile(rf"{re.escape(ASSIGNS)} (\w+)\.(\w+)")


def with_attributes_as_variables(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which methods that train compute with variables; None where none assigns attributes."""
    edits: Edits = []
    lines = {gap.span.line for gap in gaps if gap.code == "training-loop" and _ASSIGNS.search(gap.reason)}
    for info in inference.functions.values():
        inside = lines & set(range(info.node.lineno, (info.node.end_lineno or 0) + 1))
        if not inside or info.external or info.outer is not None or info.owner is None or info.owner.acts_as_module:
            continue
        edits += _Method(inference, info).edits()
    return RearrangedText.of(inference.source.text, edits)


def with_attributes_of_a_call_as_variables(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which modules keep nothing that only the method reads which gives it, anew at each call.

    ``self.hidden = self.init_hidden()`` in front of ``out, self.hidden = self.lstm(x, self.hidden)``.
    """
    source = inference.source
    asked = {name for gap in gaps for _, name in _ASSIGNS.findall(gap.reason)}
    if not asked or not runs(source.tree):
        return None
    named = {n.value for n in source.nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    edits: Edits = []
    for info in inference.functions.values():
        if info.external or info.outer is not None or info.owner is None or not info.owner.acts_as_module:
            continue
        edits += _Method(inference, info).edits_of_one_call(asked - named)
    return RearrangedText.of(source.text, edits)


class _Method:
    """One method, and the attributes that it gives arrays."""

    def __init__(self, inference: Inference, info: FunctionInfo) -> None:
        self.inference, self.source, self.info = inference, inference.source, info
        self.nodes = list(symbols.walk(info.node))
        self.taken = {n.id for n in self.nodes if isinstance(n, ast.Name)}
        self.taken |= {n.arg for n in self.nodes if isinstance(n, ast.arg)}
        parameters = info.node.args.args
        self.own = parameters[0].arg if parameters and not info.static else ""

    def edits(self) -> Edits:
        """Its text with variables; none where it isn't sure to mean the same."""
        last = self.info.node.body[-1]
        returned = last if isinstance(last, ast.Return) else None
        leaves = (ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.Lambda, ast.FunctionDef, ast.ClassDef, ast.Try)
        inside = self.nodes[1:]
        if not self.own or any(isinstance(n, leaves) and n is not returned for n in inside):
            return []
        if self._hands_itself_on():
            return []
        edits: Edits = []
        kept: dict[int, str] = {}
        done: list[tuple[set[ast.AST], set[str]]] = []
        for block in symbols.blocks(self.info.node.body):
            nodes = [node for statement in block for node in symbols.walk(statement)]
            ends = isinstance(block[-1], ast.Break | ast.Continue) or not self.source.starts_line(block[-1])
            if ends or block is not self.info.node.body and self._is_left(nodes):
                continue
            around = set[str]().union(*(names for held, names in done if block[0] in held))
            names = {name for name in self._assigned(block) - around if not self._is_used_elsewhere(name)}
            if names:
                done.append((set(nodes), names))
                edits += self._renamed(nodes, names)
                at, text = self._kept(nodes, names, block[-1])
                kept[at] = text + kept.get(at, "")  # the inner of two blocks that end together comes first
        return [*edits, *((at, at, [Fragment(text, at, at)]) for at, text in kept.items())]

    def _is_left(self, nodes: Collection[ast.AST]) -> bool:
        """Whether a block of the method may be left in front of its end."""
        return any(isinstance(node, ast.Break | ast.Continue) for node in nodes)

    def _kept(self, nodes: Collection[ast.AST], names: set[str], last: ast.stmt) -> tuple[int, str]:
        """The lines by which a block that ends with a statement gives the object the values, and where they stand."""
        indent, newline = self.source.indent(last.lineno), self.source.newline
        kept = [f"{self.own}.{name} = {self._variable(name)}" for name in self._in_order(nodes, names)]
        if isinstance(last, ast.Return):
            at = self.source.span(last)[0]
            text = "".join(f"{line}{newline}{indent}" for line in kept)
        else:
            line_end = self.source.text.find("\n", self.source.span(last)[1])
            at = line_end if line_end >= 0 else len(self.source.text)
            text = "".join(f"{newline}{indent}{line}" for line in kept)
        return at, text

    def edits_of_one_call(self, asked: Collection[str]) -> Edits:
        """Its text with variables in place of attributes that nothing else of the file reads."""
        inside = set(self.nodes)
        names = {name for name in self._assigned(self.info.node.body, any_value=True) if name in asked}
        for node in self.source.nodes:
            if isinstance(node, ast.Attribute) and node.attr in names and isinstance(node.ctx, ast.Load):
                if node not in inside or self._attribute(node) != node.attr:
                    names.discard(node.attr)
        functions = (ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        if not self.own or self.info.name == "__init__" or any(isinstance(n, functions) for n in self.nodes[1:]):
            return []
        return self._renamed(self.nodes, names)

    def _renamed(self, nodes: Collection[ast.AST], names: Collection[str]) -> Edits:
        """The edits that write variables for attributes."""
        edits: Edits = []
        for node in nodes:
            if (name := self._attribute(node)) in names and isinstance(node, ast.Attribute):
                start, end = self.source.span(node)
                edits.append((start, end, [Fragment(self._variable(name), start, end)]))
        return edits

    def _attribute(self, node: ast.AST) -> str:
        """``x`` of ``self.x``; "" for other nodes."""
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == self.own:
                return attr
        return ""

    def _assigned(self, block: Sequence[ast.stmt], any_value: bool = False) -> set[str]:
        """Attributes that statements of a block itself give arrays, or ``any_value``, before the block reads them."""
        given: set[str] = set()
        read: set[str] = set()
        for statement in block:
            for node in self._evaluated(statement):
                name = self._attribute(node)
                if not name or not isinstance(node, ast.Attribute):
                    continue
                if isinstance(node.ctx, ast.Load):
                    read |= {name} - given
                elif any_value and isinstance(statement, ast.Assign) and self._is_target(node, statement):
                    given.add(name)
                elif statement is self.source.parents.get(node) and isinstance(statement, ast.Assign):
                    if not isinstance(statement.value, ast.Name):  # it computes nothing else
                        given |= {name} if isinstance(self.inference.fact(node), Tensor) else set()
                else:
                    read |= {name} - given
        return given - read

    def _is_target(self, node: ast.AST, statement: ast.Assign) -> bool:
        """Whether an assignment gives it a value, by itself or among others."""
        place = self.source.parents.get(node)
        return place is statement or isinstance(place, ast.Tuple) and self.source.parents.get(place) is statement

    def _evaluated(self, statement: ast.stmt) -> Iterator[ast.AST]:
        """The nodes of a statement, what is assigned before what it is assigned to."""
        if isinstance(statement, ast.Assign):
            yield from symbols.walk(statement.value)
            for target in statement.targets:
                yield from symbols.walk(target)
        else:
            yield from symbols.walk(statement)

    def _hands_itself_on(self) -> bool:
        """Whether anything is given the object as a whole."""
        parents = self.source.parents
        selves = [n for n in self.nodes if isinstance(n, ast.Name) and n.id == self.own]
        return any(not isinstance(parents.get(n), ast.Attribute) for n in selves)

    def _is_used_elsewhere(self, name: str) -> bool:
        """Whether a function that this one calls, or one that it calls, reads or sets such an attribute."""
        return any(
            info.external or any(isinstance(n, ast.Attribute) and n.attr == name for n in symbols.walk(info.node))
            for info in reached_functions(self.inference, [self.info.node])
            if info is not self.info
        )

    def _variable(self, name: str) -> str:
        """What the method calls the value of an attribute."""
        return f"{name}_" if name in self.taken else name

    def _in_order(self, nodes: Collection[ast.AST], names: set[str]) -> list[str]:
        """The attributes in the order in which they get their values."""
        return list(dict.fromkeys(name for node in nodes if (name := self._attribute(node)) in names))
