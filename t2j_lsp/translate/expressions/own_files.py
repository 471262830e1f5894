"""Files that only the program itself can have written: just before, or to go on from with its optimizer."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterable, Iterator

from t2j_lsp import symbols
from t2j_lsp.translate.inference.call_sites import bound_arguments
from t2j_lsp.translate.rule.definitions import Function
from t2j_lsp.translate.rule.facts import Object, Qual
from t2j_lsp.translate.rule.library import Trait, names_with

from .context import Context

SAVES = names_with(Trait.WRITES_FILES)
"""The functions that write what they are given into a file."""
_ORDERED = ast.Lt | ast.LtE | ast.Gt | ast.GtE
_COPIES = frozenset(f"shutil.{name}" for name in ("copy", "copy2", "copyfile", "move")) | {"os.rename", "os.replace"}
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
            if any(_saves(ctx, n, ast.unparse(name)) or _calls_writer(ctx, n, name) for n in inside):
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


def _calls_writer(ctx: Context, node: ast.AST, name: ast.expr) -> bool:
    """Whether a call runs a function of the file that saves a file of that constant name, or copies one to it.

    ``save_checkpoint(state, is_best)``, which saves the state and, if it is the best one, copies the file.
    """
    called = ctx.fact(node.func) if isinstance(node, ast.Call) else None
    if not isinstance(name, ast.Constant) or not isinstance(called, Function) or not isinstance(node, ast.Call):
        return False
    function = called.info.node
    given = {parameter.arg: value for parameter, value in bound_arguments(node, called.info)}
    given = {a.arg: value for a, value in symbols.defaults(function.args)} | given
    changed = {n.id for n in symbols.walk(function) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    compared = {one for one, value in given.items() if one not in changed and _is_compared(ctx, value)}
    written: set[str] = set()
    for statement in function.body if isinstance(function, ast.FunctionDef) else ():
        for inner in _run(statement, compared):
            file = _written(ctx, inner, written)
            if file is not None:
                written.add(ast.unparse(file))
            if isinstance(file, ast.Name) and file.id not in changed:
                file = given.get(file.id)
            if file is not None and ast.unparse(file) == ast.unparse(name):
                return True
    return False


def _written(ctx: Context, node: ast.AST, before: Container[str]) -> ast.expr | None:
    """The file that a call saves, or to which it copies one of those that were saved before."""
    made = ctx.fact(node.func) if isinstance(node, ast.Call) else None
    if not isinstance(node, ast.Call) or not isinstance(made, Qual):
        return None
    if made.name in SAVES:
        return _file(node, 1)
    match node.args:
        case [source, target] if made.name in _COPIES and ast.unparse(source) in before:
            return target
    return None


def _is_compared(ctx: Context, value: ast.expr) -> bool:
    """Whether a value is a comparison of numbers, or a variable that one in front of it, in its block, gives it."""
    if not isinstance(value, ast.Name):
        return any(isinstance(n, _ORDERED) for n in symbols.walk(value))
    at: ast.AST | None = value
    while at is not None and not isinstance(at, ast.stmt):
        at = ctx.source.parents.get(at)
    block = (ctx.source.block_of(at) if at is not None else None) or []
    for statement in reversed(block[: block.index(at)] if isinstance(at, ast.stmt) and at in block else ()):
        if _sets(symbols.walk(statement), {value.id}):
            alone = isinstance(statement, ast.Assign) and not isinstance(statement.value, ast.Name)
            return alone and _is_compared(ctx, statement.value)  # type: ignore[attr-defined]
    return False


def _run(node: ast.AST, compared: Container[str] = ()) -> Iterator[ast.AST]:
    """What a statement runs by itself: functions that it defines are not called yet.

    What stands under a condition may not be run (``if not os.path.exists(file):``), and the file is PyTorch's then.
    Only where numbers are compared, as those of the best epoch so far, it is run at some time; ``compared`` are
    names for such comparisons.
    """
    yield node
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
        return
    if isinstance(node, ast.If):
        asked = node.test.id in compared if isinstance(node.test, ast.Name) else False
        if not asked and not any(isinstance(n, _ORDERED) for n in symbols.walk(node.test)):
            yield from _run(node.test)
            return
    for child in ast.iter_child_nodes(node):
        yield from _run(child, compared)
