"""What is done with a module's state dict: whether a `StateDict` in its place does the same."""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.module_states import copied_into

from .state_order import in_torch_order
from .walk_order import order_matters, reads_of

_ORDER = "what is done here depends on PyTorch's order of the names, and Flax forgets it under jit"
_FOLLOWS = "these tensors follow the module, and JAX's arrays don't: keep clones of them"
_WRITES = "this writes into the module's tensors, and JAX's arrays can't be written to: use load_state_dict"
WALKS = ("items", "keys", "values")
_TRAINS = frozenset({"backward", "step"})


def problem_of_state(inference: Inference, call: ast.Call) -> str | None:
    """Why ``call``, a module's ``state_dict()``, can't be a `StateDict`; None if it can."""
    parents = inference.source.parents
    parent = parents.get(call)
    reads = reads_of(inference, parent) or [] if isinstance(parent, ast.Assign | ast.NamedExpr) else []
    ordered = isinstance(call.func, ast.Attribute) and in_torch_order(inference, inference.fact(call.func.value))
    for use in (call, *reads):
        match parents.get(use):
            case ast.Attribute(attr=name) as method if name in WALKS and isinstance(parents.get(method), ast.Call):
                walk = parents[method]
                if only_copies(inference, walk):
                    continue
                if not ordered and order_matters(inference, walk):
                    return _ORDER
                if (reason := _of_walk(inference, walk)) is not None:
                    return reason
            case ast.Attribute(attr="copy") as method:
                return _FOLLOWS
            case ast.For() | ast.comprehension() as loop if loop.iter is use:
                if not ordered and order_matters(inference, use):
                    return _ORDER
            case ast.Call(func=ast.Name(id="list" | "tuple" | "iter" | "print" | "enumerate")) if not ordered:
                return _ORDER
            case ast.Call(func=ast.Name(id="dict")) as copied if not is_used_at_once(inference, copied):
                return _FOLLOWS
            case ast.Subscript(ctx=ast.Load()) as item if copies_into(inference, item):
                continue
            case ast.Subscript(ctx=ast.Load()) as item:
                if _is_written(inference, item):
                    return _WRITES
                if not is_used_at_once(inference, item):
                    return _FOLLOWS
    return None


def copies_into(inference: Inference, item: ast.Subscript) -> bool:
    """Whether a tensor of a state is what a statement copies another one into."""
    statement = symbols.nearest(ast.Expr, item, inference.source.parents)
    one = copied_into(inference.source, inference.fact, statement) if statement is not None else None
    return one is not None and item.value is one[0] and item.slice is one[1]


def only_copies(inference: Inference, walk: ast.AST) -> bool:
    """Whether a loop over a state, or over two of them, computes tensors, copies them into a state, and does no more.

    Each tensor is met once, in whatever order they come.
    """
    loop = inference.source.parents.get(walk)
    if isinstance(loop, ast.Call) and isinstance(loop.func, ast.Name) and loop.func.id == "zip":
        loop = inference.source.parents.get(loop)
    if not isinstance(loop, ast.For) or loop.orelse:
        return False
    copies = [copied_into(inference.source, inference.fact, s) for s in symbols.walk(loop) if isinstance(s, ast.stmt)]
    return any(copies) and all(_computes(inference, s) for s in loop.body)


def _computes(inference: Inference, node: ast.stmt) -> bool:
    match node:
        case ast.If(body=body, orelse=orelse):
            return all(_computes(inference, s) for s in [*body, *orelse])
        case ast.Assign(targets=[ast.Name()]) | ast.Pass() | ast.Continue():
            return True
    return copied_into(inference.source, inference.fact, node) is not None


def _of_walk(inference: Inference, walk: ast.AST) -> str | None:
    """What is wrong with a loop or comprehension over the tensors."""
    loop = inference.source.parents.get(walk)
    if not isinstance(loop, ast.For | ast.comprehension) or loop.iter is not walk:
        return None
    match walk, loop.target:
        case ast.Call(func=ast.Attribute(attr="keys")), _:
            return None
        case ast.Call(func=ast.Attribute(attr="items")), ast.Tuple(elts=[ast.Name(), ast.Name() as tensor]):
            names = {tensor.id}
        case _:
            names = {n.id for n in symbols.walk(loop.target) if isinstance(n, ast.Name)}
    body: ast.AST = loop if isinstance(loop, ast.For) else inference.source.parents[loop]
    for node in symbols.walk(body):
        if isinstance(node, ast.Name) and node.id in names and _is_written(inference, node):
            return _WRITES
    kept = [body.value] if isinstance(body, ast.DictComp) else [getattr(body, "elt", None)]
    if isinstance(body, ast.For):
        kept = [n.value for n in symbols.walk(body) if isinstance(n, ast.Assign)]
    held = any(isinstance(value, ast.Name) and value.id in names for value in kept)
    if isinstance(body, ast.For):
        return _FOLLOWS if held else None
    return _FOLLOWS if held and not is_used_at_once(inference, body) else None


def _is_written(inference: Inference, tensor: ast.AST) -> bool:
    """Whether a tensor is changed in place: ``v.copy_(x)``, ``v[0] = x``, ``v.data.mul_(d)``, ``v += x``."""
    place, parent = tensor, inference.source.parents.get(tensor)
    while isinstance(parent, ast.Attribute | ast.Subscript) and parent.value is place:
        if isinstance(parent.ctx, ast.Store):
            return True
        if isinstance(parent, ast.Attribute) and parent.attr.endswith("_") and not parent.attr.startswith("_"):
            return True
        place, parent = parent, inference.source.parents.get(parent)
    return isinstance(parent, ast.AugAssign) and parent.target is place


def is_used_at_once(inference: Inference, value: ast.AST) -> bool:
    """Whether a value is read, and not kept until the module may have changed."""
    parents = inference.source.parents
    parent = parents.get(value)
    if not isinstance(parent, ast.Assign):
        kept = isinstance(parent, ast.Return | ast.AnnAssign | ast.NamedExpr | ast.Yield | ast.Dict | ast.List)
        return not kept
    reads = reads_of(inference, parent)
    block = inference.source.block_of(parent)
    if reads is None or block is None:
        return False
    rest = block[block.index(parent) + 1 :]
    last = max((i for i, s in enumerate(rest) for n in symbols.walk(s) if n in reads), default=-1)
    around = rest[: last + 1]
    inside = {n for s in around for n in symbols.walk(s)}
    return inside.issuperset(reads) and not any(may_train(inference, n) for n in inside)


def may_train(inference: Inference, node: ast.AST) -> bool:
    """Whether a module may have other parameters behind a node."""
    match node:
        case ast.Attribute(attr=name):
            return name in _TRAINS
        case ast.Call(func=ast.Name(id=name)):
            return any(info.name == name for info in inference.functions.values())
    return False
