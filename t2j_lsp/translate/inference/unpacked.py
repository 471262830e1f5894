"""Whether a file asks a module of unknown class for its children: what it unpacks may come from a list of lists.

    self.layers.append(nn.ModuleList([Attention(dim), FeedForward(dim)]))
    for attend, feed in self.layers: ...

unpacks no Sequential, if the list is filled with other modules alone, in plain sight.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp.translate.rule.definitions import Instance
from t2j_lsp.translate.rule.facts import Fact, Layer

from .file import Inference

MODULE_LIST = "torch.nn.ModuleList"
_READERS = frozenset(("enumerate", "reversed", "len", "zip"))
_FILLERS = frozenset(("extend", "insert", "add_module", "register_module", "pop", "__setitem__"))


def indexes_any(inference: Inference) -> bool:
    """Whether a module of unknown class, which may be a Sequential, is indexed, measured, iterated or unpacked."""
    state = inference.state
    while state.uses.unpacked and not state.uses.indexes_any:
        name = _attribute(state.uses.unpacked[-1], inference)
        state.uses.indexes_any = name is None or not _holds_no_sequential(name, inference)
        state.uses.unpacked.pop()
    return state.uses.indexes_any


def _attribute(target: ast.expr, inference: Inference) -> str | None:
    """The attribute whose items a loop unpacks: ``for a, b in self.layers``, ``for i, (a, b) in enumerate(...)``."""
    parents = inference.source.parents
    whole, loop, counted = target, parents.get(target), False
    if isinstance(loop, ast.Tuple) and len(loop.elts) == 2 and loop.elts[1] is target:
        whole, loop, counted = loop, parents.get(loop), True
    if not isinstance(loop, ast.For | ast.comprehension) or loop.target is not whole:
        return None
    match loop.iter:
        case ast.Call(func=ast.Name(id="enumerate"), args=[ast.Attribute() as held, *_]) if counted:
            return held.attr
        case ast.Attribute(attr=name) if not counted:
            return name
    return None


def _holds_no_sequential(name: str, inference: Inference) -> bool:
    """Whether all that goes into the lists under an attribute is seen, and none of it is a Sequential."""
    filled = False
    for node in inference.source.nodes:
        if isinstance(node, ast.Constant) and node.value == name:
            return False  # getattr and setattr take it
        if isinstance(node, ast.Attribute) and node.attr == name:
            for item in _put_in(node, inference):
                if item is None or not _is_no_sequential(inference.fact(item)):
                    return False
                filled = True
    return filled


def _put_in(node: ast.Attribute, inference: Inference) -> Iterator[ast.expr | None]:
    """What one occurrence of a list puts into it; None for something that isn't known."""
    parents = inference.source.parents
    match parents.get(node):
        case ast.Assign(targets=[target], value=ast.Call(args=args, keywords=[]) as made) if target is node:
            fact = inference.fact(made)
            match args if isinstance(fact, Layer) and fact.name == MODULE_LIST else [made]:
                case []:
                    pass
                case [ast.List(elts=items) | ast.Tuple(elts=items)]:
                    yield from items
                case [ast.ListComp(elt=item) | ast.GeneratorExp(elt=item)]:
                    yield item
                case _:
                    yield None
        case ast.Attribute(attr="append") as method:
            call = parents.get(method)
            yield call.args[0] if isinstance(call, ast.Call) and call.func is method and len(call.args) == 1 else None
        case ast.Attribute(attr=name):
            if name in _FILLERS:
                yield None
        case ast.For(iter=held) | ast.comprehension(iter=held) if held is node:
            pass
        case ast.Call(func=ast.Name(id=reader)) if reader in _READERS:
            pass
        case ast.Subscript(ctx=ast.Load()):
            pass
        case _:
            yield None


def _is_no_sequential(fact: Fact) -> bool:
    match fact:
        case Layer():
            return fact.name != "torch.nn.Sequential"
        case Instance():
            return fact.cls.info.layer_base is None
    return False
