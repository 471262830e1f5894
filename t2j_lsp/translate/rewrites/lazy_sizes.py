"""The sizes that code in plain sight gives lazy layers: what stands in front of them, and the tensors that come in."""

from __future__ import annotations

import ast

from t2j_lsp.symbols import FunctionNode, own_nodes, scopes_around
from t2j_lsp.translate.inference.containers import SEQUENTIAL
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.sequentials import LENGTHENING
from t2j_lsp.translate.rule.facts import Qual
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.sizes import MAKERS, UNKNOWN_SIZES, Size, Sizes, given_sizes, lazy_layer

SizedLayers = dict[ast.Call, tuple[str, Size]]
"""Lazy layers, which layers they are, and the size that these are given first."""


def named(inference: Inference, node: ast.expr) -> str:
    fact = inference.fact(node.func) if isinstance(node, ast.Call) else None
    return fact.name if isinstance(fact, Qual) else ""


def follow(inference: Inference, node: ast.Call, sizes: Sizes, sized: SizedLayers) -> Sizes:
    """The sizes behind a layer, or behind the layers of a Sequential."""
    name = named(inference, node)
    if name == SEQUENTIAL:
        for child in node.args:
            sizes = follow(inference, child, sizes, sized) if isinstance(child, ast.Call) else UNKNOWN_SIZES
        return UNKNOWN_SIZES if node.keywords else sizes
    lazy = lazy_layer(name, sizes)
    first: list[object] = []
    if lazy is not None:
        sized[node], first = lazy, [lazy[1]]
        name = f"{name.rpartition('.')[0]}.{lazy[0]}"
    return given_sizes(name, given_to(name, node, first), sizes) if name in LAYERS else UNKNOWN_SIZES


def agree(sized: SizedLayers, more: SizedLayers) -> bool:
    """Add what else is known of lazy layers; whether nothing of it contradicts what was known."""
    for layer, (eager, size) in more.items():
        before = sized.get(layer, (eager, size))[1]
        if before is not None and size is not None and before != size:
            return False
        sized[layer] = eager, size if before is None else before
    return True


def given_to(
    name: str, node: ast.Call, first: list[object], defaults: dict[str, object] | None = None
) -> dict[str, object]:
    """The arguments of a constructor that are literals, None for others, and the defaults."""
    parameters = LAYERS[name].signature.parameters or ()
    given = {p.name: ast.literal_eval(p.default) for p in parameters if p.default is not None} | (defaults or {})
    if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
        return dict.fromkeys(given)
    values = [*first, *map(literal, node.args)]
    given |= dict(zip((p.name for p in parameters), values, strict=False))
    return given | {k.arg: literal(k.value) for k in node.keywords if k.arg}


class _Hidden:
    """The value of an argument that is no literal."""


def literal(node: ast.expr) -> object:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return _Hidden()


def made_sizes(inference: Inference, node: ast.expr) -> Sizes | None:
    """The sizes of a tensor that is made on the spot, or that a name holds which is bound once."""
    if isinstance(node, ast.Name):
        made = _bound_around(inference, node)
        if made is None or is_changed(inference, node.id):
            return None
        node = made.value
    if not isinstance(node, ast.Call) or named(inference, node) not in MAKERS:
        return None
    given = next(([k.value] for k in node.keywords if k.arg == "size"), node.args)
    match given:
        case [ast.Tuple(elts=sizes) | ast.List(elts=sizes)]:
            pass
        case [one] if not isinstance(literal(one), int):
            return None
        case sizes:
            pass
    if any(isinstance(size, ast.Starred) for size in sizes):
        return None
    values = [literal(size) for size in sizes]
    return Sizes(tuple(value if isinstance(value, int) else None for value in values), whole=True)


def _bound_around(inference: Inference, node: ast.Name) -> ast.Assign | None:
    """The assignment that alone binds a name in the function that it is read in, or at the module level."""
    if any(isinstance(n, ast.Global | ast.Nonlocal) and node.id in n.names for n in inference.source.nodes):
        return None
    for scope in [*scopes_around(node, inference.source.parents), inference.source.tree]:
        if isinstance(scope, ast.ClassDef):
            continue
        if not isinstance(scope, ast.Module | FunctionNode):
            return None
        if any(isinstance(n, ast.arg) and n.arg == node.id for n in own_nodes(scope)):
            return None
        inner = (n for n in own_nodes(scope) if isinstance(n, ast.Name) and n.id == node.id)
        binding = [inference.source.parents[n] for n in inner if not isinstance(n.ctx, ast.Load)]
        if binding:
            one = binding[0] if len(binding) == 1 else None
            return one if isinstance(one, ast.Assign) and len(one.targets) == 1 else None
    return None


def bound_by(inference: Inference, name: str) -> ast.Assign | None:
    """The assignment that alone binds a name, in all of the file."""
    binding: list[ast.AST] = []
    for node in inference.source.nodes:
        if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load):
            binding.append(inference.source.parents[node])
        elif isinstance(node, ast.arg) and node.arg == name:
            return None
    one = binding[0] if len(binding) == 1 else None
    return one if isinstance(one, ast.Assign) and len(one.targets) == 1 else None


def is_changed(inference: Inference, name: str) -> bool:
    """Whether what a name holds may get other parts, or another shape: ``net.append(...)``, ``x.unsqueeze_(0)``."""
    for node in inference.source.nodes:
        match node:
            case ast.Attribute(value=ast.Name(id=held), attr=attr) if held == name:
                if attr.endswith("_") or attr in LENGTHENING:
                    return True
            case ast.Subscript(value=ast.Name(id=held), ctx=ast.Store() | ast.Del()) if held == name:
                return True
    return False
