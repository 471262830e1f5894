"""Whether a module's state dict is read where it stands: it need not follow the module then, and is a plain dict."""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import Function, is_module
from t2j_lsp.translate.rule.facts import Qual

from .own_files import SAVES
from .state_dicts import WALKS, copies_into, is_used_at_once, may_train
from .walk_order import reads_of

_COPIES = ("copy.deepcopy", "copy.copy")


def read_at_once(inference: Inference) -> bool:
    """Whether each state dict of a module in the file is read before the module can have changed."""
    asked = [
        node
        for node in inference.source.nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "state_dict"
        and is_module(inference.fact(node.func.value))
    ]
    return all(_is_read_at_once(inference, call) for call in asked)


def _is_read_at_once(inference: Inference, state: ast.expr) -> bool:
    parents = inference.source.parents
    match parents.get(state):
        case ast.Attribute(attr=name) as method if name in WALKS and isinstance(parents.get(method), ast.Call):
            return _is_walked(inference, parents[method])
        case ast.For() | ast.comprehension():
            return _is_walked(inference, state)
        case ast.Subscript(ctx=ast.Load()) as item:
            return not copies_into(inference, item)
        case ast.Call(func=ast.Attribute(attr="load_state_dict"), args=[given]) if given is state:
            return True
        case _:
            return _is_saved(inference, state)


def _is_walked(inference: Inference, walk: ast.AST) -> bool:
    """Whether a loop or comprehension goes over it, and no update of the module comes in between."""
    match inference.source.parents.get(walk):
        case ast.For(iter=over) as loop if over is walk:
            return not any(may_train(inference, n) for s in loop.body for n in symbols.walk(s))
        case ast.comprehension(iter=over):
            return over is walk
    return False


def _is_saved(inference: Inference, value: ast.AST) -> bool:
    """Whether a value is written to a file or copied where it stands, in a dictionary or list if need be."""
    parents = inference.source.parents
    while isinstance(parents.get(value), ast.Dict | ast.List | ast.Tuple):
        value = parents[value]
    match parents.get(value):
        case ast.Call() as call if value in call.args:
            return _reads(inference, call, call.args.index(value))
        case ast.Assign() as assignment if isinstance(value, ast.Dict) and is_used_at_once(inference, value):
            reads = reads_of(inference, assignment) or []
            return bool(reads) and all(_is_saved(inference, read) for read in reads)
    return False


def _reads(inference: Inference, call: ast.Call, place: int) -> bool:
    """Whether a call reads the argument at a place, and keeps nothing of it."""
    called = inference.fact(call.func)
    if isinstance(called, Qual) and (called.name in SAVES or called.name in _COPIES):
        return place == 0
    if not isinstance(called, Function) or any(isinstance(one, ast.Starred) for one in call.args):
        return False
    node = called.info.node
    plain = symbols.positional_parameters(node)[called.info.owner is not None :]
    if place >= len(plain):
        return False
    reads = [n for n in symbols.walk(node) if isinstance(n, ast.Name) and n.id == plain[place].arg]
    return all(
        isinstance(outer := inference.source.parents.get(read), ast.Call)
        and isinstance(saves := inference.fact(outer.func), Qual)
        and saves.name in SAVES
        and outer.args[:1] == [read]
        for read in reads
    )
