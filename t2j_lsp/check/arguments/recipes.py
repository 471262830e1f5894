"""Cuts out of a function, a method or a script the statements that make an optimizer, a schedule and a loss.

They come with what they need there; the module is the check's. What a program would read from a data set (the length
of a loader) is a small number, and what a function is called with is what its callers or its defaults say, or what the
name suggests: the same on both sides.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Mapping, Sequence

from t2j_lsp.check.program.calls import FoundCall, calls_of, defaults_of
from t2j_lsp.check.program.frames import Frame, Function, frames, mentions
from t2j_lsp.check.program.names import HYPERPARAMETERS
from t2j_lsp.check.program.parsed import parts_of, reads_command_line, statements_for, with_parts
from t2j_lsp.check.program.scopes import ModuleScope, Use, bound, changed, uses
from t2j_lsp.check.program.slice import Slicer
from t2j_lsp.symbols import bindings, named_parameters, positional_parameters

from .recipe import Recipe

OPTIMIZER, SCHEDULER, CRITERION, CLIPPING = "optimizer", "scheduler", "criterion", "clipping"
_LOADER = "[None] * 5"
_ADDING = frozenset({"add_param_group", "append", "extend", "insert", "update", "setdefault", "add_argument", "add"})
"""Methods whose call makes an object another one; the rest (``step``, ``zero_grad``) belongs to the training."""

Wanted = dict[str, tuple[str, int, str]]
"""For optimizer, schedule and loss: the name, the number of its statement, and what is called to make it."""


class RecipeRefused(Exception):
    """Why the statements can't be cut out."""


def cut(side: Slicer, frame: Frame, model: str, wanted: Wanted, given: Mapping[str, str] | None = None) -> Recipe:
    """The statements that the wanted ones need. Raises RecipeRefused.

    ``given`` are torch's expressions for what nothing tells, for the converted file.
    """
    converted = given is not None
    last = max(index for _, index, _ in wanted.values())
    first = min(index for _, index, _ in wanted.values())
    parts = parts_of(frame.statements)
    # A function of a library, ``nnx.update(other, state)``, changes what it is given.
    imported = {name for one in side.scope.body if isinstance(one, ast.Import | ast.ImportFrom) for name in bound(one)}
    needed, chosen = {name for name, _, _ in wanted.values()}, set[int]()
    for index in range(last, -1, -1):
        statement = frame.statements[index]
        if index < first and _alters(statement, model):
            raise RecipeRefused(f"line {statement.lineno} alters {model}")
        those = with_parts(needed, parts)
        binds = set(bound(statement)) & those
        changes = set(changed(statement)) & those - imported
        if binds or (changes and _adds(statement)) or _freezes(statement, model, side.scope):
            if model in bound(statement):
                raise RecipeRefused(f"line {statement.lineno} makes {model}, too")
            chosen.add(index)
            needed |= set() if _is_loader(statement) else {u.name for u in uses(statement, False)} - {model}
    for statement in (frame.statements[i] for i in sorted(chosen)):
        if converted and (_is_torch(statement) or _freezes(statement, model, side.scope)):
            raise RecipeRefused(f"line {statement.lineno} is still PyTorch")
    local = {n for i in chosen for n in bound(frame.statements[i])} | {model}
    reads = [u for i in chosen if not _is_loader(frame.statements[i]) for u in uses(frame.statements[i], False)]
    parameters = _parameters(frame.function) if frame.function else []
    asked = {u.name for u in reads if u.name in parameters and u.name not in local}
    given, before = _given(side.scope, frame, reads, asked, given or {})
    early = [use for statement in before for use in uses(statement, False)]
    early_names = {name for statement in before for name in bound(statement)}
    outside = {".".join((u.name, *u.attributes)) for u in reads if u.name and u.name not in {*local, *asked, "self"}}
    outside |= {".".join((u.name, *u.attributes)) for u in early if u.name and u.name not in early_names}
    return Recipe(
        str(side.path),
        {"model": model} | {kind: name for kind, (name, _, _) in wanted.items()},
        {kind: _line_of(frame.statements[i], name) for kind, (name, i, _) in wanted.items()},
        tuple((_text(frame.statements[i]), frame.statements[i].lineno) for i in sorted(chosen)),
        given,
        (*sorted(outside), *(text for name, text in given.items() if text not in early_names)),
        {kind: dotted for kind, (_, _, dotted) in wanted.items()},
        {kind: _choices(frame.statements[i], name) for kind, (name, i, _) in wanted.items()},
        ignored_by(frame.statements[wanted[CRITERION][1]]) if CRITERION in wanted else None,
        before=tuple((ast.unparse(statement), statement.lineno) for statement in before),
    )


def ignored_by(node: ast.AST) -> int | None:
    """The number that is given as ``ignore_index``."""
    for part in ast.walk(node):
        if isinstance(part, ast.keyword) and part.arg == "ignore_index":
            with contextlib.suppress(ValueError):
                return int(ast.literal_eval(part.value))
    return None


def _choices(statement: ast.stmt, name: str) -> tuple[tuple[str, int], ...]:
    """The calls in a statement whose value gets a name."""
    choices = []
    for node in ast.walk(statement):
        match node:
            case ast.Assign([ast.Name(target)], ast.Call(function)) if target == name:
                choices.append((ast.unparse(function).rpartition(".")[2], node.lineno))
    return tuple(sorted(choices, key=lambda choice: choice[1]))


