"""What of a statement runs in a slice: the imports of names that are needed, and no annotation that nothing reads."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from t2j_lsp import symbols
from t2j_lsp.symbols import bound_as

_Import = ast.Import | ast.ImportFrom
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def trimmed(statement: ast.stmt, names: Collection[str] | None) -> ast.stmt:
    """A statement as a slice runs it, changed in place. ``names`` are what it imports, and None is for all of them."""
    if isinstance(statement, _Import):
        if names is not None:
            _narrow(statement, names)
        return statement
    if names is not None:
        for inner in conditional_imports(statement):
            _narrow(inner, names)
        _without_empty(statement)
    for node in _unread(statement):
        _make_texts(node)
    return statement


def _narrow(statement: _Import, names: Collection[str]) -> None:
    """The import of just ``names``; a star becomes these names."""
    if statement.names[0].name == "*":
        statement.names = [ast.copy_location(ast.alias(n), statement.names[0]) for n in sorted(names)]
    else:
        statement.names = [a for a in statement.names if bound_as(a) in names]


def _without_empty(statement: ast.stmt) -> None:
    """Puts ``pass`` for the imports of nothing under an ``if``."""
    if isinstance(statement, ast.If):
        for body in (statement.body, statement.orelse):
            for index, inner in enumerate(body):
                if isinstance(inner, _Import) and not inner.names:
                    body[index] = ast.copy_location(ast.Pass(), inner)
                _without_empty(inner)


def is_main_guard(node: ast.AST) -> bool:
    """Whether a statement is ``if __name__ == "__main__"``."""
    return isinstance(node, ast.If) and any(isinstance(n, ast.Name) and n.id == "__name__" for n in ast.walk(node.test))


def conditional_imports(statement: ast.stmt) -> list[_Import]:
    """The imports under an ``if`` of the top level, where nothing but a condition decides of them.

    Each of their names can be left out where nothing needs it, unlike those that a ``try`` is to fail at.
    """
    if not isinstance(statement, ast.If) or is_main_guard(statement):
        return []
    imports: list[_Import] = []
    for inner in (*statement.body, *statement.orelse):
        if isinstance(inner, _Import) and inner.names[0].name != "*":
            imports.append(inner)
        imports += conditional_imports(inner)
    return imports


_NOT_READING = frozenset({"abstractmethod", "cache", "cached_property", "classmethod", "lru_cache", "no_grad"}) | {
    "property", "setter", "staticmethod",
}  # fmt: skip
"""Decorators that don't look at what they decorate."""


def reads_annotations(node: _Function | ast.ClassDef) -> bool:
    """Whether a decorator of a function or class may read annotations, as ``torch.jit.script`` or a dispatcher does.

    Where none does, those of parameters and results can stay text, as behind ``from __future__ import annotations``.
    """
    for decorator in node.decorator_list:
        called = symbols.called_decorator(decorator)
        last = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        if last not in _NOT_READING:
            return True
    return False


def _unread(node: ast.AST) -> Iterator[_Function]:
    """The functions whose annotations nothing reads."""
    if isinstance(node, _Function | ast.ClassDef) and reads_annotations(node):
        return
    if isinstance(node, _Function):
        yield node
    for inner in ast.iter_child_nodes(node):
        yield from _unread(inner)


def _make_texts(function: _Function) -> None:
    """Makes text of a function's annotations."""
    for holder, field in ((function, "returns"), *((a, "annotation") for a in ast.walk(function.args))):
        annotation = getattr(holder, field, None)
        if annotation is not None and not isinstance(annotation, ast.Constant):
            setattr(holder, field, ast.copy_location(ast.Constant(ast.unparse(annotation)), annotation))
