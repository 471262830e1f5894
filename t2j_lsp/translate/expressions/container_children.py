"""The children of a Sequential or a list of modules, which keep PyTorch's order: they are what it holds."""

from __future__ import annotations

import ast

from t2j_lsp.translate.inference.forward_pass import CONTAINERS
from t2j_lsp.translate.inference.readers import reads_children
from t2j_lsp.translate.rule.facts import AnyModule, Fact, Layer
from t2j_lsp.translate.rule.pieces import Piece

from .context import Context
from .handlers import ExpressionRenderer

_LISTS = frozenset(CONTAINERS[:2])


def contents_of(ctx: Context, renderer: ExpressionRenderer, node: ast.Call, owner: Fact, held: Piece) -> Piece | None:
    """What ``net.features.children()`` and ``named_children()`` give; None for other modules."""
    names = owner.names if isinstance(owner, AnyModule) else {owner.name} if isinstance(owner, Layer) else set()
    if not names or not names <= _LISTS or node.args or node.keywords or holds_one_twice(owner):
        return None
    match node.func:
        case ast.Attribute(attr="named_children"):
            return Piece(f"{renderer.need('named_contents')}({held.text})")
        case ast.Attribute(attr="children"):
            return held if reads_children(node, ctx.source.parents.get(node)) else Piece(f"iter({held.text})")
    return None


def holds_one_twice(owner: Fact) -> bool:
    """Whether a container is given a child at two places, or a None: PyTorch tells of it once, or not."""
    if not isinstance(owner, Layer) or not isinstance(owner.node, ast.Call):
        return False
    listed = (a.elts if isinstance(a, ast.List | ast.Tuple) else [a] for a in owner.node.args)
    given = [ast.unparse(one) for items in listed for one in items if not isinstance(one, ast.Call)]
    return len(given) > len(set(given)) or "None" in given
