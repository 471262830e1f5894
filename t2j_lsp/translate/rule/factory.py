"""Factory keywords: ``dd = {"device": device, "dtype": dtype}`` that a constructor spreads over every layer it builds.

JAX places arrays on its default device, and NNX layers take no such keywords: the spreads and the dict go. So does
what only makes an optimizer of PyTorch's faster: ``extra = dict(fused=True) if cuda else dict()``.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping

KEYS = frozenset({"device", "dtype"})
SPEED = frozenset({"fused", "foreach", "capturable"})


class FactoryKeywords(ast.keyword):
    """``**dd`` of a dict that holds nothing but a device and a dtype, or options of an optimizer's speed."""


class FactoryName(ast.Name):
    """The same in a dict that calls are given: ``options = {**dd, **options}``, ``nn.Conv2d(3, 4, 5, **options)``."""


def mark_factory_keywords(tree: ast.Module) -> dict[ast.Assign, bool]:
    """Make the spreads of factory dicts known as such; the assignments of these dicts that go.

    False for those that are left where they may come to layers, which take no such keywords: nothing tells what else
    the dict is given, or what the code that it is handed to does with it.
    """
    assignments: dict[ast.Assign, bool] = {}
    optimizers = {name for node in tree.body for name in _imported_optimizers(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assignments |= mark_in_function(node, optimizers)
        elif isinstance(node, ast.ClassDef):
            _mark_attributes(node)
    return assignments


def mark_in_function(
    function: ast.FunctionDef | ast.AsyncFunctionDef, optimizers: Collection[str] = ()
) -> dict[ast.Assign, bool]:
    """The same for one function, in a file that has imported such classes of optimizers."""
    made: dict[str, ast.Assign] = {}
    for statement in function.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)]) if name not in made and is_factory(statement.value):
                made[name] = statement
    if not made:
        return {}
    calls = [n for n in ast.walk(function) if isinstance(n, ast.Call)]
    for call in calls:
        for keyword in call.keywords if not _makes_optimizer(call, optimizers) else ():
            if isinstance(keyword.value, ast.Name) and (spread_of := made.get(keyword.value.id)) is not None:
                if not is_factory(spread_of.value, KEYS):
                    del made[keyword.value.id]
    spreads = [k for call in calls for k in call.keywords if k.arg is None]
    inside = _handed_on(function, made.keys(), spreads)
    spread = {id(value) for value in (*(k.value for k in spreads), *inside)}
    parents = {child: node for node in ast.walk(function) for child in ast.iter_child_nodes(node)}
    left: dict[str, bool] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id in made and id(node) not in spread | {id(made[node.id].targets[0])}:
            left[node.id] = left.get(node.id, True) and _only_reads(node, parents)
    for keyword in spreads:
        if isinstance(keyword.value, ast.Name) and keyword.value.id in made and left.get(keyword.value.id, True):
            keyword.__class__ = FactoryKeywords
    for value in inside:
        if value.id in made and left.get(value.id, True):
            value.__class__ = FactoryName
    return {statement: name not in left for name, statement in made.items() if name not in left or not left[name]}


def _only_reads(node: ast.Name, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether a use of a dict reads an item, or keeps it in an attribute: it stays what it is."""
    match parents[node]:
        case ast.Subscript(value=value, ctx=ast.Load()):
            return value is node
        case ast.Attribute(attr=name):
            return name in ("get", "items", "keys", "values", "copy")
        case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"))]):
            return True
    return False


def _mark_attributes(node: ast.ClassDef) -> None:
    """The same for spreads of ``self.options`` that a class assigns nothing but a factory dict."""
    held: dict[str, bool] = {}
    for method in node.body:
        named = {s.targets[0].id: s.value for s in ast.walk(method) if isinstance(s, ast.Assign)
                 and isinstance(s.targets[0], ast.Name)}  # fmt: skip
        for statement in ast.walk(method):
            match statement:
                case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)], value=value):
                    value = named.get(value.id, value) if isinstance(value, ast.Name) else value
                    held[name] = held.get(name, True) and is_factory(value, KEYS)
    for inner in ast.walk(node) if any(held.values()) else ():
        match inner:
            case ast.Call(keywords=keywords):
                for keyword in keywords:
                    match keyword:
                        case ast.keyword(arg=None, value=ast.Attribute(value=ast.Name(id="self"), attr=name)):
                            if held.get(name):
                                keyword.__class__ = FactoryKeywords


def _handed_on(function: ast.AST, names: Collection[str], spreads: Iterable[ast.keyword]) -> list[ast.Name]:
    """The names that other dicts begin with which calls are given and nothing else reads."""
    given = {id(k.value) for k in spreads}
    names_read: list[ast.Name] = []
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Name() as target], value=ast.Dict() as value):
                if _only_given(function, target, value, given):
                    names_read += _spread_in(value, names)
            case ast.Call():
                for keyword in node.keywords:
                    if keyword.arg is None and isinstance(keyword.value, ast.Dict):
                        names_read += _spread_in(keyword.value, names)
    return names_read


def _spread_in(value: ast.Dict, names: Collection[str]) -> list[ast.Name]:
    """Which of the names the dict is made of."""
    items = zip(value.keys, value.values, strict=True)
    return [item for key, item in items if key is None and isinstance(item, ast.Name) and item.id in names]


def _only_given(function: ast.AST, target: ast.Name, value: ast.Dict, given: Collection[int]) -> bool:
    """Whether a dict is bound once and only spread over calls, or given more items: ``options["bias"] = False``."""
    own = {id(target), *(id(node) for node in ast.walk(value))}
    stored = {
        id(node.value)
        for node in ast.walk(function)
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
    }
    uses = (node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == target.id)
    return all(id(node) in own or id(node) in given or id(node) in stored for node in uses)


def is_factory(value: ast.expr, wanted: frozenset[str] = KEYS | SPEED) -> bool:
    """Whether this is ``{"device": d, "dtype": t}`` or ``dict(device=d, dtype=t)``, or a part of it on a condition."""
    if isinstance(value, ast.IfExp):
        parts = [value.body, value.orelse]
        filled = [part for part in parts if _keys(part) != []]
        return bool(filled) and all(is_factory(part, wanted) for part in filled)
    keys = _keys(value) or []
    return keys != [] and any(group.issuperset(keys) for group in (KEYS, SPEED) if group <= wanted)


def _keys(value: ast.expr) -> list[object] | None:
    """The keys of a dict that is written out; None for other values."""
    match value:
        case ast.Dict():
            return [key.value if isinstance(key, ast.Constant) else None for key in value.keys]
        case ast.Call(func=ast.Name(id="dict"), args=[]):
            return [keyword.arg for keyword in value.keywords]
    return None


def _makes_optimizer(call: ast.Call, imported: Collection[str]) -> bool:
    """Whether a call names its class as one of a package of optimizers: ``torch.optim.AdamW(...)``."""
    name = ast.unparse(call.func)
    return name in imported or "optim" in name.split(".")[:-1]


def _imported_optimizers(node: ast.stmt) -> Iterator[str]:
    """The names of what a file imports from a package of optimizers: ``from torch.optim import AdamW``."""
    match node:
        case ast.ImportFrom(module=str(module), names=names) if module.split(".")[-1] == "optim":
            yield from (alias.asname or alias.name for alias in names)
