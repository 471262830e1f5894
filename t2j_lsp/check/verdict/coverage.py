"""What the verdict on a file covers: which of the code that was converted ran on both sides, by the marks in it.

Converted is what holds torch code, and what has another text in the conversion: definitions, branches in them, and
statements at the top level. Code without torch that is the same on both sides, or that the conversion does without,
need not run; nor need ``get_inputs`` and ``get_init_inputs``, which the check takes its inputs from.
"""

from __future__ import annotations

import ast
import hashlib
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from t2j_lsp.check.program.frames import training_code
from t2j_lsp.check.program.marks import Kind, Mark, branches, top_level
from t2j_lsp.check.program.objects import find_objects
from t2j_lsp.check.program.slice import Slicer
from t2j_lsp.contract import Coverage, ObjectVerdict, Uncovered, UncoveredKind, VerdictKind
from t2j_lsp.files.outline import outline, torch_names
from t2j_lsp.symbols import bindings

SCRIPT = "<script>"
_INPUTS = frozenset({"get_inputs", "get_init_inputs"})
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class CoveredPiece:
    """A definition, a branch or a top-level statement. ``key`` stays the same when the file changes elsewhere."""

    key: str
    name: str
    kind: UncoveredKind
    mark: tuple[Kind, int]
    line: int
    end_line: int
    texts: tuple[str, ...]
    """Its statements in a form that spaces and comments don't change."""
    torch: bool
    branches: tuple[CoveredPiece, ...] = field(default=())

    @property
    def place(self) -> Uncovered:
        return Uncovered(self.name, self.kind, self.line, self.end_line)


class Covered:
    """What of two files has to run, and what did."""

    def __init__(self, torch: Slicer, jax: Slicer) -> None:
        self.torch_side, self.jax_side = torch, jax
        self.pieces = list(_pieces(torch))
        self.others: dict[str, list[CoveredPiece]] = {}
        for piece in _pieces(jax):
            self.others.setdefault(piece.name, []).append(piece)
        self.script = {text for piece in self.others.get(SCRIPT, ()) for text in piece.texts}
        self.bound = {name for text in self.script for name in _stored(ast.parse(text))}
        self.torch_values = {piece.name for piece in self.pieces if piece.torch and piece.kind != "script"}
        """Names of definitions that hold torch code, and of top-level variables made with torch or with these."""
        for text in (t for p in self.pieces if p.kind == "script" for t in p.texts if self._holds_torch(p)):
            self.torch_values |= _stored(ast.parse(text))

    def ran(self, torch: Collection[Mark], jax: Collection[Mark]) -> tuple[str, ...]:
        """The keys of what ran in torch, and in JAX as far as that has something of the same name."""
        torch_marks, jax_marks = _in_file(torch, self.torch_side), _in_file(jax, self.jax_side)
        covered: list[str] = []
        for piece in self.pieces:
            named = [other for other in self.others.get(piece.name, ()) if other.kind != "script"]
            if piece.mark not in torch_marks or (named and not any(other.mark in jax_marks for other in named)):
                continue
            covered += [piece.key, *(branch.key for branch in piece.branches if branch.mark in torch_marks)]
        return tuple(covered)

    def coverage(self, verdicts: Mapping[str, VerdictKind], ran: Collection[str]) -> Coverage:
        """What verdicts on the file's objects cover, of which this ran."""
        counts: dict[bool, dict[str, int]] = {True: {}, False: {}}
        objects = find_objects(self.torch_side, None)
        for item in objects:
            kind = str(verdicts.get(item.name, VerdictKind.UNCHECKED))
            counts[item.is_class][kind] = counts[item.is_class].get(kind, 0) + 1
        # That these did not run, or not as they should, is their own verdict.
        said = {item.name for item in objects if verdicts.get(item.name) is not VerdictKind.EQUIVALENT}
        due = [p for p in self.pieces if self._is_converted(p) and p.name.partition(".")[0] not in said]
        trains = training_code(self.torch_side.scope)
        due += [p for p in self.pieces if p not in due and p.name in {one.name for one in trains} - {SCRIPT}]
        not_run = [piece for piece in due if piece.key not in ran]
        parts = [b for p in due if p.key in ran for b in self._branches(p, ran)]
        return Coverage(
            counts[True],
            counts[False],
            tuple(_places(self.pieces, due, not_run, {item.name for item in objects})),
            tuple(branch.place for branch in parts),
            tuple(trains),
            tuple(_marked_places(self.jax_side.text)),
        )

    def _is_converted(self, piece: CoveredPiece) -> bool:
        if piece.name in _INPUTS:
            return False
        if piece.kind == "script":
            return self._is_converted_statement(piece)
        others = self.others.get(piece.name, ())
        return piece.torch or any(other.texts != piece.texts for other in others)

    def _holds_torch(self, piece: CoveredPiece) -> bool:
        """Whether a top-level statement has to do with torch."""
        nodes = (n for text in piece.texts for n in ast.walk(ast.parse(text)))
        return piece.torch or any(isinstance(n, ast.Name) and n.id in self.torch_values for n in nodes)

    def _is_converted_statement(self, piece: CoveredPiece) -> bool:
        """Whether a top-level statement has to run: not where it is the same without torch, or was dropped."""
        (text,) = piece.texts
        if (text in self.script and not piece.torch) or not self._holds_torch(piece):
            return False
        match ast.parse(text).body[0]:
            case ast.Assign(targets):
                return any(isinstance(n, ast.Name) and n.id in self.bound for t in targets for n in ast.walk(t))
        return True

    def _branches(self, piece: CoveredPiece, ran: Collection[str]) -> Iterator[CoveredPiece]:
        """The converted branches of a piece that did not run, without those inside them."""
        last = 0
        same = {b.texts for o in self.others.get(piece.name, ()) for b in o.branches}
        for branch in piece.branches:
            if branch.key not in ran and branch.line > last and (branch.torch or branch.texts not in same):
                last = branch.end_line
                yield branch


