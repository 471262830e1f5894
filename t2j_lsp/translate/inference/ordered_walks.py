"""Walks over a module's parameters that tell of them one after the other, and only read them.

`for name, p in model.named_parameters(): print(name, p.shape)` tells PyTorch's names, order and layouts: what is
walked then is a dict of arrays that has these. An array is what the parameter was then, so it may go nowhere.
"""

from __future__ import annotations

import ast
import builtins

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.names import canonical, is_torch
from t2j_lsp.translate.source.positions import position
from t2j_lsp.translate.source.text import Source

from .named_arrays import bare_calls

WALKS = frozenset({"parameters", "named_parameters"})
"""The methods that walk so, if what is done with the items is no more."""
_ORDERED = frozenset({"print", "append", "extend", "insert", "write", "info", "debug", "warning", "next", "enumerate"})
"""Functions and methods to which it matters when they are called."""
_GATHERED = frozenset({"list", "tuple", "print", "join", "enumerate", "zip"})
"""What a comprehension's values are handed to in their order."""


def walked_in_order(source: Source) -> frozenset[ast.Call]:
    """The calls that walk so."""
    if _has_late_parts(source):
        return frozenset()
    return frozenset(
        node for node, name in bare_calls(source, WALKS) if _is_only_read(source, node, name.startswith("named_"))
    )


def has_order(source: Source, loop: ast.For) -> bool:
    """Whether a loop over the parts of a module would do something else if they came in another order."""
    inside = [n for s in loop.body for n in symbols.walk(s)]
    counters = {n.target.id for n in inside if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)}
    if loop.orelse or any(
        isinstance(n, ast.Name) and _holds_last(source, loop, n.id) for n in symbols.walk(loop.target)
    ):
        return True
    later = {n for call in inside if _registers(call) for n in symbols.walk(call) if n is not call}
    for node in inside:
        match node:
            case _ if node in later:
                pass  # what a hook does, it does as the parts are called
            case ast.Break() | ast.Return() | ast.Yield() | ast.YieldFrom():
                return True
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in _ORDERED:
                if not _gathers_handles(source, node):
                    return True
            case ast.Name(id=name, ctx=ast.Load()) if name in counters:
                return True
            case _:
                pass
    return False


def _registers(node: ast.AST) -> bool:
    """Whether it hands a module a function to call."""
    match node:
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in names_with(Trait.MODULE_HOOK)
    return False


def _gathers_handles(source: Source, node: ast.Call) -> bool:
    """``handles.append(part.register_forward_hook(hook))``, of a list that nobody takes one handle out of."""
    match node:
        case ast.Call(func=ast.Attribute(value=held, attr="append"), args=[hook]) if _registers(hook):
            name = ast.unparse(held)
            return not any(isinstance(n, ast.Subscript) and ast.unparse(n.value) == name for n in source.nodes)
    return False


def _is_only_read(source: Source, call: ast.Call, named: bool) -> bool:
    place = source.parents.get(call)
    match place:
        case ast.Call(func=ast.Name(id="list" | "tuple"), args=[held], keywords=[]) if held is call and not named:
            return _is_looked_at(source, place)
        case ast.Call() if flattens(source, place, call):
            return True
        case ast.Assign(targets=[ast.Tuple(elts=names) | ast.List(elts=names)]) if not named:
            return _are_shown(source, place, names)
    if isinstance(place, ast.Call) and isinstance(place.func, ast.Name) and place.func.id == "enumerate":
        if place.args != [call] or place.keywords:
            return False
        call, place = place, source.parents.get(place)
        counted = True
    else:
        counted = False
    if not isinstance(place, ast.For | ast.comprehension) or place.iter is not call:
        return False
    target = place.target
    if counted:
        match target:
            case ast.Tuple(elts=[ast.Name(), inner]):
                target = inner
            case _:
                return False
    match target:
        case ast.Tuple(elts=[ast.Name(), ast.Name(id=item)]) if named:
            pass
        case ast.Name(id=item) if not named:
            pass
        case _:
            return False
    if isinstance(place, ast.For):
        return (
            has_order(source, place) and _only_read(source, place.body, item) and not _read_behind(source, place, item)
        )
    made = source.parents[place]
    if not isinstance(made, ast.ListComp | ast.GeneratorExp) or len(made.generators) > 1:
        return False
    handed = source.parents.get(made)
    if isinstance(handed, ast.Starred):
        handed = source.parents.get(handed)
    match handed:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in _GATHERED:
            return _only_read(source, [made.elt, *place.ifs], item)
        case ast.Call(func=func) if _of_torch(source, func) in names_with(Trait.JOINS):
            viewed = _without_views(made.elt)
            return isinstance(viewed, ast.Name) and viewed.id == item and _only_read(source, place.ifs, item)
    return False


