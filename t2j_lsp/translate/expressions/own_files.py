"""Files that only the program itself can have written: just before, or to go on from with its optimizer."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from t2j_lsp import symbols
from t2j_lsp.translate.rule.facts import Object, Qual
from t2j_lsp.translate.rule.library import Trait, names_with

from .context import Context

SAVES = names_with(Trait.WRITES_FILES)
"""The functions that write what they are given into a file."""
_ORDERED = ast.Lt | ast.LtE | ast.Gt | ast.GtE
_PLAIN = ast.Constant | ast.Name | ast.Attribute | ast.JoinedStr | ast.FormattedValue | ast.BinOp


def was_written(ctx: Context, call: ast.expr) -> bool:
    """Whether a call reads a file that a statement in front of it, or around it, writes under the same name.

    Nothing that the name is made of changes in between.
    """
    name = _file(call, 0)
    if name is None or not all(isinstance(n, _PLAIN | ast.expr_context | ast.operator) for n in symbols.walk(name)):
        return False
    parts = {ast.unparse(n) for n in symbols.walk(name) if isinstance(n, ast.Name | ast.Attribute)}
    at: ast.AST | None = call
    while at is not None and not isinstance(at, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
        block = ctx.source.block_of(at) if isinstance(at, ast.stmt) else None
        for statement in reversed(block[: block.index(at)] if block is not None and isinstance(at, ast.stmt) else ()):
            inside = list(_run(statement))
            if _sets(inside, parts):
                return False
            if any(_saves(ctx, n, ast.unparse(name)) for n in inside):
                return True
        at = ctx.source.parents.get(at)
        if isinstance(at, ast.For | ast.While) and _sets(symbols.walk(at), parts):
            return False
    return False


def resumes_optimizer(ctx: Context, call: ast.expr) -> bool:
    """Whether an optimizer surely loads its state from what a call reads: ``state = torch.load(file)``, a few lines on.

    PyTorch's optimizers have other states than optax's, which can't load those.
    """
    statement = ctx.source.parents.get(call)
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is call:
            block = ctx.source.block_of(statement)
        case _:
            return False
    for later in block[block.index(statement) + 1 :] if block is not None else ():
        match later:
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(value=loaded, attr="load_state_dict"),
                    args=[ast.Subscript(value=ast.Name(id=read), slice=ast.Constant())],
                )
            ) if read == name and isinstance(fact := ctx.fact(loaded), Object) and fact.kind == "optimizer":
                return True
        if isinstance(later, ast.Return | ast.Raise) or _sets(symbols.walk(later), {name}):
            return False
    return False


def _sets(inside: Iterable[ast.AST], parts: set[str]) -> bool:
    return any(ast.unparse(n) in parts for n in inside if isinstance(getattr(n, "ctx", None), ast.Store | ast.Del))


def _file(call: ast.AST, place: int) -> ast.expr | None:
    """What a call is given by name as ``f``, or at a place."""
    if not isinstance(call, ast.Call) or any(isinstance(one, ast.Starred) for one in call.args):
        return None
    named = next((k.value for k in call.keywords if k.arg == "f"), None)
    return call.args[place] if len(call.args) > place else named


def _saves(ctx: Context, node: ast.AST, name: str) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(saves := ctx.fact(node.func), Qual) or saves.name not in SAVES:
        return False
    file = _file(node, 1)
    return file is not None and ast.unparse(file) == name


def _run(node: ast.AST) -> Iterator[ast.AST]:
    """What a statement runs by itself: functions that it defines are not called yet.

    What stands under a condition may not be run (``if not os.path.exists(file):``), and the file is PyTorch's then.
    Only where numbers are compared, as those of the best epoch so far, it is run at some time.
    """
    yield node
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
        return
    if isinstance(node, ast.If) and not any(isinstance(n, _ORDERED) for n in symbols.walk(node.test)):
        yield from _run(node.test)
        return
    for child in ast.iter_child_nodes(node):
        yield from _run(child)
