"""Functions and classes by a name that is known when the program runs: ``globals()[name]()``, ``vars(nets)[name]()``.

What such a call may reach are the functions and classes of the namespace that can be called with its arguments: any
other would fail in PyTorch, too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp.symbols import ancestors, positional_parameters
from t2j_lsp.translate.rule.definitions import Class, ClassInfo, Function, FunctionInfo
from t2j_lsp.translate.rule.facts import Fact, Qual

from .file import Inference
from .gates import Gate

LOOKED_UP = Gate(words=frozenset({"globals", "__dict__", "vars", "getattr"}))
"""Functions that are called by a name that isn't written there."""


def looked_up(function: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """Where a name is looked up, and the name: of ``getattr(nets, name)``, ``globals()[name]``; None for others."""
    match function:
        case ast.Call(func=ast.Name(id="getattr"), args=[space, name, *_]):
            return space, name
        case ast.Subscript(value=ast.Attribute(value=space, attr="__dict__"), slice=name):
            return space, name
        case ast.Subscript(value=ast.Call(func=ast.Name(id="vars"), args=[space]), slice=name):
            return space, name
        case ast.Subscript(value=ast.Call(func=ast.Name(id="globals"), args=[]) as own, slice=name):
            return own, name
    return None


def note_looked_up(inference: Inference) -> None:
    """Note of each function what it may call by a name: it needs random numbers for them."""
    for node in inference.source.nodes if inference.has(LOOKED_UP) else ():
        if isinstance(node, ast.Call) and looked_up(node.func) is not None:
            around = ancestors(node, inference.source.parents)
            caller = next((inference.functions[one] for one in around if one in inference.functions), None)
            if caller is not None and not any(k.arg == "rngs" for k in node.keywords):
                caller.callees.update(reached(inference, node))


def reached(inference: Inference, node: ast.Call) -> list[FunctionInfo | ClassInfo]:
    """The functions and classes that a call may reach, of this file or of one of the project."""
    asked = looked_up(node.func)
    if asked is None:
        return []
    members = _members(inference, asked[0])
    if isinstance(asked[1], ast.Constant):
        members = ((name, fact) for name, fact in members if name == asked[1].value)
    infos = [fact.info for _, fact in members if isinstance(fact, Function | Class)]
    return [info for info in dict.fromkeys(infos) if _fits(node, info)]


def asks_for_rngs(info: FunctionInfo | ClassInfo) -> bool:
    """Whether a function or a class is called with ``rngs`` in JAX."""
    if isinstance(info, FunctionInfo):
        return info.takes_rngs
    init = info.method("__init__")
    return info.is_module or init is not None and init.takes_rngs


def _members(inference: Inference, space: ast.expr) -> Iterator[tuple[str, Fact]]:
    if isinstance(space, ast.Call):
        return _of_file(inference, set())
    fact = inference.fact(space)
    path = fact.name.lstrip(".") if isinstance(fact, Qual) else ""
    other = inference.file_of(len(fact.name) - len(path), path) if isinstance(fact, Qual) else None
    return _of_file(other, set()) if other is not None else iter(())


def _of_file(file: Inference, seen: set[Inference]) -> Iterator[tuple[str, Fact]]:
    """What the module level of a file binds, with what it imports everything of."""
    seen.add(file)
    file.ask_all()
    yield from file.env.items()
    for node in file.source.tree.body:
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            other = file.file_of(node.level, node.module or "")
            if other is not None and other not in seen:
                yield from _of_file(other, seen)


def _fits(call: ast.Call, info: FunctionInfo | ClassInfo) -> bool:
    """Whether a function or class can be called with these arguments, or may."""
    function = info if isinstance(info, FunctionInfo) else info.method("__init__")
    if function is None or any(isinstance(a, ast.Starred) for a in call.args):
        return True
    parameters = function.node.args
    plain = [a.arg for a in positional_parameters(function.node)][isinstance(info, ClassInfo) :]
    by_name = {k.arg for k in call.keywords}
    free = plain[: len(plain) - len(parameters.defaults)] if parameters.defaults else plain
    named = zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True)
    needed = {*free[len(call.args) :], *(a.arg for a, default in named if default is None)} - by_name - {"rngs"}
    known = {*plain[len(call.args) :], *(a.arg for a in parameters.kwonlyargs)}
    few = len(call.args) <= len(plain) or parameters.vararg is not None
    return few and (None in by_name or not needed) and (parameters.kwarg is not None or by_name <= {*known, None})