def flattens(source: Source, call: ast.Call, parameters: ast.expr) -> bool:
    """Whether a call makes a flat vector of parameters, or writes one into them."""
    match call:
        case ast.Call(args=[given], keywords=[]) if given is parameters:
            return _of_torch(source, call.func).endswith(".parameters_to_vector")
        case ast.Call(args=[_, given], keywords=[]) if given is parameters:
            return _of_torch(source, call.func).endswith(".vector_to_parameters")
    return False


def _without_views(node: ast.expr) -> ast.expr:
    """What a chain of views is of: ``p`` of ``p.detach().view(-1)``."""
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr=attr)) | ast.Attribute(value=inner, attr=attr):
            return _without_views(inner) if _is_view(attr) or attr in names_with(Trait.COPIES) else node
    return node


def _is_looked_at(source: Source, made: ast.Call) -> bool:
    """Whether a list of parameters is only asked for its length, and for the shapes of single ones.

    Their values may be others by then.
    """
    match assigned := source.parents.get(made):
        case ast.Assign(targets=[ast.Name(id=name)]):
            pass
        case _:
            return False
    scope = next(n for n in ancestors(assigned, source.parents) if isinstance(n, _SCOPES))
    named = [n for n in source.nodes if isinstance(n, ast.Name) and n.id == name]
    reads = [n for n in named if isinstance(n.ctx, ast.Load)]
    inside = set(symbols.walk(scope))
    if len(named) != len(reads) + 1 or not reads or not all(n in inside for n in reads):
        return False
    picked = False
    for read in reads:
        match parent := source.parents.get(read):
            case ast.Call(func=ast.Name(id="len")):
                continue
            case ast.Subscript(value=value, slice=ast.Constant(value=int()) | ast.UnaryOp()) if value is read:
                picked = True
                match source.parents.get(parent):
                    case ast.Attribute(attr=attr) if attr in names_with(Trait.ABOUT):
                        continue
                return False
            case _:
                return False
    return picked


def _are_shown(source: Source, assigned: ast.Assign, targets: list[ast.expr]) -> bool:
    """Whether variables of single parameters are read in the statements behind, which leave the module alone."""
    names = {target.id for target in targets if isinstance(target, ast.Name)}
    block = source.block_of(assigned) or [assigned]
    named = [n for n in source.nodes if isinstance(n, ast.Name) and n.id in names]
    if len(names) != len(targets) or sum(isinstance(n.ctx, ast.Store) for n in named) != len(names):
        return False
    behind = block[block.index(assigned) + 1 :]
    inside = {n: i for i, statement in enumerate(behind) for n in symbols.walk(statement)}
    reads = [n for n in named if not isinstance(n.ctx, ast.Store)]
    if not reads or not all(n in inside and _is_read(source, n) for n in reads):
        return False
    between = [n for n, i in inside.items() if i <= max(inside[read] for read in reads)]
    if any(isinstance(n, ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef) for n in between):
        return False
    writes = [n for n in between if isinstance(n, ast.Attribute | ast.Subscript) and not isinstance(n.ctx, ast.Load)]
    calls = [n for n in between if isinstance(n, ast.Call)]
    return not writes and all(_leaves_modules_alone(source, call.func, names) for call in calls)


def _leaves_modules_alone(source: Source, called: ast.expr, shown: set[str]) -> bool:
    """Whether it is a function of Python, one of a library that isn't PyTorch's, or asks what is shown."""
    if isinstance(called, ast.Name):
        return hasattr(builtins, called.id) and called.id not in _CALLING
    root = called
    while isinstance(root, ast.Attribute | ast.Subscript | ast.Call):
        root = root.func if isinstance(root, ast.Call) else root.value
    if not isinstance(root, ast.Name):
        return isinstance(root, ast.Constant)
    return root.id in shown or root.id in _other_libraries(source)


def _other_libraries(source: Source) -> set[str]:
    """The names of libraries that the file imports, but for PyTorch's."""
    imports = [a for node in source.tree.body if isinstance(node, ast.Import) for a in node.names]
    return {symbols.bound_as(a) for a in imports if not is_torch(a.name)}


_CALLING = frozenset({"map", "filter", "next", "setattr", "delattr", "exec", "eval"})
"""Functions of Python that run other code, or write."""


def _only_read(source: Source, parts: list[ast.stmt] | list[ast.expr], item: str) -> bool:
    """Whether nothing keeps the parameter or writes into it."""
    names = [n for part in parts for n in symbols.walk(part) if isinstance(n, ast.Name) and n.id == item]
    return all(isinstance(n.ctx, ast.Load) and _is_read(source, n) for n in names)


