"""Converts a part of a file in place: an expression, statements, or all that converts exactly.

Of the file's translation only the edits inside of the part are applied. What the new code names is added: imports
behind the file's imports, helpers behind those. A name that neither has is a reason to refuse.
"""

from __future__ import annotations

import ast
import builtins
import difflib
from collections.abc import Iterable
from dataclasses import replace

from t2j_lsp.contract import Finding, Severity, SourceError, SourceMapEntry, TextEdit, Translation, channels_last_of
from t2j_lsp.lsp.positions import content, split_lines
from t2j_lsp.symbols import bound_as, bound_names
from t2j_lsp.translate import Neighbours
from t2j_lsp.translate.output.wrap import wrap_long_lines

from .analyst import Added, Analyst, ProgramState, helper_import, line_of, line_starts, moved, options, pieces_of
from .intact import BOM, Intact, intact, translated, tree_of
from .model import ConversionRefused, ConversionScope, ConversionSettings, ConvertedPart, Hunk
from .units import Unit, closure, cut, groups, only

_BUILTINS = frozenset(dir(builtins)) | {"__file__", "__name__", "__doc__", "__class__"}


def convert_part(
    analyst: Analyst, key: str, text: str, settings: ConversionSettings, path: str | None, scope: ConversionScope
) -> ConvertedPart:
    """The hunks that convert one part of a text. Raises ConversionRefused with the reason, or SyntaxError."""
    state = analyst.last(key)
    known = state is not None and state.text == text and state.settings == settings and state.translation is not None
    if known and scope.kind != "exact" and state is not None and state.translation is not None:
        known = channels_last_of(state.translation.code) is None  # the classes of a part keep PyTorch's axes
    if scope.kind == "exact" or (known and state is not None):
        state = analyst.state(key, text, settings, path)
        if state.problem is not None:
            raise ConversionRefused(state.problem)
    else:
        state = _slice(text, settings, path, scope)
    translation, units, text = state.translation, state.units, state.made.text
    assert translation is not None
    if scope.kind == "exact" and state.made.problem is not None:
        raise ConversionRefused(state.made.problem)
    if scope.kind == "expression":
        edits, findings = _expression(translation, text, scope)
    elif scope.kind == "lines":
        edits, findings = _lines(translation, text, scope.first, scope.last)
    else:
        edits, findings = _exact(translation, text, units)
    if not edits:
        raise ConversionRefused(_why_not(findings))
    hunks = _hunks(state, edits)
    caveats = [f.message for f in findings if f.differs]
    if scope.kind == "lines":
        caveats += [f"it uses {name}, which is still PyTorch" for name in _still_torch(translation, units, scope)]
    helpers = _from_helper_module(hunks, path) if settings.helpers == "module" and path else ()
    return ConvertedPart(tuple(hunks), tuple(dict.fromkeys(caveats)), helpers)


def _from_helper_module(hunks: Iterable[Hunk], path: str) -> tuple[str, ...]:
    """The helpers that new lines import from the module beside the file."""
    start = f"from {helper_import(path)} import "
    lines = [line for hunk in hunks for line in hunk.lines if line.startswith(start)]
    return tuple(sorted({line.removeprefix(start).partition(" as ")[0] for line in lines}))


def _still_torch(translation: Translation, units: list[Unit], scope: ConversionScope) -> list[str]:
    """What the converted lines use of the file that would change as well, and is not among them."""
    pieces = list(pieces_of(translation, units))
    inside = {i for i, unit in enumerate(units) if unit.first <= scope.last and scope.first <= unit.last}
    used = {name for i in inside for name in units[i].about.loads}
    outside = [i for i in closure(units, inside) - inside if pieces[i].edited and not units[i].about.imports]
    return sorted(used & {name for i in outside for name in units[i].about.defines})


