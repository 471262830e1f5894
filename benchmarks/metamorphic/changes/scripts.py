"""Scripts as a whole: moved into a main() or a class, and out of them."""

from __future__ import annotations

import ast
import random

import libcst as cst
import libcst.matchers as m

from benchmarks.metamorphic.blocks import (
    Statement,
    Uses,
    is_guard,
    parsed,
    read_by_definitions,
    tail,
    variables,
)
from benchmarks.metamorphic.change import change
from benchmarks.metamorphic.changes.programs import SPACE
from benchmarks.metamorphic.source import Source


def _split(source: Source) -> tuple[list[Statement], list[Statement]]:
    """What a module has before it runs, and the statements that it runs behind its last definition."""
    body = [s for s in source.module.body if isinstance(s, cst.BaseStatement)]
    place = tail(body)
    return body[:place], body[place:]


def _indented(statements: list[Statement]) -> cst.IndentedBlock:
    first, *others = statements
    lines = [e for e in getattr(first, "leading_lines", ()) if e.comment is not None]
    return cst.IndentedBlock([first.with_changes(leading_lines=lines), *others])


def _guarded(statements: list[Statement]) -> cst.BaseStatement:
    (guard,) = parsed('if __name__ == "__main__":\n    pass\n')
    return guard.with_changes(body=_indented(statements), leading_lines=SPACE)


@change("guard added", programs=True)
def guard_added(source: Source, rng: random.Random) -> cst.Module:
    """What a script runs under if __name__ == "__main__"."""
    before, after = _split(source)
    if not after or any(is_guard(s) for s in after):
        return source.module
    return source.module.with_changes(body=[*before, _guarded(after)])


@change("guard removed", programs=True)
def guard_removed(source: Source, rng: random.Random) -> cst.Module:
    """What stands under if __name__ == "__main__" at the module's level."""
    body: list[Statement] = []
    for statement in source.module.body:
        assert isinstance(statement, cst.BaseStatement)
        if isinstance(statement, cst.If) and is_guard(statement) and isinstance(statement.body, cst.IndentedBlock):
            body += statement.body.body
        else:
            body.append(statement)
    return source.module.with_changes(body=body)


@change("a script moved into main()", programs=True)
def script_into_main(source: Source, rng: random.Random) -> cst.Module:
    """What a script runs as a function main(), called under a guard."""
    before, after = _split(source)
    stored = set(Uses(cst.Module(after).code).stored)
    if not after or any(is_guard(s) for s in after) or stored & read_by_definitions(source) or "main" in source.words:
        return source.module
    main = cst.FunctionDef(cst.Name("main"), cst.Parameters(), _indented(after), leading_lines=SPACE)
    return source.module.with_changes(body=[*before, main, _guarded(parsed("main()\n"))])


@change("main() moved out", programs=True)
def main_moved_out(source: Source, rng: random.Random) -> cst.Module:
    """The body of main() where it is called."""
    body = [s for s in source.module.body if isinstance(s, cst.BaseStatement)]
    main = next((s for s in body if isinstance(s, cst.FunctionDef) and s.name.value == "main"), None)
    plain = main is not None and isinstance(main.body, cst.IndentedBlock) and not main.params.params
    if main is None or not plain or main.decorators or m.findall(main, m.Return() | m.Global()):
        return source.module
    stored = set(Uses(cst.Module(list(main.body.body)).code).stored)  # type: ignore[arg-type]
    rest = Source(source.module.with_changes(body=[s for s in body if s is not main]).code)
    if stored & (read_by_definitions(rest) | variables(rest.module)):
        return source.module
    call = m.SimpleStatementLine([m.Expr(m.Call(func=m.Name("main"), args=[]))])
    out: list[Statement] = []
    for statement in body:
        if statement is main:
            continue
        if (
            m.matches(statement, call)
            or is_guard(statement)
            and m.matches(statement, m.If(body=m.IndentedBlock([call])))
        ):
            out += main.body.body  # type: ignore[arg-type]
        else:
            out.append(statement)
    return source.module.with_changes(body=out)


def _counted(statements: list[Statement]) -> set[str]:
    """The variables of loops."""
    loops = [n for n in ast.walk(ast.parse(cst.Module(statements).code)) if isinstance(n, ast.For)]
    return {n.id for loop in loops for n in ast.walk(loop.target) if isinstance(n, ast.Name)}


class _Attributes(cst.CSTTransformer):
    """Variables as attributes of ``self``."""

    def __init__(self, names: set[str]) -> None:
        self.names = names
        self.other: set[cst.CSTNode] = set()

    def visit_Attribute(self, node: cst.Attribute) -> None:
        self.other.add(node.attr)

    def visit_Arg(self, node: cst.Arg) -> None:
        if node.keyword is not None:
            self.other.add(node.keyword)

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        if original_node in self.other or original_node.value not in self.names:
            return updated_node
        return cst.Attribute(cst.Name("self"), updated_node)


@change("a script moved into a class", programs=True)
def script_into_class(source: Source, rng: random.Random) -> cst.Module:
    """Class Experiment, with what a script makes before its first loop in itself, and a method run()."""
    before, after = _split(source)
    if len(after) == 1 and is_guard(after[0]) and isinstance(after[0], cst.If):
        after = list(after[0].body.body) if isinstance(after[0].body, cst.IndentedBlock) else []
    first = next((i for i, s in enumerate(after) if isinstance(s, cst.For | cst.While)), 0)
    code = cst.Module(after).code
    uses = Uses(code)
    inner = m.FunctionDef() | m.ClassDef() | m.Lambda() | m.Global() | m.Import() | m.ImportFrom()
    if not first or set(uses.stored) & read_by_definitions(source) or any(m.findall(s, inner) for s in after):
        return source.module
    setup, rest = after[:first], after[first:]
    names = set(Uses(cst.Module(setup).code).stored) - uses.own - _counted(rest)
    targets = _Attributes(names)
    name = source.fresh("Experiment")
    text = f"class {name}:\n    def __init__(self):\n        pass\n\n    def run(self):\n        pass\n"
    (made,) = parsed(text)
    assert isinstance(made, cst.ClassDef)
    blocks = [_indented([s.visit(targets) for s in part]) for part in (setup, rest)]  # type: ignore[misc]
    methods = [method.with_changes(body=block) for method, block in zip(made.body.body, blocks, strict=True)]
    made = made.with_changes(body=made.body.with_changes(body=methods), leading_lines=SPACE)
    return source.module.with_changes(body=[*before, made, _guarded(parsed(f"{name}().run()\n"))])
