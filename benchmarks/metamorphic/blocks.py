"""Blocks of statements, those of the module among them, and what the names in a piece of code do."""

from __future__ import annotations

import ast
import symtable
from collections import Counter
from collections.abc import Iterable, Sequence

import libcst as cst
import libcst.matchers as m

from .source import Source

Statement = cst.BaseStatement
_NESTED = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef


def code_of(node: cst.CSTNode) -> str:
    """The text of a node."""
    return cst.Module([]).code_for_node(node)


def single(statement: cst.CSTNode) -> cst.BaseSmallStatement | None:
    """The only statement of a line."""
    return statement.body[0] if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1 else None


def line(small: cst.BaseSmallStatement, like: cst.CSTNode | None = None) -> cst.SimpleStatementLine:
    """A line of one statement, with the comments above another one."""
    return cst.SimpleStatementLine([small], leading_lines=getattr(like, "leading_lines", ()))


def parsed(text: str) -> list[Statement]:
    """The statements of a text."""
    return [s for s in cst.parse_module(text).body if isinstance(s, cst.BaseStatement)]


def small_statements(statement: cst.CSTNode) -> list[cst.BaseSmallStatement]:
    """The statements of a line or of a block on its head's line."""
    body = statement.body if isinstance(statement, cst.SimpleStatementLine | cst.SimpleStatementSuite) else ()
    return [s for s in body if isinstance(s, cst.BaseSmallStatement)]


class Blocks(cst.CSTTransformer):
    """Base of transforms of every block of statements outside of class bodies. ``functions`` are those around it."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.numbers: Counter[str] = Counter()
        self.functions: list[cst.FunctionDef] = []
        self.inside: list[cst.CSTNode] = []

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        self.functions.append(node)
        self.inside.append(node)
        return True

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.BaseStatement:
        self.functions.pop()
        self.inside.pop()
        return updated_node

    def visit_ClassDef(self, node: cst.ClassDef) -> bool:
        self.inside.append(node)
        return True

    def leave_ClassDef(self, original_node: cst.ClassDef, updated_node: cst.ClassDef) -> cst.ClassDef:
        self.inside.pop()
        return updated_node

    def fresh(self, stem: str) -> str:
        """A name that the text has nowhere, another one each time."""
        while True:
            self.numbers[stem] += 1
            number = self.numbers[stem]
            name = stem if number == 1 else f"{stem}_{number}"
            if self.source.fresh(name) == name:
                return name

    @property
    def scope(self) -> cst.CSTNode:
        """The function or module that the block's variables belong to."""
        return self.functions[-1] if self.functions else self.source.module

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        if self.inside and isinstance(self.inside[-1], cst.ClassDef):
            return updated_node
        body = self.block(list(updated_node.body))
        return updated_node.with_changes(body=body) if body else updated_node

    def leave_Module(self, original_node: cst.Module, updated_node: cst.Module) -> cst.Module:
        body = self.block([s for s in updated_node.body if isinstance(s, cst.BaseStatement)])
        return updated_node.with_changes(body=body)

    def block(self, body: list[Statement]) -> Sequence[Statement]:
        """The statements that take the place of a block's."""
        return [new for statement in body for new in self.statement(statement)]

    def statement(self, statement: Statement) -> Iterable[Statement]:
        """What takes the place of one statement."""
        raise NotImplementedError


def is_run(statement: cst.CSTNode) -> bool:
    """Whether a statement of a module does something other than to define or import."""
    if isinstance(statement, cst.FunctionDef | cst.ClassDef):
        return False
    small = small_statements(statement)
    head = cst.Import | cst.ImportFrom
    return not small or not all(
        isinstance(s, head) or isinstance(s, cst.Expr) and isinstance(s.value, cst.SimpleString) for s in small
    )


def is_guard(statement: cst.CSTNode) -> bool:
    """Whether a statement is ``if __name__ == "__main__":``."""
    return m.matches(statement, m.If(test=m.Comparison(left=m.Name("__name__"))))


