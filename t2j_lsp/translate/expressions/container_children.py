"""The children of a Sequential or a list of modules, which keep PyTorch's order: they are what it holds."""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.translate.inference.forward_pass import CONTAINERS
from t2j_lsp.translate.inference.readers import reads_children
from t2j_lsp.translate.rule.definitions import Instance, layer_names
from t2j_lsp.translate.rule.facts import Fact, Layer
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.pieces import Piece

from .context import Context
from .handlers import ExpressionRenderer

LISTS = frozenset(CONTAINERS[:2])
"""Modules that are iterated as their children are."""


def contents_of(ctx: Context, renderer: ExpressionRenderer, node: ast.Call, owner: Fact, held: Piece) -> Piece | None:
    """What ``net.features.children()`` and ``named_children()`` give; None for other modules."""
    names = layer_names(owner)
    if not names or not names <= LISTS or node.args or node.keywords or holds_one_twice(owner):
        return None
    if _asks_children(ctx, node) and _may_hold_functions(ctx, owner):
        return None
    match node.func:
        case ast.Attribute(attr="named_children") if _is_sliced(ctx):
            return None
        case ast.Attribute(attr="named_children"):
            return Piece(f"{renderer.need('named_contents')}({held.text})")
        case ast.Attribute(attr="children"):
            return held if reads_children(node, ctx.source.parents.get(node)) else Piece(f"iter({held.text})")
    return None


def _is_sliced(ctx: Context) -> bool:
    """Whether a part of a Sequential is taken, whose children keep their names in PyTorch."""
    cut = (n.value for n in ctx.source.nodes if isinstance(n, ast.Subscript) and isinstance(n.slice, ast.Slice))
    return any(CONTAINERS[0] in layer_names(ctx.fact(one)) for one in cut)


def _asks_children(ctx: Context, node: ast.Call) -> bool:
    """Whether something is asked of a child that a loop goes over, which may be a function."""
    place: ast.AST = node
    loop = ctx.source.parents.get(node)
    while isinstance(loop, ast.Call) and place in loop.args and isinstance(loop.func, ast.Name):
        place, loop = loop, ctx.source.parents.get(loop)
    if not isinstance(loop, ast.For | ast.comprehension) or loop.iter is not place:
        return False
    around = loop if isinstance(loop, ast.For) else ctx.source.parents[loop]
    last = loop.target.elts[-1] if isinstance(loop.target, ast.Tuple) else loop.target
    names = {n.id for n in symbols.walk(last) if isinstance(n, ast.Name)}
    asked = (n.value for n in symbols.walk(around) if isinstance(n, ast.Attribute))
    return any(isinstance(one, ast.Name) and one.id in names for one in asked)


def _may_hold_functions(ctx: Context, owner: Fact) -> bool:
    """Whether one of the children may be a function in Flax, as an activation is."""
    items = _items(owner.node) if isinstance(owner, Layer) and isinstance(owner.node, ast.Call) else []
    facts = [ctx.fact(one) for one in items]
    return not facts or not all(
        isinstance(fact, Instance) or isinstance(fact, Layer) and not LAYERS[fact.name].function for fact in facts
    )


def _items(node: ast.Call) -> list[ast.expr]:
    """What a container is given, one by one; of a comprehension, what each is."""
    out: list[ast.expr] = []
    for one in node.args:
        match one:
            case ast.List(elts=items) | ast.Tuple(elts=items):
                out += items
            case ast.ListComp(elt=item) | ast.GeneratorExp(elt=item):
                out.append(item)
            case _:
                out.append(one)
    return out


def holds_one_twice(owner: Fact) -> bool:
    """Whether a container is given a child at two places, or a None: PyTorch tells of it once, or not."""
    if not isinstance(owner, Layer) or not isinstance(owner.node, ast.Call):
        return False
    given = [ast.unparse(one) for one in _items(owner.node) if not isinstance(one, ast.Call)]
    return len(given) > len(set(given)) or "None" in given
