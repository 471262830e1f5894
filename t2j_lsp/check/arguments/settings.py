"""Settings objects: a parameter without a type of which attributes are read: ``config`` in ``Linear(config.width, 4)``.

It is a class of the file that has these attributes and asks for nothing, or a namespace of values that their names
suggest. The same parameter goes from class to class, so that all that the file reads of it is there.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

from t2j_lsp.check.inputs import Code
from t2j_lsp.check.program.names import number_for, value_for
from t2j_lsp.check.program.scopes import ModuleScope, read_scope

_ACTIVATION = re.compile(r"(\w+_)?act(ivation)?(_fn|_func|_function)?|nonlinearity")
_NAME = '"gelu"'
"""What an activation is called in settings."""


class FileSettings:
    """What a file reads of parameters, and its classes that could be settings."""

    def __init__(self, scope: ModuleScope) -> None:
        self._scope = scope
        self.functions = {n.name: n for n in scope.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)}
        """The file's functions by name."""
        tree = ast.Module(scope.body, [])
        self._called = {n.func for n in ast.walk(tree) if isinstance(n, ast.Call)}
        self._tested = {one for n in ast.walk(tree) for one in _tested(n)}
        self._reads: dict[str, list[ast.Attribute]] = {}
        for owner, attribute in _reads(tree):
            self._reads.setdefault(owner, []).append(attribute)
        self._made = {n.name: _made_without_arguments(n) for n in scope.body if isinstance(n, ast.ClassDef)}

    def instance(self, name: str, node: ast.AST) -> Code | None:
        """An instance, with all defaults, of the one class that has whatever a class reads of a parameter."""
        read = {attribute.attr for owner, attribute in _reads(node) if owner == name}
        fits = [kind for kind, made in self._made.items() if read <= made]
        return Code(f"{fits[0]}()") if read and len(fits) == 1 else None

    def namespace(self, name: str, node: ast.AST, equal: int | None) -> Code | None:
        """A namespace with what the file reads of a parameter; None where it is no settings object.

        With ``equal``, all numbers of channels and features are that one.
        """
        if all(owner != name for owner, _ in _reads(node)):
            return None
        values: dict[str, str] = {}
        for attribute in self._reads[name]:
            if attribute in self._called:
                return None
            if _ACTIVATION.fullmatch(attribute.attr):
                values[attribute.attr] = _NAME
            elif attribute in self._tested and number_for(attribute.attr) is None:
                values[attribute.attr] = "False"
            elif attribute.attr not in values:
                value = value_for(attribute.attr, None, self._scope, equal)
                values[attribute.attr] = value.text if isinstance(value, Code) else repr(value)
        return Code(f"__import__('types').SimpleNamespace({', '.join(f'{k}={v}' for k, v in values.items())})")


@lru_cache(maxsize=16)
def settings_in(text: str, path: str) -> FileSettings:
    """The settings of a file, which is looked through once for all its classes. Raises SourceError."""
    return FileSettings(read_scope(text, path))


def _reads(tree: ast.AST) -> Iterator[tuple[str, ast.Attribute]]:
    """Where attributes of a name are read, or of ``self``'s attribute of that name."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(ast.Name(owner) | ast.Attribute(ast.Name("self"), owner), _, ast.Load()):
                yield owner, node


def _tested(node: ast.AST) -> list[ast.expr]:
    """The expressions that only their truth matters of."""
    match node:
        case ast.If(test) | ast.IfExp(test) | ast.While(test) | ast.UnaryOp(ast.Not(), test):
            return [test]
        case ast.BoolOp(values=values):
            return values
    return []


def _made_without_arguments(node: ast.ClassDef) -> set[str]:
    """The attributes of a class, where its constructor needs nothing; none where it does."""
    names: set[str] = set()
    dataclass = any("dataclass" in ast.unparse(d) for d in node.decorator_list)
    for statement in node.body:
        match statement:
            case ast.AnnAssign(ast.Name(name), value=value):
                if dataclass and value is None:
                    return set()
                names |= {name} if value is not None else set()
            case ast.Assign(targets):
                names |= {target.id for target in targets if isinstance(target, ast.Name)}
            case ast.FunctionDef("__init__"):
                arguments = statement.args
                without = len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)
                if without > 1 or any(default is None for default in arguments.kw_defaults):
                    return set()
                names |= {t.attr for t in ast.walk(statement) if isinstance(t, ast.Attribute) and _is_own(t)}
    return names


def _is_own(node: ast.Attribute) -> bool:
    """Whether an attribute of ``self`` is assigned to."""
    return isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name) and node.value.id == "self"
