"""A text is read as whoever keeps it would read it: does each name mean something, does each call fit?

What fails in a conversion and not in its source is a defect of the converter, or code that two of its passes saw
differently. Either way nobody may take it for converted: it becomes a gap at the statement that it came from.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection, Iterable, Sequence
from itertools import takewhile
from typing import TypeVar

from pyflakes import checker, messages

from t2j_lsp import symbols
from t2j_lsp.contract import Severity, SourceMapEntry
from t2j_lsp.symbols import imported, with_ancestors
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.scope import CurrentStatement
from t2j_lsp.translate.source.text import Source

from .assignment import scope_name, unassigned
from .hidden_builtins import NAMES, hidden_calls
from .own_calls import misfits
from .problem import Problem, keys

_FAIL = (
    messages.UndefinedName,
    messages.DuplicateArgument,
    messages.ReturnOutsideFunction,
    messages.YieldOutsideFunction,
    messages.ContinueOutsideLoop,
    messages.BreakOutsideLoop,
    messages.DefaultExceptNotLast,
    messages.TwoStarredExpressions,
)
"""The messages about code that fails when it runs and that `assignment` doesn't see; the others are about taste."""


def problems(code: ast.Module) -> list[Problem]:
    """What fails in a text when it runs, as far as the text alone tells."""
    nodes = list(symbols.walk(code))
    early = unassigned(code) if reads_what_it_assigns(code, nodes) else []
    seen = {(p.line, p.name) for p in early}
    return [
        *early,
        *(p for p in undefined(code) if (p.line, p.name) not in seen),
        *(misfits(code) if _calls_its_own(nodes) else ()),
    ]


def reads_what_it_assigns(code: ast.Module, nodes: Iterable[ast.AST]) -> bool:
    """Whether any name is read that something else binds than a parameter or an import at the head of the text.

    Those are bound before anything is read. Where a name is assigned or deleted, no more is asked.
    """
    head = set(takewhile(lambda node: isinstance(node, ast.Import | ast.ImportFrom), _behind_docstring(code)))
    bound: set[str] = set()
    read: set[str] = set()
    for node in nodes:
        match node:
            case ast.Name(ctx=ast.Load()):
                read.add(node.id)
            case ast.Name() | ast.ExceptHandler() | ast.pattern():
                return True
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                bound.add(node.name)
            case ast.Import() | ast.ImportFrom() if node not in head:
                bound |= {name for name, _ in imported(node)}
    return not bound.isdisjoint(read)


def _behind_docstring(code: ast.Module) -> list[ast.stmt]:
    return code.body[1:] if ast.get_docstring(code, clean=False) is not None else code.body


