"""Loops over batches, as they look: what is iterated under ``tqdm`` and ``enumerate``, and which names hold a batch."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from t2j_lsp import symbols
from t2j_lsp.translate.inference.narrowing import Narrowing
from t2j_lsp.translate.rule.definitions import Instance
from t2j_lsp.translate.rule.facts import Fact, MixedDict, Object
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.record import REGISTRY

PIPELINE = "torch.utils.data."
WRAPPERS = frozenset(
    {"enumerate", "tqdm", "iter", "list", "islice", "cycle", "chain", "trange", "track", "progress_bar", "reversed"}
)
"""Functions around an iterable that yield its items (``enumerate`` with a number)."""


def has_training(tree: ast.AST) -> bool:
    """Whether a file computes gradients."""
    return any(isinstance(n, ast.Attribute) and n.attr == "backward" for n in symbols.walk(tree))


def loader_of(node: ast.expr) -> ast.expr:
    """What is iterated under ``enumerate``, ``tqdm`` and their like, in one of the ways if these are chosen among."""
    while isinstance(node, ast.Call) and _wrapper(node):
        node = node.args[0]
    if isinstance(node, ast.IfExp):
        return next((inner for way in (node.body, node.orelse) if (inner := loader_of(way)) is not way), node)
    return node


def _wrapper(call: ast.Call) -> str:
    """The function around an iterable that a call is; empty for others."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return name if call.args and name in WRAPPERS else ""


def is_named_loader(node: ast.expr) -> bool:
    """Whether an iterable is called as loaders are: ``test_loader``, ``self.dataloader``, ``loaders["val"]``."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return isinstance(node, ast.Name | ast.Attribute) and last_name(node).rstrip("s").endswith("loader")


def last_name(node: ast.Name | ast.Attribute) -> str:
    return (node.attr if isinstance(node, ast.Attribute) else node.id).lower()


def is_object(loop: ast.AST, name: str) -> bool:
    """Whether what a loop yields has attributes that no tensor, array or container has: ``batch.src``."""
    read = {n.attr for n in symbols.walk(loop) if isinstance(n, ast.Attribute) and ast.unparse(n.value) == name}
    return any(REGISTRY.get(f"torch.Tensor.{attr}") is None and attr not in _OF_NO_OBJECT for attr in read)


_OF_NO_OBJECT = frozenset(dir(dict)) | frozenset(dir(list)) | {"data", "grad", "astype", "at"}


def is_loader(fact: Fact) -> bool:
    """Whether iterating the value yields batches or items of a torch data pipeline."""
    return isinstance(fact, Object) and fact.kind in ("loader", "batches", "dataset") or is_of_pipeline(fact)


def is_of_pipeline(fact: Fact) -> bool:
    """Whether an object is of a class that derives from PyTorch's loader, or from its data sets."""
    bases = fact.cls.info.torch_bases if isinstance(fact, Instance) else ()
    return any(base.startswith(PIPELINE) and not base.endswith("Sampler") for base in bases)


def hides_items(fact: Fact) -> bool:
    """Whether an object gives what something else gives, and its class doesn't say what: ``return iter(self.it)``."""
    method = fact.cls.info.methods.get("__iter__") if isinstance(fact, Instance) else None
    if method is None:
        return False
    inner = list(symbols.walk(method.node))
    returned = [n.value for n in inner if isinstance(n, ast.Return)]
    own = any(isinstance(value, ast.Name) and value.id == "self" for value in returned)
    return not own and not any(isinstance(n, ast.Yield | ast.YieldFrom) for n in inner)


def batch_targets(loop: ast.For) -> list[ast.Name]:
    """The names of a loop that hold a batch: all but the number that ``enumerate`` counts."""
    target, _ = _unwrapped(loop.target, loop.iter)
    return names_in(target) if target is not None else []


def is_walked(node: ast.expr, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether a loop or a comprehension gets its items of a value, as it is or under ``enumerate`` and its like."""
    place: ast.AST = node
    while isinstance(parent := parents.get(place), ast.Call) and loader_of(parent) is not parent:
        place = parent
    return isinstance(parent, ast.For | ast.comprehension) and parent.iter is place


def names_in(target: ast.expr) -> list[ast.Name]:
    """The variables that a target gives values."""
    return [n for n in symbols.walk(target) if isinstance(n, ast.Name)]


def zipped(loop: ast.For | ast.comprehension) -> list[tuple[ast.expr, ast.expr]]:
    """The targets of a loop over ``zip(loader, others)``, each with what it gets its items from; none for others."""
    return list(_zipped(*_unwrapped(loop.target, loop.iter)))


def _zipped(target: ast.expr | None, iterable: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    match iterable, target:
        case ast.Call(func=ast.Name(id="zip"), args=args), ast.Tuple(elts=targets) if len(targets) == len(args):
            for one, given in zip(targets, args, strict=True):
                inner, under = _unwrapped(one, given)
                if inner is not None and not isinstance(under, ast.Starred):
                    yield from list(_zipped(inner, under)) or [(inner, under)]


def _unwrapped(target: ast.expr, iterable: ast.expr) -> tuple[ast.expr | None, ast.expr]:
    """What gets the items of what is iterated under ``enumerate`` and its like; None where that can't be told."""
    while isinstance(iterable, ast.Call) and (name := _wrapper(iterable)):
        if name == "enumerate":
            if not isinstance(target, ast.Tuple) or len(target.elts) != 2:
                return None, iterable
            target = target.elts[1]
        iterable = iterable.args[0]
    if isinstance(iterable, ast.IfExp):
        ways = [_unwrapped(target, way) for way in (iterable.body, iterable.orelse)]
        wrapped = [
            way for way, under in zip(ways, (iterable.body, iterable.orelse), strict=True) if way[1] is not under
        ]
        if len({way[0] for way in ways}) == 1 and wrapped:
            return wrapped[0]
    return target, iterable


def goes_over_dict(loop: ast.For, facts: Mapping[ast.AST, Fact]) -> bool:
    """Whether a loop goes over ``batch.items()``, in which other things than tensors are, or over a dict's keys."""
    match loop.iter:
        case ast.Call(func=ast.Attribute(attr="keys"), args=[]):
            return True
        case ast.Call(func=ast.Attribute(value=walked, attr="items" | "values"), args=[]):
            return asks_for_tensors(loop, facts) or isinstance(facts.get(walked), MixedDict)
    return False


def asks_for_tensors(loop: ast.AST, facts: Mapping[ast.AST, Fact]) -> bool:
    """Whether a loop asks of what it has whether it is a tensor: other things are among it."""
    asks = Narrowing(facts).asks_for_tensor
    return any(asks(node) is not None for node in symbols.walk(loop) if isinstance(node, ast.Call))


def is_move(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in names_with(Trait.TO_DEVICE)
    )


def moves_or_trains(loop: ast.For) -> bool:
    """Whether a loop moves what it iterates to a device, or computes gradients itself."""
    names = {t.id for t in batch_targets(loop)}
    for node in symbols.walk(loop):
        if is_move(node) and isinstance(node, ast.Call):
            inner = {n.id for n in symbols.walk(node.func) if isinstance(n, ast.Name)}
            if inner & names:
                return True
    inner_loops = [n for s in loop.body for n in symbols.walk(s) if isinstance(n, ast.For) and has_training(n)]
    return has_training(loop) and not inner_loops and _is_plain(loop.iter)


def _is_plain(node: ast.expr) -> bool:
    """Whether an iterable may be a loader: ``range(n)`` and literals are not."""
    base = loader_of(node)
    return isinstance(base, ast.Name | ast.Attribute | ast.Subscript)
