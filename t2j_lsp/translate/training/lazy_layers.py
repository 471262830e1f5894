"""Lazy layers of a Sequential, ``nn.Sequential(nn.Linear(4, 8), nn.LazyLinear(2))``: with the sizes that they take.

The layers in front of one say it, together with the input of a first call, ``net(torch.randn(1, 1, 28, 28))``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from t2j_lsp.contract import Finding
from t2j_lsp.translate.inference.containers import SEQUENTIAL
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.facts import Qual
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.sizes import MAKERS, UNKNOWN_SIZES, Size, Sizes, given_sizes, lazy_layer
from t2j_lsp.translate.source.rearranged import Edits, Fragment, RearrangedText

_Found = dict[ast.Call, tuple[str, Size]]
"""Lazy layers, which layers they are, and the size that these are given first."""


def with_sizes_of_lazy_layers(inference: Inference, gaps: Sequence[Finding]) -> RearrangedText | None:
    """The text in which lazy layers whose sizes are known are others; None if there are none."""
    source = inference.source
    if not gaps or "Lazy" not in source.text:
        return None
    edits: Edits = []
    for node in source.nodes:
        if isinstance(node, ast.Call) and _name(inference, node) == SEQUENTIAL and not _is_inner(inference, node):
            edits += _edits(inference, _agreed(inference, node))
    return RearrangedText.of(source.text, edits)


def _name(inference: Inference, node: ast.expr) -> str:
    fact = inference.fact(node.func) if isinstance(node, ast.Call) else None
    return fact.name if isinstance(fact, Qual) else ""


def _is_inner(inference: Inference, node: ast.Call) -> bool:
    parent = inference.source.parents[node]
    return isinstance(parent, ast.Call) and _name(inference, parent) == SEQUENTIAL


def _agreed(inference: Inference, node: ast.Call) -> _Found:
    """The lazy layers of a Sequential, as far as all the inputs that are in sight say the same of them."""
    found: _Found = {}
    name = _own_name(inference, node)
    if name is not None and _is_changed(inference, name):
        return found
    inputs = [] if name is None else list(_inputs(inference, name))
    for sizes in [*inputs, UNKNOWN_SIZES]:
        one: _Found = {}
        _follow(inference, node, sizes, one)
        for layer, (eager, size) in one.items():
            before = found.get(layer, (eager, size))[1]
            if before is not None and size is not None and before != size:
                return {}
            found[layer] = eager, size if before is None else before
    return found


def _own_name(inference: Inference, node: ast.Call) -> str | None:
    """The name that holds a Sequential, and nothing else anywhere in the file."""
    match inference.source.parents[node]:
        case ast.Assign(targets=[ast.Name(id=name)]) as made if _bound_by(inference, name) is made:
            return name
    return None


def _bound_by(inference: Inference, name: str) -> ast.Assign | None:
    """The assignment that alone binds a name, in all of the file."""
    found: list[ast.AST] = []
    for node in inference.source.nodes:
        if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load):
            found.append(inference.source.parents[node])
        elif isinstance(node, ast.arg) and node.arg == name:
            return None
    one = found[0] if len(found) == 1 else None
    return one if isinstance(one, ast.Assign) and len(one.targets) == 1 else None


def _is_changed(inference: Inference, name: str) -> bool:
    """Whether what a name holds may get other parts, or another shape: ``net.append(...)``, ``x.unsqueeze_(0)``."""
    for node in inference.source.nodes:
        match node:
            case ast.Attribute(value=ast.Name(id=held), attr=attr) if held == name:
                if attr.endswith("_") or attr in ("add_module", "append", "extend", "insert", "pop", "register_module"):
                    return True
            case ast.Subscript(value=ast.Name(id=held), ctx=ast.Store() | ast.Del()) if held == name:
                return True
    return False


def _follow(inference: Inference, node: ast.Call, sizes: Sizes, found: _Found) -> Sizes:
    """The sizes behind a layer, or behind the layers of a Sequential."""
    name = _name(inference, node)
    if name == SEQUENTIAL:
        for child in node.args:
            sizes = _follow(inference, child, sizes, found) if isinstance(child, ast.Call) else UNKNOWN_SIZES
        return UNKNOWN_SIZES if node.keywords else sizes
    lazy = lazy_layer(name, sizes)
    first: list[object] = []
    if lazy is not None:
        found[node], first = lazy, [lazy[1]]
        name = f"{name.rpartition('.')[0]}.{lazy[0]}"
    return given_sizes(name, _given(name, node, first), sizes) if name in LAYERS else UNKNOWN_SIZES


def _given(name: str, node: ast.Call, first: list[object]) -> dict[str, object]:
    """The arguments of a constructor that are literals, None for others, and the defaults."""
    parameters = LAYERS[name].signature.parameters or ()
    given = {p.name: ast.literal_eval(p.default) for p in parameters if p.default is not None}
    if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
        return dict.fromkeys(given)
    values = [*first, *map(_literal, node.args)]
    given |= dict(zip((p.name for p in parameters), values, strict=False))
    return given | {k.arg: _literal(k.value) for k in node.keywords if k.arg}


class _Hidden:
    """The value of an argument that is no literal."""


def _literal(node: ast.expr) -> object:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return _Hidden()


def _inputs(inference: Inference, name: str) -> Iterator[Sizes]:
    """The sizes of what a Sequential is called with, by its name."""
    for call in inference.source.nodes:
        match call:
            case ast.Call(func=ast.Name(id=called), args=[given, *_]) if called == name:
                sizes = _made(inference, given)
                if sizes is not None:
                    yield sizes


def _made(inference: Inference, node: ast.expr) -> Sizes | None:
    """The sizes of a tensor that is made on the spot, or that a name holds which is bound once."""
    if isinstance(node, ast.Name):
        made = _bound_by(inference, node.id)
        if made is None or _is_changed(inference, node.id):
            return None
        node = made.value
    if not isinstance(node, ast.Call) or _name(inference, node) not in MAKERS:
        return None
    size = next((k.value for k in node.keywords if k.arg == "size"), None)
    value = _literal(size if size is not None else node.args[0] if len(node.args) == 1 else ast.Tuple(node.args))
    sizes = (value,) if isinstance(value, int) else value
    if isinstance(sizes, tuple | list) and all(isinstance(one, int) for one in sizes):
        return Sizes(tuple(sizes), whole=True)
    return None


def _edits(inference: Inference, found: _Found) -> Edits:
    edits: Edits = []
    for node, (eager, size) in found.items():
        if size is None or not isinstance(node.func, ast.Attribute):
            continue
        start, end = inference.source.span(node)
        stop = inference.source.span(node.func)[1]
        head = inference.source.text[start:stop].rpartition(".")[0]
        rest = inference.source.text[stop:end]
        inside = rest.lstrip()[1:]
        given = f"{size}" if inside.strip() == ")" else f"{size}, "
        text = f"{head}.{eager}({given}{inside.lstrip(' ')}"
        edits.append((start, end, [Fragment(text, start, end)]))
    return edits