def _slice(text: str, settings: ConversionSettings, path: str | None, scope: ConversionScope) -> ProgramState:
    """A translation of what the scope needs: while the whole file's is not there yet."""
    made = intact(text, broken=True)
    lines = split_lines(made.text.removeprefix(BOM))
    units = cut(lines, made.tree, {})
    first, last = (scope.span.line, scope.span.end_line) if scope.span else (scope.first, scope.last)
    wanted = [i for i, unit in enumerate(units) if unit.first <= last and first <= unit.last]
    try:
        part = only(lines, units, closure(units, wanted))
        _, translation = translated(
            Intact(part, tree_of(part)), replace(options(settings, path), in_parts=True), Neighbours()
        )
    except SourceError as error:
        raise ConversionRefused(str(error)) from None
    return ProgramState(text, settings, made, units, [], translation)


def _expression(translation: Translation, text: str, scope: ConversionScope) -> tuple[list[TextEdit], list[Finding]]:
    span = scope.span
    assert span is not None
    bom = text.startswith(BOM)
    shift = {True: int(bom), False: 0}
    place = (span.line, span.column - shift[span.line == 1], span.end_line, span.end_column - shift[span.end_line == 1])
    for rewrite in translation.rewrites:
        s = rewrite.span
        if (s.line, s.column, s.end_line, s.end_column) == place:
            starts = line_starts(text)
            inside = [f for f in translation.findings if s <= f.span and f.span.end_line <= s.end_line]
            if rewrite.jax is None:
                raise ConversionRefused(_why_not([f for f in inside if f.span == s] or inside))
            start, end = starts[s.line - 1] + s.column, starts[s.end_line - 1] + s.end_column
            return [TextEdit(start, end, rewrite.jax)], inside
    raise ConversionRefused("there is no torch expression here any more")


def _lines(translation: Translation, text: str, first: int, last: int) -> tuple[list[TextEdit], list[Finding]]:
    starts = [*line_starts(text), len(text)]
    begin, end = starts[first - 1], starts[min(last, len(starts) - 1)]
    own = [edit for edit in translation.edits if not edit.head]
    inside = [e for e in moved(own, translation.source, text) if begin <= e.start and e.end <= end]
    inside = [e for e in inside if not (e.start == end and e.start == e.end)]
    return inside, [f for f in translation.findings if first <= f.span.line <= last]


def _exact(translation: Translation, text: str, units: list[Unit]) -> tuple[list[TextEdit], list[Finding]]:
    """The edits of every group of units in which nothing was found: half a group would not run."""
    pieces = list(pieces_of(translation, units))
    edits: list[TextEdit] = []
    left: list[Finding] = []
    for group in groups(units):
        findings = [f for i in group for f in pieces[i].findings if f.differs]
        left += findings
        if not findings:
            for index in sorted(group):
                edits += _lines(translation, text, units[index].first, units[index].last)[0]
    return edits, [] if edits else left


def _why_not(findings: Iterable[Finding]) -> str:
    findings = list(findings)
    gap = next((f for f in findings if f.severity is Severity.GAP), None) or next(iter(findings), None)
    return gap.message if gap is not None else "there is nothing to convert here"


def _added(state: ProgramState) -> Added:
    """What the conversion of the whole file adds at its top level."""
    if state.added is None:
        assert state.translation is not None
        state.added = _find_added(state.translation.code.removeprefix(BOM), state.units)
    return state.added


def _find_added(code: str, units: list[Unit]) -> Added:
    lines = split_lines(code)
    own = {name for unit in units for name in unit.about.defines}
    added = Added({}, {})
    for node in ast.parse(code).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            start = f"from {'.' * node.level}{node.module or ''} " if isinstance(node, ast.ImportFrom) else ""
            for alias in node.names:
                name = f"{alias.name} as {alias.asname}" if alias.asname else alias.name
                added.imports[bound_as(alias)] = f"{start}import {name}"
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign):
            for name in bound_names([node]) - own:
                first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
                added.definitions[name] = "".join(lines[first - 1 : node.end_lineno]).rstrip()
    return added


def _apply(text: str, edits: Iterable[TextEdit]) -> str:
    out: list[str] = []
    position = 0
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        out += [text[position : edit.start], edit.new]
        position = edit.end
    return "".join([*out, text[position:]])


