"""What became of each place of a source: its own JAX form, or what stands where its statement stood. For hovers.

A place without a JAX form of its own is a call of an optimizer, a decorator, a ``with`` block, an operator that writes
in place. Its outcome is what stands in the output where the statement around it stood.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from textwrap import dedent

from t2j_lsp import symbols
from t2j_lsp.contract import Finding, Outcome, Rewrite, Severity, SourceMapEntry, Span
from t2j_lsp.symbols import nearest
from t2j_lsp.translate.expressions.backward import differentiates
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.render import Renderer
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import is_module
from t2j_lsp.translate.rule.facts import Object, Qual, Tensor
from t2j_lsp.translate.rule.library import class_of
from t2j_lsp.translate.rule.names import is_torch
from t2j_lsp.translate.source.positions import header_end
from t2j_lsp.translate.source.text import Edit, Source, in_order
from t2j_lsp.translate.statements.module_statements import is_super_init

_LINE_BREAK = re.compile(r"\r\n|\r|\n")
COMPILED = -900
"""Priority below which an insertion is a compiled function, and no line of the statement that it stands above."""
MODULE = "torch.nn.Module"
MODULE_METHODS = frozenset(
    ("train", "eval", "apply", "zero_grad", "requires_grad_", "to", "cuda", "cpu", "double", "half")
)
INDEXING, ELEMENTS, IN_PLACE = "indexing", "assignment to elements", "operator that writes in place"


class Outcomes:
    """The places of one source, and the lines of the output that tell what became of each.

    Made before the output's long lines are broken; ``entries`` follow them through that, and ``read`` takes the texts.
    """

    def __init__(self, context: Context, own: frozenset[Edit], output: ast.Module) -> None:
        self.ctx = context
        self.source = context.source
        self._lay_out(own)
        self.steps = _steps(output, set(context.plan.train_steps.values()))
        self.places = list(places(context.inference))
        self._differs: dict[tuple[int, int], bool] = {}
        lines: dict[tuple[int, int], SourceMapEntry | None] = {}
        for part in dict.fromkeys(part for place in self.places for part in (place.range, place.head)):
            lines[part] = self._lines(*part)
        self._looked_for = [*lines, *self.steps]
        known = [*lines.values(), *self.steps.values()]
        self._present = [entry is not None for entry in known]
        self.entries = [entry for entry in known if entry is not None]

    # --- from the source to the output ----------------------------------------------------------------------------

    def _lay_out(self, own: frozenset[Edit]) -> None:
        """Where each edit is in the output."""
        self.edits: list[Edit] = []
        self.targets: list[tuple[int, int]] = []
        position = length = 0
        out: list[str] = []
        for edit in in_order(self.ctx.edits.made):
            if edit.start < position:
                continue
            out += [self.source.text[position : edit.start], edit.new]
            length += edit.start - position
            self.edits.append(edit)
            self.targets.append((length, length + len(edit.new)))
            length += len(edit.new)
            position = edit.end
        self.text = "".join([*out, self.source.text[position:]])
        self.breaks = [0] + [m.end() for m in _LINE_BREAK.finditer(self.text)]
        self.begins = [e.start for e in self.edits]
        self.foreign = [e not in own or e.priority < COMPILED for e in self.edits]

    def _lines(self, start: int, end: int) -> SourceMapEntry | None:
        """The lines of the output that stand for a part of the source; None where nothing does."""
        begin, stop = self._moved(start, False), self._moved(end, True)
        at = bisect_left(self.begins, start)
        if at and self.edits[at - 1].end > start:
            at -= 1
        for index in range(at, bisect_right(self.begins, end)):
            edit = self.edits[index]
            overlaps = edit.end > start and edit.start < end
            if overlaps or edit.start == edit.end and not self.foreign[index]:
                begin, stop = min(begin, self.targets[index][0]), max(stop, self.targets[index][1])
        text = self.text[begin:stop]
        if text.strip() in ("", "pass") and self.source.text[start:end].strip() != "pass":
            return None
        begin += len(text) - len(text.lstrip())
        stop -= len(text) - len(text.rstrip())
        first, last = self.source.line_of(start), self.source.line_of(max(start, end - 1))
        return SourceMapEntry(first, last, self._line(begin), self._line(max(begin, stop - 1)))

    def _moved(self, index: int, ends: bool) -> int:
        """An index of the source in the output: behind what is inserted there, or in front of it where it ends."""
        at = (bisect_left if ends else bisect_right)(self.begins, index)
        if not at:
            return index
        edit, (start, end) = self.edits[at - 1], self.targets[at - 1]
        if edit.end > index:
            return end if ends else start
        return end + index - edit.end

    def _line(self, index: int) -> int:
        return bisect_right(self.breaks, index)

    # --- reading --------------------------------------------------------------------------------------------------

    def read(
        self,
        code: str,
        source_map: Sequence[SourceMapEntry],
        entries: Iterable[SourceMapEntry],
        findings: Sequence[Finding],
        rewritten: Sequence[Rewrite],
    ) -> tuple[tuple[Rewrite, ...], tuple[Outcome, ...]]:
        """The rewrites, with whether the output has them, and the outcomes in order of place.

        ``entries`` are those of this object as they are after long lines were broken, in the same order.
        """
        lines = _LINE_BREAK.split(code)
        left = iter(entries)
        texts: dict[object, str] = {
            key: _text(lines, next(left)) if present else ""
            for key, present in zip(self._looked_for, self._present, strict=True)
        }
        forms = _with_written(rewritten, lines, source_map)
        known = {one.span for one in forms if one.written}
        gaps = _Reasons([f for f in findings if f.severity is Severity.GAP])
        out = [self._outcome(place, texts, gaps) for place in self.places if place.span not in known]
        return tuple(forms), tuple(sorted(out, key=lambda o: (o.span.line, o.span.column, -o.span.end_line)))

    def _outcome(self, place: Place, texts: dict[object, str], gaps: _Reasons) -> Outcome:
        step = self._step(place.statement)
        if f"def {step}" in texts:
            return Outcome(place.span, place.name, "converted", texts[step], step=texts[f"def {step}"])
        code = texts[place.range]
        if not texts[place.head]:
            return Outcome(place.span, place.name, "removed", code)
        start, end = place.range
        if self._changed(start, end, code):
            return Outcome(place.span, place.name, "converted", code)
        reason = gaps.covering(place.span)
        return Outcome(place.span, place.name, "left" if reason else "kept", code, reason)

    def _changed(self, start: int, end: int, code: str) -> bool:
        """Whether the statement there is written otherwise now; many places may be in one."""
        if (start, end) not in self._differs:
            self._differs[start, end] = plain(code) != plain(self.source.text[start:end])
        return self._differs[start, end]

    def _step(self, statement: ast.AST) -> str:
        """The name of the compiled function that a statement moved into; empty if it didn't."""
        place: ast.AST | None = statement
        while isinstance(place, ast.stmt):
            if place in self.ctx.plan.train_steps:
                return self.ctx.plan.train_steps[place]
            place = self.ctx.source.parents.get(place)
        return ""


