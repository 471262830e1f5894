"""Optimizers and schedules that are chosen by name, as branches: ``getattr(torch.optim, name)(params, lr=0.1)``.

PyTorch's classes take the same arguments, optax's functions don't, so that each has a call of its own. Where a file
that has gaps chooses a class by ``getattr``, from a dict, or by ``a if c else b``, it is read as if it asked for each.
Of all that ``getattr`` may give there are those that the file names; for others its branches end in an error, which is
said.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from t2j_lsp import symbols
from t2j_lsp.contract import Finding, Severity
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.facts import Object, Qual
from t2j_lsp.translate.rule.library import CLASSES, TorchClass
from t2j_lsp.translate.rule.record import REGISTRY
from t2j_lsp.translate.source.positions import spans_lines
from t2j_lsp.translate.source.rearranged import Rearranged, RearrangedText

from .left_out import ObjectLeftOut, Stays, only_reads

_KINDS = ("optimizer", "scheduler")
NAMED = "Those that the file names have a branch: {}. A name that isn't among them is an error now; add its call here."


@dataclass(frozen=True)
class _Choice:
    """Conditions with the class that each stands for, None for the last one; and what is raised if none holds."""

    branches: tuple[tuple[str | None, str], ...]
    error: str = ""
    note: str = ""


def with_chosen_optimizers_as_branches(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which each of them is made in a branch of its own; None if none is chosen so."""
    source = inference.source
    if "optim" not in source.words or not list(gaps):
        return None
    written = _Chosen(inference)
    for node in source.nodes:
        match node:
            case ast.Assign(targets=[ast.Name() | ast.Attribute()], value=ast.Call() as call):
                try:
                    written.of(node, call)
                except Stays:
                    continue
    edits = written.made_edits()
    return RearrangedText((Rearranged.of(source.text, edits),), tuple(written.findings)) if edits else None


