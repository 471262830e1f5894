"""The functions and the script of a file, each with the statements that stand in it, for cutting pieces out of them."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from t2j_lsp.contract import NotRun
from t2j_lsp.symbols import bound_as

from .scopes import ModuleScope
from .trimming import is_main_guard

RETURNED = "t2j_returned"
"""The name of what a function makes and returns at once."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Frame:
    """A function (by its dotted name; empty for the script) with its statements, those of its loops among them."""

    name: str
    function: Function | None
    owner: str
    statements: list[ast.stmt]

    def assignments(self) -> Iterator[tuple[int, str, ast.Call]]:
        """Where a call's value gets a name, also under a condition: statement, name and call."""
        for index, statement in enumerate(self.statements):
            for node in ast.walk(statement):
                match node:
                    case ast.Assign([ast.Name(name)], value) | ast.AnnAssign(ast.Name(name), value=value):
                        if isinstance(value, ast.Call):
                            yield index, name, value


def frames(body: Sequence[ast.stmt], prefix: str = "", owner: str = "") -> Iterator[Frame]:
    """The functions of a file, those of its classes among them, and then the script."""
    for statement in body:
        if isinstance(statement, Function):
            yield Frame(prefix + statement.name, statement, owner, list(_opened(statement.body)))
        elif isinstance(statement, ast.ClassDef) and not prefix:
            own = any("Module" in ast.unparse(base) for base in statement.bases)
            inner = statement.body if own else [_Own().visit(copy.deepcopy(s)) for s in statement.body]
            yield from frames(inner, f"{statement.name}.", statement.name)
    if not prefix:
        kept = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
        yield Frame("", None, "", [s for s in _opened(body) if not isinstance(s, kept)])


def training_code(scope: ModuleScope) -> list[NotRun]:
    """The functions and methods that compute gradients, and the script (``<script>``) if it does."""
    reasons = []
    for frame in frames(scope.body):
        line = next((s.lineno for s in frame.statements if calls_method(s, "backward")), None)
        if line is not None:
            reasons.append(NotRun(frame.name or "<script>", frame.function.lineno if frame.function else line))
    return reasons


class _Own(ast.NodeTransformer):
    """Makes variables of the attributes that an object keeps: ``self.optimizer`` is ``self_optimizer``."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        match node.value:
            case ast.Name("self"):
                return ast.copy_location(ast.Name(f"self_{node.attr}", node.ctx), node)
        return self.generic_visit(node)


def _opened(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements, with those inside loops that train and inside ``if __name__``; other compound ones stay whole.

    What is made and returned at once gets a name.
    """
    for statement in body:
        inner = getattr(statement, "body", None)
        if (
            inner
            and not isinstance(statement, Function | ast.ClassDef)
            and (_trains(statement) or is_main_guard(statement))
        ):
            yield from _opened(inner)
        elif isinstance(statement, ast.Return) and isinstance(statement.value, ast.Call):
            named = ast.Assign([ast.Name(RETURNED, ast.Store())], statement.value)
            yield ast.fix_missing_locations(ast.copy_location(named, statement))
        else:
            yield statement


def _trains(statement: ast.stmt) -> bool:
    """Whether a statement holds a training step."""
    return calls_method(statement, "backward", "step")


def calls_method(node: ast.AST, *methods: str, owner: str = "") -> bool:
    """Whether a method of one of these names is called, of the variable ``owner`` if it is given."""
    functions = [n.func for n in ast.walk(node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
    return any(
        f.attr in methods and (not owner or ast.unparse(f.value).replace("self.", "self_") == owner)
        for f in functions if isinstance(f, ast.Attribute)
    )  # fmt: skip


class Imported:
    """The dotted names that a file's own names stand for."""

    def __init__(self, scope: ModuleScope) -> None:
        self.known: dict[str, str] = {}
        for node in (n for s in scope.body for n in ast.walk(s)):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.asname:
                        self.known[alias.asname] = alias.name
            elif isinstance(node, ast.ImportFrom) and not node.level:
                self.known |= {bound_as(a): f"{node.module}.{a.name}" for a in node.names}

    def dotted(self, node: ast.expr) -> str:
        """``torch.optim.SGD`` for ``optim.SGD``; empty for what is no name."""
        text = ast.unparse(node)
        first, _, rest = text.partition(".")
        if not text.replace(".", "").isidentifier():
            return ""
        first = self.known.get(first, first)
        return f"{first}.{rest}" if rest else first


def mentions(node: ast.AST, name: str) -> bool:
    """Whether a name is read or written anywhere in a node."""
    return any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(node))