def _with_written(
    rewritten: Iterable[Rewrite], lines: Sequence[str], source_map: Iterable[SourceMapEntry]
) -> list[Rewrite]:
    """The rewrites, each with whether the output has its text: looked for from where its statement stands."""
    parts = [plain(line) for line in lines]
    starts = [0, *accumulate(map(len, parts))]
    everything = "".join(parts)
    places = {entry.source_line: entry.line for entry in source_map}
    out = []
    for one in rewritten:
        text = plain(one.jax or "")
        near = max(0, places.get(one.span.line, 1) - 8)
        written = bool(text) and (everything.find(text, starts[near]) >= 0 or text in everything)
        out.append(replace(one, written=written))
    return out


_MARK = re.compile(r"^\s*# TODO\(t2j\).*$", re.MULTILINE)
_FORM = str.maketrans("", "", " \t\r\n\f,")


def plain(code: str) -> str:
    """Code without what breaking its lines changes, white space and commas, and without marks of gaps."""
    return (_MARK.sub("", code) if "TODO(t2j)" in code else code).translate(_FORM)


def _text(lines: Sequence[str], entry: SourceMapEntry) -> str:
    return dedent("\n".join(lines[entry.line - 1 : entry.end_line])).strip("\n")


class _Reasons:
    """The reasons of gaps, to be asked for by place."""

    def __init__(self, gaps: Sequence[Finding]) -> None:
        self._gaps = sorted(gaps, key=lambda f: (f.span.line, f.span.column))
        self._starts = [(f.span.line, f.span.column) for f in self._gaps]
        self._reach = list(accumulate(((f.span.end_line, f.span.end_column) for f in self._gaps), max))

    def covering(self, span: Span) -> str:
        """The reason of the first gap that holds a place; empty where none does."""
        first = bisect_left(self._reach, (span.end_line, span.end_column))
        return self._gaps[first].reason if first < bisect_right(self._starts, (span.line, span.column)) else ""


