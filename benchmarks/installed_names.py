"""Names and arguments of jax, flax and optax in a converted file, against the packages that are installed."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

PACKAGES = frozenset({"jax", "flax", "optax", "orbax"})


def unknown_names(code: str) -> list[str]:
    """What a text names of the packages that they don't have, and calls that a signature doesn't take."""
    return list(dict.fromkeys(_unknown(ast.parse(code.removeprefix("\ufeff")))))


def _unknown(tree: ast.Module) -> Iterator[str]:
    names: dict[str, Any] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from _import(node, names)
    for name in _rebound(tree):
        names.pop(name, None)
    for node in ast.walk(tree):
        try:
            if isinstance(node, ast.Attribute):
                _meaning(node, names)
            elif isinstance(node, ast.Call) and callable(function := _meaning(node.func, names)):
                _bind(node, function)
        except (AttributeError, TypeError) as error:
            yield f"{ast.unparse(node.func if isinstance(node, ast.Call) else node)}: {error}"


def _import(node: ast.Import | ast.ImportFrom, names: dict[str, Any]) -> Iterator[str]:
    """Add what an import of the packages binds; what can't be imported."""
    module = getattr(node, "module", None)
    for alias in node.names:
        path = f"{module}.{alias.name}" if module is not None else alias.name
        if getattr(node, "level", 0) or path.partition(".")[0] not in PACKAGES or alias.name == "*":
            continue
        try:
            if module is not None:
                names[alias.asname or alias.name] = _member(module, alias.name)
            else:
                imported = importlib.import_module(path)
                root = path.partition(".")[0]
                names[alias.asname or root] = imported if alias.asname else importlib.import_module(root)
        except ImportError as error:
            yield f"import of {path}: {error}"


def _member(module: str, name: str) -> Any:
    holder = importlib.import_module(module)
    return getattr(holder, name) if hasattr(holder, name) else importlib.import_module(f"{module}.{name}")


def _rebound(tree: ast.Module) -> Iterator[str]:
    """Names that the file itself binds somewhere."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                yield name
            case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name


def _meaning(node: ast.expr, names: dict[str, Any]) -> Any:
    """What a dotted name of the packages is; None for anything else. Raises AttributeError where it isn't there."""
    match node:
        case ast.Name(id=name):
            return names.get(name)
        case ast.Attribute(value=value, attr=attribute):
            owner = _meaning(value, names)
            return getattr(owner, attribute) if inspect.ismodule(owner) or inspect.isclass(owner) else None
        case _:
            return None


def _bind(node: ast.Call, function: Callable[..., Any]) -> None:
    """Raises TypeError where a call doesn't suit the signature; one that spreads arguments may always."""
    if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
        return
    instance = []
    if inspect.isclass(function) and inspect.isfunction(function.__init__):
        # What nnx's metaclass takes is anything; the constructor knows better.
        function, instance = function.__init__, [None]
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # it has none that Python knows
    signature.bind(*instance, *node.args, **{k.arg: k.value for k in node.keywords if k.arg is not None})