def _line_of(statement: ast.stmt, name: str) -> int:
    """The line in which a name is assigned to within a statement."""
    lines = (node.lineno for bound, node in bindings([statement]) if bound == name and isinstance(node, ast.Name))
    return next(lines, statement.lineno)


def _text(statement: ast.stmt) -> str:
    if _is_loader(statement):
        assert isinstance(statement, ast.Assign)
        return f"{ast.unparse(statement.targets[0])} = {_LOADER}"
    return ast.unparse(statement)


def _is_loader(statement: ast.stmt) -> bool:
    """Whether a statement makes a data loader, of which only the length matters here."""
    match statement:
        case ast.Assign([ast.Name(name)], ast.Call(function)):
            return "loader" in name.lower() or ast.unparse(function).endswith("DataLoader")
    return False


def _adds(statement: ast.stmt) -> bool:
    """Whether a change of an object is more than a step of it."""
    calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return any(isinstance(c.func, ast.Attribute) and c.func.attr in _ADDING for c in calls)
    return True


def _alters(statement: ast.stmt, model: str) -> bool:
    """Whether a statement gives the module another part: ``model.fc = nn.Linear(512, 10)``."""
    match statement:
        case ast.Assign([ast.Attribute() | ast.Subscript() as target]):
            return model != "self" and ast.unparse(target).partition(".")[0] == model
    return False


def _freezes(statement: ast.stmt, model: str, scope: ModuleScope) -> bool:
    """Whether a statement freezes parts of the module, itself or by a function of the file."""
    if not mentions(statement, model):
        return False
    match statement:
        case ast.Expr(ast.Call(ast.Name(name))):
            return any(_sets_gradients(s) for s in scope.statements(name))
    return _sets_gradients(statement)


def _sets_gradients(statement: ast.stmt) -> bool:
    return any(
        isinstance(n, ast.Attribute) and n.attr in ("requires_grad", "requires_grad_") and _is_done(n, statement)
        for n in ast.walk(statement)
    )


def _is_torch(statement: ast.stmt) -> bool:
    """Whether a statement of a converted file was left as it is."""
    attributes = {n.attr for n in ast.walk(statement) if isinstance(n, ast.Attribute)}
    names = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)}
    return bool(attributes & {"parameters", "named_parameters", "requires_grad", "requires_grad_"} or "torch" in names)


def _is_done(node: ast.Attribute, statement: ast.stmt) -> bool:
    """Whether ``requires_grad`` is set and not just read."""
    called = any(isinstance(n, ast.Call) and n.func is node for n in ast.walk(statement))
    return isinstance(node.ctx, ast.Store) or called


def _parameters(function: Function) -> list[str]:
    return [a.arg for a in named_parameters(function)]


def _given(
    scope: ModuleScope, frame: Frame, reads: Sequence[Use], asked: set[str], known: Mapping[str, str]
) -> tuple[dict[str, str], list[ast.stmt]]:
    """Expressions for the parameters of the function around the statements, as far as nothing says, the ``known``; and
    statements to run before these.

    Raises RecipeRefused where nothing is known, either.
    """
    function = frame.function
    given: dict[str, str] = {}
    before: list[ast.stmt] = []
    if function is None or not asked - {"self"}:
        return given, before
    positional = positional_parameters(function)
    defaults = defaults_of(function)
    made = frame.name == f"{frame.owner}.__init__"
    called = next(calls_of(scope, frame.owner if made else frame.name), None)
    names = [a.arg for a in positional][made:]
    said = dict(zip(names, called.args, strict=False)) | called.kwargs if called else {}
    for name in sorted(asked - {"self"}):
        node = said.get(name, defaults.get(name))
        if node is not None and called is not None and reads_command_line(node):
            node, more = _parsed(scope, called, node, names.index(name) if name in names else None)
            before += [statement for statement in more if statement not in before]
        if node is not None:
            given[name] = ast.unparse(node)
        elif name in known:
            given[name] = known[name]
        else:
            given[name] = _usual(name, reads)
    return given, before


def _parsed(
    scope: ModuleScope, called: FoundCall, node: ast.expr, position: int | None
) -> tuple[ast.expr, list[ast.stmt]]:
    """What a call is given that was read from the command line: a variable of its caller, with what makes it."""
    function = called.frame.function
    given = called.call.args[position] if position is not None and position < len(called.call.args) else None
    if not isinstance(given, ast.Name):
        return node, []
    around = function.name if function is not None else ""
    statements = next((f.statements for f in frames(scope.body) if f.name == around), [])
    before = statements_for(given.id, statements)
    return (given, before) if before else (node, [])


def _usual(name: str, reads: Sequence[Use]) -> str:
    """What a parameter usually is, by its name and by what is read from it. Raises RecipeRefused."""
    attributes = {u.attributes[0] for u in reads if u.name == name and u.attributes}
    if "loader" in name.lower():
        return _LOADER
    if name in HYPERPARAMETERS:
        return HYPERPARAMETERS[name]
    if attributes and attributes <= HYPERPARAMETERS.keys():
        items = ", ".join(f"{a}={HYPERPARAMETERS[a]}" for a in sorted(attributes))
        return f"__import__('types').SimpleNamespace({items})"
    raise RecipeRefused(f"nothing says what `{name}` is")