def _is_read(source: Source, node: ast.expr) -> bool:
    """Whether a value is only asked for something, computed with, or printed."""
    parent = source.parents.get(node)
    match parent:
        case ast.Attribute(attr=name) if isinstance(parent.ctx, ast.Load):
            called = source.parents.get(parent)
            if isinstance(called, ast.Call) and called.func is parent:
                return _computes(name) or _is_view(name) and _is_read(source, called)
            return name in names_with(Trait.ABOUT) or _is_view(name) and _is_read(source, parent)
        case ast.Call(func=ast.Name(id="print" | "len" | "float" | "tuple")):
            return node is not parent.func
        case ast.FormattedValue() | ast.BinOp() | ast.Compare():
            return True
        case ast.Subscript(ctx=ast.Load()) if parent.value is node:
            return _is_read(source, parent)
        case ast.Call(func=func):
            return _computes(_of_torch(source, func).rpartition(".")[2])
    return False


def _of_torch(source: Source, node: ast.expr) -> str:
    """The name in PyTorch of what an expression is by the imports where it stands; empty if it is none of its."""
    path: list[str] = []
    while isinstance(node, ast.Attribute):
        path.insert(0, node.attr)
        node = node.value
    targets = source.symbols.imports(source.home(node)).get(node.id, ()) if isinstance(node, ast.Name) else ()
    names = {canonical(".".join([target, *path])) for target in targets}
    return names.pop() if len(names) == 1 and all(map(is_torch, names)) else ""


def _is_view(name: str) -> bool:
    """Whether a method or attribute gives a tensor's values, perhaps in its memory."""
    return any(name in names_with(trait) for trait in (Trait.VIEW, Trait.TO_NUMPY, Trait.TORCH_ONLY_BARE))


def _computes(name: str) -> bool:
    """Whether a method gives values of its own, or tells of the tensor."""
    own = (Trait.ABOUT, Trait.REDUCTION, Trait.OPERATOR_METHOD, Trait.AMBIGUOUS, Trait.VALUE, Trait.OTHER_WITH_ONE)
    known = any(name in names_with(trait) for trait in (*own, Trait.TENSOR_ONLY_BARE, Trait.ELEMENTWISE_METHOD))
    return known and not _is_view(name) and name not in names_with(Trait.SAME_TENSOR)


def _read_behind(source: Source, loop: ast.For, item: str) -> bool:
    """Whether the loop's variable is read behind the loop, where it is the last parameter."""
    around = next(n for n in ancestors(loop, source.parents) if isinstance(n, _SCOPES))
    return any(
        isinstance(n, ast.Name)
        and n.id == item
        and isinstance(n.ctx, ast.Load)
        and not any(n is loop or _binds(n, item) for n in ancestors(n, source.parents))
        for n in symbols.walk(around)
    )


def _holds_last(source: Source, loop: ast.For, item: str) -> bool:
    """Whether the loop's variable is read behind the loop before it has another value."""
    around = next(n for n in ancestors(loop, source.parents) if isinstance(n, _SCOPES))
    named = [n for n in symbols.walk(around) if isinstance(n, ast.Name) and n.id == item and n.lineno > loop.lineno]
    behind = [n for n in named if not any(n is loop or _binds(n, item) for n in ancestors(n, source.parents))]
    targets = [n for n in named if n not in behind and not isinstance(n.ctx, ast.Load)]
    stores = [position(n) for n in (*behind, *targets) if not isinstance(n.ctx, ast.Load) and n.lineno > _end(loop)]
    first = min((position(n) for n in behind if isinstance(n.ctx, ast.Load)), default=None)
    return first is not None and not any(one < first for one in stores)


def _end(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)


def _binds(node: ast.AST, name: str) -> bool:
    """Whether a loop, a comprehension or a function gives the name a value of its own."""
    match node:
        case ast.For():
            binders: list[ast.AST] = [node.target]
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            binders = [g.target for g in node.generators]
        case ast.Lambda() | ast.FunctionDef():
            return name in symbols.parameter_names(node)
        case _:
            return False
    return any(isinstance(n, ast.Name) and n.id == name for binder in binders for n in symbols.walk(binder))


def _has_late_parts(source: Source) -> bool:
    """Whether a part of a module is None at first and set behind other parts: PyTorch has it behind these then."""
    for node in source.nodes:
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            if _is_late([n for n in symbols.walk(node) if _is_own_store(n)], source):
                return True
    return False


def _is_own_store(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(value=ast.Name(id="self"), ctx=ast.Store()):
            return True
    return False


def _is_late(stores: list[ast.AST], source: Source) -> bool:
    empty: dict[str, int] = {}
    ordered = sorted((n for n in stores if isinstance(n, ast.Attribute)), key=position)
    for index, store in enumerate(ordered):
        value = getattr(source.parents.get(store), "value", None)
        if isinstance(value, ast.Constant) and value.value is None:
            empty.setdefault(store.attr, index)
        elif store.attr in empty and any(s.attr != store.attr for s in ordered[empty[store.attr] : index]):
            return True
    return False