def decided_by(verdicts: Iterable[ObjectVerdict]) -> tuple[dict[str, VerdictKind], set[str]]:
    """The verdicts by name, and what ran for those that say something about what ran."""
    listed = list(verdicts)
    decided = (v for v in listed if v.verdict is not VerdictKind.UNCHECKED)
    return {v.name: v.verdict for v in listed}, {key for v in decided for key in v.ran}


def _places(
    pieces: list[CoveredPiece], due: list[CoveredPiece], not_run: list[CoveredPiece], objects: Collection[str]
) -> Iterator[Uncovered]:
    """What did not run, as it is told: a class as one where none of it did, and the script as one."""
    classes = {p.name: p for p in pieces if p.kind == "class"}
    whole = {
        name
        for name in classes
        if name not in objects and all(p in not_run for p in due if p.name.partition(".")[0] == name)
    }
    reported: set[str] = set()
    for piece in not_run:
        owner = piece.name.partition(".")[0]
        if piece.kind == "script":
            continue
        if owner not in whole:
            if piece.kind != "class":
                yield piece.place
        elif owner not in reported:
            reported.add(owner)
            yield classes[owner].place
    for inside, group in itertools.groupby(pieces, lambda p: p.kind == "script" and p in not_run):
        lines = [line for p in group for line in (p.line, p.end_line)]
        if inside:
            yield Uncovered(SCRIPT, "script", lines[0], lines[-1])


def _stored(tree: ast.AST) -> set[str]:
    """What a text assigns to."""
    return {name for name, node in bindings([tree]) if isinstance(node, ast.Name)}


def _marked_places(text: str) -> Iterator[int]:
    """The lines of marks for what was left as PyTorch, the first of those above one statement."""
    lines = [line for line, _ in outline(text, definitions=False).gaps]
    yield from (line for line in lines if line - 1 not in lines)


def _in_file(marks: Collection[Mark], side: Slicer) -> set[tuple[Kind, int]]:
    return {(kind, line) for path, kind, line in marks if path == str(side.path)}


def _pieces(side: Slicer) -> Iterator[CoveredPiece]:
    names, every = torch_names(ast.Module(side.scope.body, []))

    def holds_torch(nodes: Iterable[ast.AST]) -> bool:
        nodes_within = (n for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name))
        return every or any(n.id in names for n in nodes_within)

    def define(node: _Function | ast.ClassDef, prefix: str) -> Iterator[CoveredPiece]:
        name = f"{prefix}{node.name}"
        called = name.replace(".__call__", ".forward")
        mark: tuple[Kind, int] = ("definition", node.lineno)
        end = node.end_lineno or node.lineno
        if isinstance(node, ast.ClassDef):
            own = [s for s in node.body if not isinstance(s, _Function | ast.ClassDef)]
            head = [*node.bases, *node.keywords, *node.decorator_list, *own]
            texts = tuple(ast.unparse(part) for part in head)
            yield CoveredPiece(name, called, "class", mark, node.lineno, end, texts, holds_torch(head))
            for statement in node.body:
                if isinstance(statement, _Function | ast.ClassDef):
                    yield from define(statement, f"{name}.")
            return
        parts = tuple(
            CoveredPiece(
                f"{name}+{body[0].lineno - node.lineno}",
                called,
                "branch",
                ("branch", body[0].lineno),
                body[0].lineno,
                body[-1].end_lineno or body[-1].lineno,
                tuple(map(ast.unparse, body)),
                holds_torch(body),
            )
            for body in branches(node)
        )
        texts = ast.unparse(node.args), *map(ast.unparse, _without_text(node.body))
        kind: UncoveredKind = "method" if prefix else "function"
        yield CoveredPiece(name, called, kind, mark, node.lineno, end, texts, holds_torch([node]), parts)

    for statement in top_level(side.scope.body):
        if isinstance(statement, _Function | ast.ClassDef):
            yield from define(statement, "")
        elif not isinstance(statement, ast.Import | ast.ImportFrom) and _without_text([statement]):
            text = ast.unparse(statement)
            key = f"{SCRIPT} {hashlib.sha256(text.encode()).hexdigest()[:16]}"
            lines = statement.lineno, statement.end_lineno or statement.lineno
            at: tuple[Kind, int] = ("statement", statement.lineno)
            yield CoveredPiece(key, SCRIPT, "script", at, *lines, (text,), holds_torch([statement]))


def _without_text(body: list[ast.stmt]) -> list[ast.stmt]:
    return [s for s in body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