def _calls_its_own(nodes: Sequence[ast.AST]) -> bool:
    """Whether a text calls anything that it defines."""
    defined = {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    called = (n.func for n in nodes if isinstance(n, ast.Call))
    return any(getattr(f, "id", getattr(f, "attr", None)) in defined for f in called)


def undefined(tree: ast.Module) -> list[Problem]:
    """Names that no scope binds."""
    problems = []
    for message in checker.Checker(tree, "<text>").messages:
        if isinstance(message, _FAIL):
            name = str(message.message_args[0]) if message.message_args else type(message).__name__
            problems.append(Problem(message.lineno, (), name, True, message.message % message.message_args))
    return problems


def new_problems(code: ast.Module, source: ast.Module) -> list[Problem]:
    """What fails in a converted text and does not in its source."""
    current = problems(code)
    if not current:
        return []
    before = keys(problems(source))
    current = [p for p in current if not p.is_also_in(before)]
    moved = _callers_of_new_functions(code, source) if current else {}
    failing = (
        p for p in current if not any(p.moved_from(path).is_also_in(before) for path in moved.get(p.scope[:1], ()))
    )
    return sorted(failing, key=lambda p: (p.line, p.name, p.reason))


def _callers_of_new_functions(code: ast.Module, source: ast.Module) -> dict[tuple[str, ...], set[tuple[str, ...]]]:
    """The scopes that call the functions which a conversion has made of their statements."""
    own = {n.name for n in symbols.walk(source) if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    made = {n.name for n in code.body if isinstance(n, ast.FunctionDef) and n.name not in own}
    callers: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    waiting: list[tuple[ast.AST, tuple[str, ...]]] = [(code, ())]
    while waiting:
        node, path = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            path = (*path, scope_name(node))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in made:
            callers.setdefault((node.func.id,), set()).add(path)
        waiting += [(child, path) for child in symbols.children(node)]
    return callers


def report_problems(
    context: Context, output: ast.Module, source_map: Sequence[SourceMapEntry], copied: Collection[str]
) -> bool:
    """Report what fails in the output; whether there was something that no finding covers.

    Args:
        context: the conversion.
        output: its text's tree, with helpers and imports.
        source_map: which statement of the source each of its lines came from.
        copied: the names of the helpers in it, which are as they always are.
    """
    code, source = _without_bodies(output, copied), context.source
    introduced = new_problems(code, source.tree)
    introduced += hidden_calls(code, source.tree) if _binds_names_of_python(source.nodes) else []
    reported = False
    for problem in introduced:
        statement = _statement(context.source, problem.line, source_map)
        if statement is None or _is_declared(context, statement):
            continue
        reason = f"t2j wrote code here that fails: {problem.reason}. Please report it with this statement"
        saved, context.scope.statement = context.scope.statement, CurrentStatement(statement)
        context.report.gap(statement, problem.name, "defect", reason)
        context.scope.statement = saved
        reported = True
    return reported


def _binds_names_of_python(nodes: Iterable[ast.AST]) -> bool:
    """Whether anything among the nodes of a text binds a name that Python has a function for."""
    return any(
        n.id in NAMES and not isinstance(n.ctx, ast.Load)
        if isinstance(n, ast.Name)
        else isinstance(n, ast.arg) and n.arg in NAMES
        for n in nodes
    )


def _without_bodies(output: ast.Module, copied: Collection[str]) -> ast.Module:
    """The text with what its helpers can be called with, and not what they do."""
    body: list[ast.stmt] = []
    for node in output.body:
        match node:
            case ast.FunctionDef(name=name) if name in copied:
                body.append(_stub(node))
            case ast.ClassDef(name=name) if name in copied:
                methods: list[ast.stmt] = [_stub(s) for s in node.body if isinstance(s, ast.FunctionDef)]
                body.append(_with_body(node, methods or [_PASS]))
            case _:
                body.append(node)
    return ast.Module(body, [])


_PASS = ast.Pass(lineno=1, col_offset=0)
Definition = TypeVar("Definition", ast.FunctionDef, ast.ClassDef)


def _stub(node: ast.FunctionDef) -> ast.FunctionDef:
    return _with_body(node, [_PASS])


def _with_body(node: Definition, body: list[ast.stmt]) -> Definition:
    """A copy, so that it has all fields that the interpreter's version of the node has."""
    copied = copy.copy(node)
    copied.body = body
    return copied


def _statement(source: Source, line: int, source_map: Sequence[SourceMapEntry]) -> ast.stmt | None:
    """The innermost statement of the source that a line of the output came from, or the one before it."""
    around = [e for e in source_map if e.line <= line <= e.end_line]
    if around:
        entry = min(around, key=lambda e: (e.end_line - e.line, e.source_end_line - e.source_line))
    else:
        entry = max((e for e in source_map if e.line <= line), key=lambda e: e.line, default=source_map[0])
    statements = [n for n in source.nodes if isinstance(n, ast.stmt) and n.lineno == entry.source_line]
    return min(statements, key=lambda n: abs((n.end_lineno or n.lineno) - entry.source_end_line), default=None)


def _is_declared(context: Context, statement: ast.stmt) -> bool:
    """Whether a finding says already that the statement, or one around it, is not converted."""
    source = context.source
    if any(isinstance(at, ast.stmt) and source.is_marked(at) for at in with_ancestors(statement, source.parents)):
        return True
    return any(
        f.severity is Severity.GAP and f.span.line <= statement.lineno <= f.span.end_line
        for f in context.report.findings
    )