class _Chosen(ObjectLeftOut):
    def __init__(self, inference: Inference) -> None:
        super().__init__(inference)
        self.findings: list[Finding] = []

    def of(self, made: ast.Assign, call: ast.Call) -> None:
        """One statement that makes what was chosen. Raises Stays."""
        source, func, stored = self.source, call.func, None
        if not source.starts_line(made):
            raise Stays
        if isinstance(func, ast.Name) and (stored := self.only_value(func)) is not None:
            if not self._is_read_once(func):
                raise Stays
            func = stored.value
        choice = self._of_getattr(func) or self._of_table(func) or self._of_condition(func)
        if choice is None or any(map(spans_lines, symbols.walk(call))):
            raise Stays
        arguments = source.text[source.span(call.func)[1] : source.span(call)[1]]
        arguments = arguments[arguments.index("(") :]
        target, indent, new = source.segment(made.targets[0]), source.indent(made.lineno), source.newline
        if choice.branches[0][0] is None:
            self.put(made, f"{target} = {choice.branches[0][1]}{arguments}")
        else:
            heads = [f"if {c}:" if c is not None else "else:" for c, _ in choice.branches]
            heads[1:] = [f"{indent}el{head}" if head != "else:" else indent + head for head in heads[1:]]
            bodies = [f"{indent}    {target} = {cls}{arguments}" for _, cls in choice.branches]
            lines = [line for pair in zip(heads, bodies, strict=True) for line in pair]
            lines += [f"{indent}else:", f"{indent}    {choice.error}"] if choice.error else []
            self.put(made, new.join(lines))
        if stored is not None:
            self.drop(stored)
        if isinstance(func, ast.Subscript) and isinstance(table := func.value, ast.Name) and self._is_read_once(table):
            if (held := self.only_value(table)) is not None:
                self.drop(held)
        if choice.note:
            span = source.contract_span(call.func)
            self.findings.append(Finding(span, "training", "note", Severity.NOTE, choice.note))

    def _of_getattr(self, node: ast.expr) -> _Choice | None:
        """``getattr(torch.optim, name)``, ``torch.optim.__dict__[name]``."""
        match node:
            case ast.Call(func=ast.Name(id="getattr"), args=[package, name], keywords=[]):
                pass
            case ast.Subscript(value=ast.Attribute(attr="__dict__", value=package), slice=name):
                pass
            case _:
                return None
        held = self._package(package)
        if held is None or not only_reads(name):
            return None
        prefix, full = held
        text = self.source.segment(name)
        if (known := self._text(name)) is not None:
            return _Choice(((None, f"{prefix}.{known}"),)) if _has_rule(f"{full}.{known}") else None
        named = dict.fromkeys(one for one in self._strings() if _has_rule(f"{full}.{one}"))
        if not named:
            return None
        branches = tuple((f'{text} == "{one}"', f"{prefix}.{one}") for one in named)
        error = f'raise ValueError(f"no branch for {{{text}}}")' if '"' not in text else f"raise ValueError({text})"
        return _Choice(branches, error, NAMED.format(", ".join(named)))

    def _package(self, node: ast.expr) -> tuple[str, str] | None:
        """How a package is named, and which it is: ``optim``, or ``import_module("torch.optim")``."""
        match node:
            case ast.Name() | ast.Attribute():
                fact = self.inference.fact(node)
                known = isinstance(fact, Qual) and _is_package(fact.name)
                return (self.source.segment(node), fact.name) if isinstance(fact, Qual) and known else None
            case ast.Call(args=[ast.Constant(value=str() as name)], func=ast.Name() | ast.Attribute() as func):
                fact = self.inference.fact(func)
                imports = isinstance(fact, Qual) and fact.name == "importlib.import_module"
                return (name, name) if imports and _is_package(name) and self._has_torch() else None
        return None

    def _has_torch(self) -> bool:
        imports = (a for n in self.source.nodes if isinstance(n, ast.Import) for a in n.names)
        return any(a.name.partition(".")[0] == "torch" and a.asname is None for a in imports)

    def _of_table(self, node: ast.expr) -> _Choice | None:
        """``{"adam": torch.optim.Adam, "sgd": torch.optim.SGD}[name]``, also under a name."""
        match node:
            case ast.Subscript(value=table, slice=key) if only_reads(key):
                pass
            case _:
                return None
        if isinstance(table, ast.Name) and (stored := self.only_value(table)) is not None:
            if not all(map(self._is_looked_up, self.source.names[table.id])):
                return None
            table = stored.value
        if not isinstance(table, ast.Dict) or not table.keys or not all(map(self._is_class, table.values)):
            return None
        branches = []
        for one, cls in zip(table.keys, table.values, strict=True):
            if not isinstance(one, ast.Constant):
                return None
            branches.append((f"{self.source.segment(key)} == {self.source.segment(one)}", self.source.segment(cls)))
        return _Choice(tuple(branches), f"raise KeyError({self.source.segment(key)})")

    def _of_condition(self, node: ast.expr) -> _Choice | None:
        """``(torch.optim.Adam if adam else torch.optim.SGD)``."""
        match node:
            case ast.IfExp(test=test, body=first, orelse=second) if self._is_class(first) and self._is_class(second):
                segment = self.source.segment
                return _Choice(((segment(test), segment(first)), (None, segment(second))))
        return None

    def _is_looked_up(self, name: ast.Name) -> bool:
        """Whether a use of a dict leaves it as it is."""
        match self.parents.get(name):
            case ast.Subscript(ctx=ast.Load()) | ast.Compare() | ast.Attribute(attr="keys" | "items" | "values"):
                return True
        return not isinstance(name.ctx, ast.Load)

    def _is_class(self, node: ast.expr) -> bool:
        fact = self.inference.fact(node)
        return isinstance(fact, Qual) and _has_rule(fact.name)

    def _is_read_once(self, name: ast.Name) -> bool:
        return sum(isinstance(n.ctx, ast.Load) for n in self.source.names[name.id]) == 1

    def _text(self, node: ast.expr) -> str | None:
        """The text that a name surely is."""
        if isinstance(node, ast.Name) and (stored := self.only_value(node)) is not None:
            node = stored.value
        return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None

    def _strings(self) -> Iterator[str]:
        for node in self.source.nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def _has_rule(name: str) -> bool:
    """Whether it is a class of optimizers or schedules that converts."""
    rule, known = REGISTRY.get(name), CLASSES.get(name, TorchClass()).fact
    is_one = isinstance(known, Object) and known.kind in _KINDS
    return is_one and rule is not None and rule.emit is not None


def _is_package(name: str) -> bool:
    """Whether such classes are imported from a package."""
    return any(one.rpartition(".")[0] == name and _has_rule(one) for one in CLASSES)
