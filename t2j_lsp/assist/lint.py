"""What is looked at before an answer is run: it parses, imports only what it may, and names only what exists."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator

from t2j_lsp.contract import T2JError
from t2j_lsp.symbols import bound_as

ALLOWED = frozenset({"jax", "flax", "optax", "numpy"})
PLAIN = frozenset({
    "__future__", "collections", "copy", "dataclasses", "enum", "functools", "itertools", "math", "operator", "typing",
})  # fmt: skip
"""Modules of the standard library that compute and hold, and reach nothing outside."""
_REACHING = frozenset({
    "open", "eval", "exec", "compile", "__import__", "input", "breakpoint", "globals", "vars", "getattr", "setattr",
    "delattr",
})  # fmt: skip
_ROOTS = ("jax", "flax", "optax")

_RESOLVE = """
import importlib, inspect, json, sys
def find(name):
    parts = name.split(".")
    value, used = importlib.import_module(parts[0]), 1
    for index, part in enumerate(parts[1:], 2):
        try:
            value = getattr(value, part)
        except AttributeError:
            try:
                value = importlib.import_module(".".join(parts[:index]))
            except ImportError:
                return None, ".".join(parts[:index - 1]) + f" has no {part!r}"
    return value, ""
answers = {}
for name in json.load(sys.stdin):
    value, problem = find(name)
    known = None
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        pass
    else:
        if not any(p.kind is p.VAR_KEYWORD for p in parameters):
            known = [p.name for p in parameters if p.kind is not p.POSITIONAL_ONLY]
    answers[name] = problem, known
json.dump(answers, sys.stdout)
"""
_looked_up: dict[tuple[str, str], tuple[str, list[str] | None]] = {}
"""What an interpreter said of a name: what is wrong with it, and the keywords it takes, or None for any.

Importing jax, flax and optax takes seconds, and the answers of one model use much the same names.
"""


def problems(added: str, code: str, known: frozenset[str] = frozenset(), python: str | None = None) -> list[str]:
    """What is wrong with an answer, in words for the model that wrote it; empty where it can be run.

    Args:
        added: the code that the model wrote.
        code: the whole program with it.
        known: other modules that the program imported before.
        python: the interpreter with jax, flax and optax, which looks the names up; this one by default.
    """
    try:
        tree = ast.parse(code)
    except SyntaxError as error:
        return [f"line {error.lineno}: it is no Python: {error.msg}"]
    try:
        own = ast.parse(added)
    except SyntaxError as error:
        return [f"it is no Python: {error.msg}"]
    issues = [*_forbidden(own, known)]
    return issues or _unknown_names(tree, own, python or sys.executable)


def _forbidden(tree: ast.Module, known: frozenset[str]) -> Iterator[str]:
    allowed = ALLOWED | PLAIN | known
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                others = (alias.name for alias in names if alias.name.split(".")[0] not in allowed)
                yield from (f"it imports {name}, which it may not" for name in others)
            case ast.ImportFrom(module=module, level=0) if (module or "").split(".")[0] not in allowed:
                yield f"it imports from {module}, which it may not"
            case ast.Name(id="torch"):
                yield "it still uses torch"
            case ast.Name(id=name, ctx=ast.Load()) if name in _REACHING:
                yield f"it uses {name}, which it may not"
            case ast.Attribute(attr=name) if name.startswith("__") and name.endswith("__") and name != "__init__":
                yield f"it uses {name}, which it may not"
            case _:
                pass


def _unknown_names(tree: ast.Module, own: ast.Module, python: str) -> list[str]:
    """Names of jax, flax and optax, and keywords of their functions, that the installed versions do not have."""
    aliases: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.split(".")[0]
                aliases |= {alias.asname: alias.name} if alias.asname else {top: top}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            aliases |= {bound_as(alias): f"{node.module}.{alias.name}" for alias in node.names}
    asked: dict[str, set[str]] = {}
    for node in ast.walk(own):
        for expression, keywords in _read(node):
            name = _full_name(expression, aliases)
            if name.split(".")[0] in _ROOTS:
                asked.setdefault(name, set()).update(keywords)
    _look_up(sorted(name for name in asked if (python, name) not in _looked_up), python)
    wrong: list[str] = []
    for name, given in sorted(asked.items()):
        problem, known = _looked_up[python, name]
        unknown = sorted(given.difference(known)) if known is not None else ()
        wrong += [problem] if problem else [f"{name}() has no parameter {one!r}" for one in unknown]
    return wrong


def _look_up(names: list[str], python: str) -> None:
    """Have an interpreter say what it knows of some names. Raises T2JError."""
    if not names:
        return
    try:
        answer = subprocess.run(
            [python, "-I", "-c", _RESOLVE],
            input=json.dumps(names),
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise T2JError(f"{python} can't look up names of jax, flax and optax: {error}") from error
    _looked_up.update(
        {(python, name): (problem, known) for name, (problem, known) in json.loads(answer.stdout).items()}
    )


def _read(node: ast.AST) -> Iterator[tuple[ast.expr, list[str]]]:
    if isinstance(node, ast.Call):
        yield node.func, [k.arg for k in node.keywords if k.arg]
    elif isinstance(node, ast.Attribute):
        yield node, []


def _full_name(node: ast.expr, aliases: dict[str, str]) -> str:
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in aliases:
        return ""
    return ".".join([aliases[node.id], *reversed(parts)])