def _hunks(state: ProgramState, edits: list[TextEdit]) -> list[Hunk]:
    """The lines that change, with what the new code needs, long lines broken."""
    bare = state.made.text.removeprefix(BOM)
    newline = "\r\n" if "\r\n" in bare else "\n"
    changed = _apply(bare, edits)
    try:
        tree = ast.parse(changed)
    except SyntaxError as error:
        raise ConversionRefused(
            f"the conversion of this part alone is not Python (line {error.lineno}: {error.msg})"
        ) from None
    # Only what is new is looked at again: in a long file, everything else takes longer than the conversion.
    units = cut(split_lines(changed), tree, {unit.text: unit.about for unit in state.units})
    edits = edits + _needed(bare, state.units, units, _added(state), newline)
    entries: list[SourceMapEntry] = []
    moved_by = 0
    for first, last, replaced in _regions(bare, edits):
        entries.append(SourceMapEntry(first, last, first + moved_by, first + moved_by + len(replaced) - 1))
        moved_by += len(replaced) - (last - first + 1)
    lines = split_lines(_apply(bare, edits))
    part = _without(lines, state.units, entries)
    part, entries = wrap_long_lines(part, bare, ast.parse(part), entries, newline)
    lines = [content(line) for line in split_lines(part)]
    return [Hunk(e.source_line, e.source_end_line, tuple(lines[e.line - 1 : e.end_line])) for e in entries]


def _without(lines: list[str], units: list[Unit], entries: list[SourceMapEntry]) -> str:
    """The new text with the units that no edit touches blank, so that the rest still parses."""
    blank: set[int] = set()
    for unit in units:
        if not any(e.source_line <= unit.last and unit.first <= e.source_end_line for e in entries):
            before = [e for e in entries if e.source_line <= unit.first]
            shift = before[-1].end_line - before[-1].source_end_line if before else 0
            blank.update(range(unit.first - 1 + shift, unit.last + shift))
    return "".join(line[len(line.rstrip("\r\n")) :] if i in blank else line for i, line in enumerate(lines))


def _regions(text: str, edits: Iterable[TextEdit]) -> list[tuple[int, int, list[str]]]:
    """The lines that edits touch, and what stands there afterwards."""
    starts = [*line_starts(text), len(text)]
    grouped: list[tuple[int, int, list[TextEdit]]] = []
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        first, last = line_of(starts[:-1], edit.start), line_of(starts[:-1], edit.end)
        if edit.start == edit.end == starts[first - 1] and edit.new.endswith(("\n", "\r")):
            # Whole lines in front of a line, which stays as it is.
            grouped.append((first, first - 1, [edit]))
            continue
        if grouped and first <= grouped[-1][1]:
            begin, end, members = grouped[-1]
            grouped[-1] = (begin, max(end, last), [*members, edit])
        else:
            grouped.append((first, last, [edit]))
    regions = []
    for first, last, members in grouped:
        begin = starts[first - 1]
        part = text[begin : max(begin, starts[last])]
        changed = _apply(part, [TextEdit(e.start - begin, e.end - begin, e.new) for e in members])
        lines = [content(line) for line in split_lines(changed)]
        if changed.endswith(("\r", "\n")):
            lines.pop()
        regions.append((first, last, lines))
    return regions


def _needed(text: str, old: list[Unit], new: list[Unit], added: Added, newline: str) -> list[TextEdit]:
    """Edits that put the imports and helpers in front of the code that the new text names and nothing binds."""
    before = _unbound(old)
    todo = sorted(_unbound(new) - before)
    seen: set[str] = set()
    imports: set[str] = set()
    blocks: set[str] = set()
    bound = {name for unit in new for name in unit.about.defines}
    while todo:
        name = todo.pop()
        if name in seen or name in bound:
            continue
        seen.add(name)
        if name in added.imports:
            imports.add(added.imports[name])
        elif name in added.definitions:
            blocks.add(name)
            block = added.definitions[name]
            todo += sorted(_unbound(cut(split_lines(block), ast.parse(block), {})))
        else:
            raise ConversionRefused(f"the new code needs {name}, which only the conversion of the whole file makes")
    # The order that the whole file's conversion has them in is one that works.
    ordered = [block for name, block in added.definitions.items() if name in blocks]
    head = "".join(f"{line}{newline}" for line in sorted(imports, key=lambda line: (line.startswith("from "), line)))
    tail = "".join(f"{newline}{newline}{block}{newline}" for block in dict.fromkeys(ordered))
    return [_inserted(text, old, head, tail, newline)] if head or tail else []


