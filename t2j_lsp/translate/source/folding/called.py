"""Parameters of methods that no call passes: of ``__call__``, where every call of an object of the class is seen.

An object is followed by the name or the attribute that it is assigned to. Where it goes anywhere else (into a list, to
a function), nothing is known of its calls.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Hashable, Iterable, Mapping, Sequence

from t2j_lsp.symbols import nearest, positional_parameters
from t2j_lsp.translate.source.assignments import assigned

from .arguments import decided, drop_arguments
from .constants import folded
from .definitions import nodes
from .docstrings import switched_off
from .inlining import expression_of, inlined
from .signatures import without_methods, without_parameters
from .uses import HelperCall, UseFinder

CALL = "__call__"
MOVED = "_moved"
Shapes = frozenset[tuple[bool, int, frozenset[str | None]]]
"""Calls: whether the user's code makes them, how many arguments they pass by place, and which by name."""


def object_calls(finder: UseFinder, name: str) -> list[HelperCall] | None:
    """Every call of an object of a class; None where an object goes where it can't be followed."""
    uses = finder.uses[name]
    if not uses.known or uses.bound or uses.subclassed or uses.checked:
        return None
    calls: list[HelperCall] = []
    for made in uses.calls:
        parent = finder.parents.get(made.node)
        if not isinstance(parent, ast.Assign):
            return None
        for target in parent.targets:
            held = made.home is None or isinstance(target, ast.Attribute)
            more = _calls_of(finder, target) if held else None
            if more is None:
                return None
            calls += more
    return calls


def _calls_of(finder: UseFinder, target: ast.expr) -> list[HelperCall] | None:
    """The calls of what a name or an attribute stands for, if it is only called and asked for its attributes."""
    match target:
        case ast.Name(id=name):
            place = ("name", name)
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            place = ("attribute", name)
        case _:
            return None
    if any(name in index.strings | index.elsewhere for index in finder.indexes):
        return None
    calls: list[HelperCall] = []
    for node in (n for index in finder.indexes for n in index.reads.get(place, ())):
        match finder.parents.get(node):
            case ast.Call(func=func) as call if func is node:
                calls.append(HelperCall(call, finder.homes[node]))
            case ast.Attribute(attr=asked) if asked != CALL:
                pass
            case _:
                return None
    return calls if all(call.is_plain for call in calls) else None


def method_calls(finder: UseFinder, method: str) -> list[HelperCall] | None:
    """Every call of a method of that name, of whatever object; None where it is read otherwise."""
    if any(method in index.strings for index in finder.indexes):
        return None
    calls: list[HelperCall] = []
    for node in (n for index in finder.indexes for n in index.reads.get(("attribute", method), ())):
        match finder.parents.get(node):
            case ast.Call(func=func) as call if func is node:
                calls.append(HelperCall(call, finder.homes[node]))
            case _:
                return None
    return calls if all(call.is_plain for call in calls) else None


def of_list(node: ast.AST, finder: UseFinder) -> bool:
    """Whether an attribute is one of a list that the function around it has made."""
    function = nearest(ast.FunctionDef, node, finder.parents)
    match node:
        case ast.Attribute(value=ast.Name(id=name)) if function is not None:
            made = [v for n in nodes(function) for t, v in assigned(n) if isinstance(t, ast.Name) and t.id == name]
            stored = [
                n for n in nodes(function) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
            ]
            return len(made) == len(stored) > 0 and all(isinstance(value, ast.List) for value in made)
    return False


def without_unpassed(text: str, function: ast.FunctionDef, calls: Iterable[HelperCall]) -> str:
    """A class without the parameters of a method that have a literal for a default, and that none of its calls pass."""
    known = list(calls)
    plain = [a.arg for a in positional_parameters(function)][1:]
    constants = tuple(
        (name, value)
        for name, value in decided(function, known, (), shift=1)
        if all(c.argument(plain.index(name) if name in plain else None, name) is None for c in known)
    )
    if not constants:
        return text
    names = frozenset(name for name, _ in constants)
    return without_parameters(folded(text, constants, function.name), function.name, names, switched_off(constants))


def drop_agreed(texts: dict[str, str], name: str, function: ast.FunctionDef, calls: Sequence[HelperCall]) -> bool:
    """Fold the parameters of a method for which all calls pass one literal, if only helpers call it."""
    constants = decided(function, calls, (), shift=1) if all(call.home is not None for call in calls) else ()
    if not constants:
        return False
    names = frozenset(one for one, _ in constants)
    folded_text = folded(texts[name], constants, function.name)
    texts[name] = without_parameters(folded_text, function.name, names, switched_off(constants))
    for callee in {ast.unparse(call.node.func) for call in calls}:
        drop_arguments(texts, callee, function, names, calls, shift=1)
    return True


def moved_in(text: str, method: ast.FunctionDef) -> str | None:
    """A class in which the expression that a method returns stands where ``self`` calls it; None if it can't."""
    named = f"self.{method.name}("
    expression = ast.get_source_segment(text, method)
    if expression is None or text.count(named) != 1:
        return None
    function = textwrap.dedent(f"    {expression}\n").replace(f"def {method.name}(", f"def {MOVED}(", 1)
    if expression_of(function) is None:
        return None
    without = without_methods(text, frozenset((method.name,)))
    return inlined(without.replace(named, f"{MOVED}(self, "), function)


def asked_of_objects(finder: UseFinder, texts: Mapping[str, ast.stmt]) -> Hashable:
    """What the user's code says of the calls of objects and methods of the helpers.

    A helper's own calls are told apart: they may go with what makes them.
    """
    return tuple(
        (
            _shapes(object_calls(finder, name)),
            tuple(_shapes(method_calls(finder, s.name)) for s in node.body if isinstance(s, ast.FunctionDef)),
        )
        for name, node in texts.items()
        if isinstance(node, ast.ClassDef)
    )


def _shapes(calls: list[HelperCall] | None) -> Shapes | None:
    if calls is None:
        return None
    return frozenset((c.home is None, len(c.node.args), frozenset(k.arg for k in c.node.keywords)) for c in calls)