def _steps(output: ast.Module, names: set[str]) -> dict[str, SourceMapEntry | None]:
    """The lines of each compiled function, as ``def name``, and those of the first statement that calls it."""
    steps: dict[str, SourceMapEntry | None] = {}
    if not names:
        return steps
    for node in output.body:
        if isinstance(node, ast.FunctionDef) and node.name in names:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            steps[f"def {node.name}"] = SourceMapEntry(0, 0, first, node.end_lineno or first)
    for inner in symbols.walk(output):
        if isinstance(inner, ast.Assign | ast.Expr) and isinstance(call := inner.value, ast.Call):
            name = call.func.id if isinstance(call.func, ast.Name) else ""
            if name in names:
                steps.setdefault(name, SourceMapEntry(0, 0, inner.lineno, inner.end_lineno or inner.lineno))
    return {key: entry for key, entry in steps.items() if key.removeprefix("def ") in steps}


# --- the places -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """A node with its name, and the statement around it."""

    span: Span
    name: str
    statement: ast.stmt
    range: tuple[int, int]
    """The part of the source whose output tells what became of it."""
    head: tuple[int, int]
    """The part that is gone from the output where the place is."""


def places(inference: Inference) -> Iterator[Place]:
    """Every place of what is converted of a source."""
    for node in inference.source.written_nodes:
        if isinstance(node, ast.expr | ast.Assign | ast.AugAssign) and node.lineno:
            name = _name(inference, node)
            place = _place(inference.source, node, name) if name is not None else None
            if place is not None:
                yield place


def rewrites(context: Context, renderer: Renderer) -> tuple[Rewrite, ...]:
    """The torch expressions of the source and their JAX text, in order of place, the outer one first."""
    collected: list[Rewrite] = []
    for node, piece in renderer.rendered.items():
        name = _rewritten_name(context.inference, node) if getattr(node, "lineno", 0) else None
        if name is None:
            continue
        start, end = context.source.span(node)
        changed = piece.text if piece.text != context.source.text[start:end] else None
        if changed is not None or isinstance(node, ast.Call):
            last = node in context.plan.layout.natural or node in context.plan.layout.wanted
            collected.append(Rewrite(context.source.contract_span(node), name, changed, last))
    return tuple(sorted(collected, key=lambda r: (r.span.line, r.span.column, -r.span.end_line, -r.span.end_column)))


def _rewritten_name(inference: Inference, node: ast.expr) -> str | None:
    """``torch.cat`` for a call of it, ``torch.Tensor.view`` for a method of a tensor; None for what is not torch's."""
    target = node.func if isinstance(node, ast.Call) else node
    fact = inference.fact(target)
    if isinstance(fact, Qual):
        return fact.name if is_torch(fact.name) else None
    if isinstance(target, ast.Attribute) and isinstance(inference.fact(target.value), Tensor):
        return f"torch.Tensor.{target.attr}"
    return None


