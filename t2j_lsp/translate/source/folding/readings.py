"""What the tree of a helper, or of the user's code, says by itself: names that it reads, functions that it defines."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from t2j_lsp import symbols

Function = ast.FunctionDef | ast.AsyncFunctionDef
Place = tuple[str, str]
"""Where a value may be read: ``("name", n)`` in the user's code, ``("own", n)`` in helpers, or ``("attribute", a)``."""
TRANSFORMATIONS = frozenset(
    f"{library}.{name}" for library in ("nnx", "jax") for name in ("grad", "jit", "value_and_grad")
)


@dataclass
class Tree:
    """What one tree says: see the attributes of `uses.Index`, which puts several of them together."""

    nodes: list[ast.AST] = field(default_factory=list)
    parents: dict[ast.AST, ast.AST] = field(default_factory=dict)
    reads: dict[Place, list[ast.Name | ast.Attribute]] = field(default_factory=lambda: defaultdict(list))
    definitions: dict[str, list[Function]] = field(default_factory=lambda: defaultdict(list))
    words: set[str] = field(default_factory=set)
    stored: set[str] = field(default_factory=set)
    items: set[type[ast.expr_context]] = field(default_factory=set)
    strings: set[str] = field(default_factory=set)
    keywords: set[str] = field(default_factory=set)
    compiled: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    enters: bool = False


@cache
def read_helper(tree: ast.AST) -> Tree:
    """What a helper's definition says, which is asked in every round of every file."""
    return read(tree, "own")


def read(tree: ast.AST, side: str) -> Tree:
    """What a tree says, of the user's (``name``) or of a helper's (``own``)."""
    out, is_user = Tree(), side == "name"
    for node in symbols.walk(tree):
        out.nodes.append(node)
        for child in symbols.children(node):
            out.parents[child] = node
        match node:
            case ast.Name(ctx=ast.Load()):
                out.reads[(side, node.id)].append(node)
            case ast.Attribute():
                if is_user or isinstance(node.ctx, ast.Load):
                    out.words.add(node.attr)
                if isinstance(node.ctx, ast.Load):
                    out.reads[("attribute", node.attr)].append(node)
                else:
                    out.stored.add(node.attr)
            case ast.With() | ast.AsyncWith():
                out.enters = True
            case ast.Subscript():
                out.items |= {type(node.ctx)}
            case ast.keyword(arg=str() as name):
                out.words.add(name)
            case ast.Call(func=ast.Attribute(attr="set_attributes" | "set_mode" | "view")):
                out.keywords |= {k.arg for k in node.keywords if k.arg is not None}
            case ast.Constant(value=str() as text) if not _names_parameter(node, out.parents):
                out.words.update(text.split("."))
                out.strings.update(text.split("."))
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(args=[ast.Name(id=of)]) as made):
                if ast.unparse(made.func) in TRANSFORMATIONS:
                    out.compiled[name].append(of)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                out.definitions[node.name].append(node)
            case ast.ClassDef():
                for item in node.body:
                    if isinstance(item, ast.FunctionDef) and item.name == "__init__":
                        out.definitions[node.name].append(item)
    return out


def _names_parameter(text: ast.Constant, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether a string is one of ``static_argnames``, which no attribute is read by."""
    at = parents.get(text)
    at = parents.get(at) if isinstance(at, ast.Tuple) else at
    return isinstance(at, ast.keyword) and at.arg == "static_argnames"