def _unbound(units: list[Unit]) -> set[str]:
    """The names that a program reads and nothing in it binds."""
    loads = {name for unit in units for name in unit.about.loads}
    return loads - {name for unit in units for name in unit.about.defines} - _BUILTINS


def _inserted(text: str, units: list[Unit], imports: str, blocks: str, newline: str) -> TextEdit:
    """An edit that puts imports, then definitions, behind the imports at the top of a text."""
    line = 0
    for index, unit in enumerate(units):
        docstring = index == 0 and unit.text.lstrip("rRuU").startswith(("'", '"'))
        if not unit.about.imports and not docstring:
            break
        line = unit.last
    starts = [*line_starts(text), len(text)]
    at = starts[min(line, len(starts) - 1)]
    lead = newline if at and not text[:at].endswith(("\n", "\r")) else ""
    return TextEdit(at, at, lead + imports + blocks + (newline if blocks else ""))


def restore(text: str, fresh: str, line: int) -> ConvertedPart:
    """The hunk around a line (from 1) of an edited conversion, as the rules write it, if there is one.

    The one statement where the rules have its counterpart, or else the lines around it that differ. Code that was not
    converted by the rules stays: theirs would not fit in.
    """
    old, new = split_lines(text), split_lines(fresh)
    edited, converted = (_Statements(part) for part in (text, fresh))
    statement = edited.around(line)
    match = converted.beside(edited, statement) if statement is not None else None
    if statement is not None and match is not None:
        lines = tuple(content(one) for one in new[match.lineno - 1 : match.end_lineno])
        known = tuple(content(one) for one in old[statement.lineno - 1 : statement.end_lineno])
        if lines != known:
            return ConvertedPart((Hunk(statement.lineno, statement.end_lineno or statement.lineno, lines),))
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    if matcher.ratio() < OWN:
        raise ConversionRefused("this file was not written by the rules, and theirs would not fit in")
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag != "equal" and a <= line - 1 < max(b, a + 1):
            lines = tuple(content(one) for one in new[c:d])
            if tag == "insert":
                return ConvertedPart((Hunk(a + 1, a, lines),))
            return ConvertedPart((Hunk(a + 1, b, lines),))
    raise ConversionRefused("the line is as the rules write it")


OWN = 0.6
"""The share of common lines below which a file is code of somebody's own, and no edited conversion."""


class _Statements:
    """The assignments and returns of a text by the function they are in and by what they assign."""

    def __init__(self, text: str) -> None:
        tree = tree_of(text)
        self.statements: dict[tuple[str, str], list[ast.stmt]] = {}
        self.keys: dict[ast.stmt, tuple[str, str]] = {}
        self._walk(tree, ())
        self.names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} | _BUILTINS
        self.names |= {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
        self.names |= {bound_as(n) for n in ast.walk(tree) if isinstance(n, ast.alias)}

    def _walk(self, node: ast.AST, names: tuple[str, ...]) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                self._walk(child, (*names, child.name))
            elif isinstance(child, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Return):
                targets = child.targets if isinstance(child, ast.Assign) else [getattr(child, "target", None)]
                key = ".".join(names), ", ".join("return" if t is None else ast.unparse(t) for t in targets)
                self.statements.setdefault(key, []).append(child)
                self.keys[child] = key
            else:
                self._walk(child, names)

    def around(self, line: int) -> ast.stmt | None:
        """The statement that a line (from 1) belongs to."""
        return next((s for s in self.keys if s.lineno <= line <= (s.end_lineno or s.lineno)), None)

    def beside(self, other: _Statements, statement: ast.stmt) -> ast.stmt | None:
        """The counterpart of another text's statement: where both have as many of that kind, and it would run there."""
        key = other.keys[statement]
        own, others = self.statements.get(key, []), other.statements[key]
        if len(own) != len(others):
            return None
        neighbour = own[others.index(statement)]
        reads = {n.id for n in ast.walk(neighbour) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        return neighbour if reads <= other.names else None