def tail(body: Sequence[Statement]) -> int:
    """Where the statements begin that a module runs behind its last definition."""
    last = max((i for i, s in enumerate(body) if not is_run(s)), default=-1)
    return last + 1


class Uses(ast.NodeVisitor):
    """The variables that a piece of code reads and stores; those of inner functions and comprehensions are theirs."""

    def __init__(self, code: str) -> None:
        self.read: list[str] = []
        self.stored: list[str] = []
        self.own: set[str] = set()
        tree = ast.parse(code)
        self.visit(tree)
        names = set(self.stored)
        self.read = [n for n in dict.fromkeys(self.read) if n not in self.own or n in names]
        self.stored = list(dict.fromkeys(self.stored))

    def visit_Name(self, node: ast.Name) -> None:
        (self.read if isinstance(node.ctx, ast.Load) else self.stored).append(node.id)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.read.append(node.target.id)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self.own |= {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
        self.visit(node.iter)
        for test in node.ifs:
            self.visit(test)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.own |= {n.arg for n in ast.walk(node.args) if isinstance(n, ast.arg)}
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.stored.append(node.name)
        inner = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
        stored = {n.id for n in inner if isinstance(n.ctx, ast.Store)}
        stored |= {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)}
        self.read += [n.id for n in inner if isinstance(n.ctx, ast.Load) and n.id not in stored]

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.stored.append(node.name)
        self.read += [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]


def exposed(body: Sequence[ast.stmt], known: set[str]) -> list[str]:
    """The variables that statements read before they surely store them; ``known`` gets what they surely store."""
    names: list[str] = []
    for node in body:
        match node:
            case ast.For(target=target, iter=iterable, body=inner, orelse=[]):
                names += exposed([ast.Expr(iterable)], known)
                names += exposed(inner, known | {n.id for n in ast.walk(target) if isinstance(n, ast.Name)})
            case ast.While(test=test, body=inner, orelse=[]):
                names += [*exposed([ast.Expr(test)], known), *exposed(inner, set(known))]
            case ast.If(test=test, body=inner, orelse=other):
                branches = set(known), set(known)
                names += exposed([ast.Expr(test)], known)
                names += [*exposed(inner, branches[0]), *exposed(other, branches[1])]
                known |= branches[0] & branches[1]
            case ast.With(items=items, body=inner):
                names += exposed([ast.Expr(i.context_expr) for i in items], known)
                names += exposed(inner, known)
            case _:
                uses = Uses(ast.unparse(node))
                names += [n for n in uses.read if n not in known]
                known |= set(uses.stored) if isinstance(node, ast.Assign | ast.AnnAssign) else set()
    return list(dict.fromkeys(names))


def variables(scope: cst.CSTNode) -> set[str]:
    """The variables of a function or module that are no definitions and no imports."""
    tree = ast.parse(code_of(scope) if not isinstance(scope, cst.Module) else scope.code)
    body = tree.body[0] if isinstance(scope, cst.FunctionDef) else tree
    names: set[str] = set()
    defined: set[str] = set()
    queue: list[ast.AST] = list(ast.iter_child_nodes(body))
    while queue:
        node = queue.pop()
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                defined.add(name)
            case ast.Import() | ast.ImportFrom():
                defined |= {a.asname or a.name.partition(".")[0] for a in node.names}
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
        if not isinstance(node, _NESTED):
            queue += ast.iter_child_nodes(node)
    return names - defined


def bound_in(function: cst.FunctionDef) -> set[str]:
    """The names that a function binds: its parameters, variables, and what is defined in it."""
    tables = symtable.symtable(code_of(function), "<text>", "exec").get_children()
    own = (one for one in tables if isinstance(one, symtable.Function) and one.get_name() == function.name.value)
    return {name for table in own for name in table.get_locals()}


def read_by_definitions(source: Source) -> set[str]:
    """The module's names that its functions and classes read or give a value."""
    names: set[str] = set()
    queue = symtable.symtable(source.text, "<text>", "exec").get_children()
    while queue:
        table = queue.pop()
        names |= {s.get_name() for s in table.get_symbols() if s.is_global()}
        queue += table.get_children()
    return names