def _name(inference: Inference, node: ast.expr | ast.stmt) -> str | None:
    """What a place is called: a torch name or a word; None for a node that is no place."""
    match node:
        case ast.Call():
            return _call_name(inference, node)
        case ast.Attribute() | ast.Name():
            parent = inference.source.parents.get(node)
            if isinstance(parent, ast.Attribute) or isinstance(parent, ast.Call) and parent.func is node:
                return None
            return _torch_name(inference, node)
        case ast.Subscript(ctx=ast.Load()) if isinstance(inference.fact(node.value), Tensor):
            return INDEXING
        case ast.Assign() if any(_writes_elements(inference, t) for t in node.targets):
            return ELEMENTS
        case ast.AugAssign() if isinstance(inference.fact(node.target), Tensor) or _writes_elements(
            inference, node.target
        ):
            return IN_PLACE
    return None


def _writes_elements(inference: Inference, target: ast.expr) -> bool:
    return isinstance(target, ast.Subscript) and isinstance(inference.fact(target.value), Tensor)


def _torch_name(inference: Inference, node: ast.expr) -> str | None:
    fact = inference.fact(node)
    return fact.name if isinstance(fact, Qual) and is_torch(fact.name) else None


def _call_name(inference: Inference, node: ast.Call) -> str | None:
    func = node.func
    if not isinstance(func, ast.Attribute):
        return _torch_name(inference, func)
    if func.attr == "backward" and differentiates(inference, node):
        return "torch.Tensor.backward"
    owner = inference.fact(func.value)
    if isinstance(owner, Object) and (known := class_of(owner.kind)) is not None:
        return f"{known}.{func.attr}"
    if isinstance(owner, Tensor):
        return f"torch.Tensor.{func.attr}"
    if is_module(owner) and func.attr in MODULE_METHODS:
        return f"{MODULE}.{func.attr}"
    if func.attr == "__init__" and is_super_init(node) and _in_module(inference, node):
        return f"{MODULE}.__init__"
    return _torch_name(inference, func)


def _in_module(inference: Inference, node: ast.AST) -> bool:
    around = nearest(ast.ClassDef, node, inference.source.parents)
    info = inference.classes.get(around) if around is not None else None
    return info is not None and info.is_module


def _place(source: Source, node: ast.expr | ast.stmt, name: str) -> Place | None:
    """The place of a node; None in parts of a statement that stand between its blocks."""
    child: ast.AST = node
    owner: ast.AST = node
    while not isinstance(owner, ast.stmt):
        child, owner = owner, source.parents[owner]
        if isinstance(owner, ast.excepthandler | ast.match_case):
            return None
    span = source.contract_span(node)
    decorators: list[ast.expr] = getattr(owner, "decorator_list", [])
    first = min([owner.lineno, *(d.lineno for d in decorators)])
    if not hasattr(owner, "body"):
        part = _simple(source, owner)
        return Place(span, name, owner, part, part)
    head = _from_lines(source, first, header_end(owner))
    if child in decorators:
        at = source.concrete.decorators[source.span(child)[0]]
        line = source.line_of(at)
        span = Span(line, at - source.starts[line - 1], span.end_line, span.end_column)
        return Place(span, name, owner, head, _from_lines(source, line, span.end_line))
    if isinstance(owner, ast.With | ast.AsyncWith):
        return Place(span, name, owner, _from_lines(source, first, owner.end_lineno or first), head)
    return Place(span, name, owner, head, head)


def _simple(source: Source, node: ast.stmt) -> tuple[int, int]:
    """A statement with the rest of its lines, where it has these for itself."""
    start, end = source.span(node)
    last = node.end_lineno or node.lineno
    whole = _from_lines(source, node.lineno, last)
    rest = source.text[end : whole[1]].lstrip()
    return whole if source.starts_line(node) and (not rest or rest.startswith("#")) else (start, end)


def _from_lines(source: Source, first: int, last: int) -> tuple[int, int]:
    return source.starts[first - 1], source.starts[last - 1] + len(source.line_text(last))
