"""Parameters that classes keep of their own, beside those of layers: they have PyTorch's layout in Flax, too."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from t2j_lsp import symbols
from t2j_lsp.translate.inference.forward_pass import is_known
from t2j_lsp.translate.rule.definitions import Class, ClassInfo, Instance, is_module
from t2j_lsp.translate.rule.facts import Fact, Layer, ListOf, Qual, Tensor, Tuple

from .context import Context


def walked_parameters(ctx: Context) -> tuple[list[Tensor], bool]:
    """Those of a class and of what it holds, and whether it holds layers; outside of a class, those of the file."""
    info = ctx.scope.class_info
    waiting = [info] if info is not None else list(ctx.inference.classes.values())
    seen: set[ClassInfo] = set()
    own: list[Tensor] = []
    layers = info is None
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        layers = layers or one.layer_base is not None or any(not isinstance(b, Class | Qual) for b in one.bases)
        for fact in (part for owner in one.ancestry() for kept in _without_buffers(owner) for part in _parts(kept)):
            if isinstance(fact, Tensor) and fact.variable:
                own.append(fact)
            elif isinstance(fact, Instance) and fact.cls.info.is_module:
                waiting.append(fact.cls.info)
            elif is_module(fact) or not is_known(fact):
                layers = True
    return own, layers


def _without_buffers(owner: ClassInfo) -> list[Fact]:
    """What a class has in its attributes, but for its buffers, over which no walk over parameters goes."""
    names = buffer_names(owner)
    return [fact for name, fact in owner.attributes.items() if name not in names]


def buffer_names(owner: ClassInfo) -> set[str]:
    """The attributes of a class that are registered as buffers."""
    names = set[str]()
    for node in symbols.walk(owner.node):
        match node:
            case ast.Call(func=ast.Attribute(attr="register_buffer"), args=[ast.Constant(value=str() as name), *_]):
                names.add(name)
            case ast.Assign(targets=[ast.Attribute(attr=name)], value=ast.Call(func=func)):
                if getattr(func, "attr", getattr(func, "id", "")) == "Buffer":
                    names.add(name)
    return names


def _parts(fact: Fact) -> Iterator[Fact]:
    match fact:
        case ListOf(item=item):
            yield from _parts(item)
        case Tuple(items=items):
            for item in items:
                yield from _parts(item)
        case Layer(items=tuple() as items):
            yield fact
            for item in items:
                yield from _parts(item)
        case _:
            yield fact


def is_handed_flag(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether a read of ``requires_grad`` is what another tensor is given, as it is made or by ``requires_grad_``."""
    match parents.get(node):
        case ast.keyword(arg="requires_grad"):
            return True
        case ast.Call(func=ast.Attribute(attr="requires_grad_"), args=[given]):
            return given is node and isinstance(node, ast.Attribute)
    return False
