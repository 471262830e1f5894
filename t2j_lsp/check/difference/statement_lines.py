"""Which line of a text assigns a name: the twin of a line of the other program, and where an attribute is set."""

from __future__ import annotations

import ast


def twin(text: str, line: int, other: str) -> int | None:
    """The line of ``other`` that assigns what ``line`` of ``text`` does, in the function of the same name.

    Where a function assigns to a name several times, the same of these times.
    """
    assignments, others = _assignments(text), _assignments(other)
    key = next((k for k, n in assignments if n == line), None)
    if key is None:
        return None
    number = [n for k, n in assignments if k == key].index(line)
    lines = [n for k, n in others if k == key]
    return lines[number] if number < len(lines) else None


def assignment(text: str, target: str, owner: str = "") -> int | None:
    """The line that gives an attribute its value: in the class ``owner``, in a base of it, or anywhere.

    Where that is an empty container, the line that first appends to it.
    """
    classes = {n.name: n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.ClassDef)}
    todo, best = [owner], None
    while todo and best is None:
        node = classes.get(todo.pop(0))
        if node is not None:
            best = _assigned(node, target)
            todo += [base.id for base in node.bases if isinstance(base, ast.Name)]
    return best if best is not None else _assigned(ast.parse(text), target)


def _assigned(tree: ast.AST, target: str) -> int | None:
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if isinstance(node, ast.Assign | ast.AnnAssign) and any(t and ast.unparse(t) == target for t in targets):
            empty = isinstance(node.value, ast.List | ast.Dict | ast.Call) and not any(ast.iter_child_nodes(node.value))
            bare = (
                isinstance(node.value, ast.Call)
                and (not node.value.args or ast.unparse(node.value.args[0]) in ("[]", "()"))
                and not node.value.keywords
            )
            return (_appended(tree, target) if empty or bare else None) or node.lineno
    return None


def _appended(tree: ast.AST, target: str) -> int | None:
    for node in ast.walk(tree):
        match node:
            case ast.Expr(ast.Call(ast.Attribute(owner, "append" | "add_module" | "extend"))):
                if ast.unparse(owner) == target:
                    return node.lineno
    return None


def _assignments(text: str) -> list[tuple[tuple[str, str], int]]:
    assigned: list[tuple[tuple[str, str], int]] = []

    def walk(node: ast.AST, names: tuple[str, ...]) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                name = "__call__" if child.name == "forward" else child.name
                assigned.append(((".".join(names), f"def {name}"), child.lineno))
                walk(child, (*names, name))
            elif isinstance(child, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Return):
                targets = child.targets if isinstance(child, ast.Assign) else [getattr(child, "target", None)]
                shown = ", ".join("return" if t is None else ast.unparse(t) for t in targets)
                assigned.append(((".".join(names), shown), child.lineno))
            else:
                walk(child, names)

    walk(ast.parse(text), ())
    return assigned
