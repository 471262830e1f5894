"""Neighbouring statements of a helper that are one: a value and the statement behind it that is all that reads it.

    xs = x @ w.T            finals = []              loss = f(x, y)
    xs += b                 finals.append(final)     return jnp.mean(loss)

become ``xs = x @ w.T + b``, ``finals = [final]`` and ``return jnp.mean(f(x, y))``, where these fit into a line.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

from t2j_lsp import symbols
from t2j_lsp.symbols import Comprehension, FunctionNode

from .definitions import definition, nodes
from .parts import of_parts
from .variables import is_pure

DEEPEST = 3
"""Calls inside each other that a reader still takes in."""
_OPERATORS = ast.BinOp | ast.BoolOp | ast.Compare | ast.IfExp | ast.Lambda | ast.UnaryOp | ast.Tuple | ast.Starred


@cache
def merged(text: str, width: int) -> str:
    """A definition with such statements put together."""
    return of_parts(text, lambda part: _merged(part, width))


@cache
def _merged(text: str, width: int) -> str:
    for _ in range(len(text)):
        changed = _once(text, width)
        if changed is None:
            break
        text = changed
    return text


def _once(text: str, width: int) -> str | None:
    lines = text.splitlines(keepends=True)
    for function in (n for n in nodes(definition(text)) if isinstance(n, ast.FunctionDef)):
        for one, two in _pairs(function):
            if any(_last_line(s) != s.lineno or "#" in lines[s.lineno - 1] for s in (one, two)):
                continue
            made = _one_statement(one, two, function, text)
            if made is not None and one.col_offset + len(made) <= width:
                between = lines[one.lineno : two.lineno - 1]
                new = f"{' ' * one.col_offset}{made}\n"
                return "".join([*lines[: one.lineno - 1], *between, new, *lines[two.lineno :]])
        for empty, filled, made in _filled(function, text):
            before = lines[empty.lineno : filled.lineno - 1]
            new = f"{' ' * filled.col_offset}{made}\n"
            return "".join([*lines[: empty.lineno - 1], *before, new, *lines[filled.lineno :]])
    return None


def _filled(function: ast.FunctionDef, text: str) -> Iterator[tuple[ast.stmt, ast.stmt, str]]:
    """An empty list, the statement that appends to it before anything else has to do with it, and both as one."""
    for body in (b for n in nodes(function) for k in ("body", "orelse") if isinstance(b := getattr(n, k, None), list)):
        for index, one in enumerate(body):
            match one:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.List(elts=[])):
                    pass
                case _:
                    continue
            later = (s for s in body[index + 1 :] if any(isinstance(n, ast.Name) and n.id == name for n in nodes(s)))
            match first := next(later, None):
                case ast.Expr(value=ast.Call(func=ast.Attribute(ast.Name(id=of), "append"), args=[item])) if (
                    of == name and not _reads(item, name) and first.lineno == first.end_lineno
                ):
                    yield one, first, f"{name} = [{_code(text, item)}]"


def _pairs(function: ast.FunctionDef) -> Iterator[tuple[ast.stmt, ast.stmt]]:
    """Statements that stand below each other, or that have others between them which the first may move past."""
    for node in nodes(function):
        for block in ("body", "orelse"):
            body = getattr(node, block, None)
            if isinstance(body, list):
                yield from ((a, b) for a, b in pairwise(body) if b.lineno == a.lineno + 1)
                yield from _apart(body)


def _apart(body: list[ast.stmt]) -> Iterator[tuple[ast.stmt, ast.stmt]]:
    for index, one in enumerate(body):
        match one:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if is_pure(value):
                later = body[index + 1 :]
            case _:
                continue
        reads = next((n for n, s in enumerate(later) if any(_is_named(n, name) for n in nodes(s))), 0)
        if reads and all(_passes(value, statement) for statement in later[:reads]):
            yield one, later[reads]


def _passes(value: ast.expr, statement: ast.stmt) -> bool:
    """Whether a value is the same behind a statement that assigns plain values."""
    if not isinstance(statement, ast.Assign | ast.AugAssign) or not is_pure(statement.value):
        return False
    stored = {_of(n) for n in nodes(statement) if not isinstance(getattr(n, "ctx", ast.Load()), ast.Load)}
    return "" not in stored and stored.isdisjoint(_of(n) for n in nodes(value))


def _of(node: ast.AST) -> str:
    """The name or attribute that an expression is; nothing for items and others."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _is_named(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _last_line(statement: ast.stmt) -> int:
    """The last line of a statement, or of what stands in front of its block."""
    match statement:
        case ast.If(test=head) | ast.For(iter=head):
            return head.end_lineno or statement.lineno
    return statement.end_lineno or statement.lineno


def _one_statement(one: ast.stmt, two: ast.stmt, function: ast.FunctionDef, text: str) -> str | None:
    """Two statements as one."""
    match one:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            pass
        case _:
            return None
    match two:
        case ast.Return(value=ast.expr() as returned):
            return _returned(name, value, returned, function, text)
        case ast.AugAssign(target=ast.Name(id=added), op=ast.Add(), value=more) if (
            added == name and isinstance(value, ast.BinOp) and not _reads(more, name)
        ):
            return f"{name} = {_code(text, value)} + {_operand(text, more)}"
        case ast.Assign(targets=[target], value=computed) if not isinstance(target, ast.Tuple):
            made = _placed(name, value, computed, function, text)
            return made and f"{_code(text, target)} = {made}"
        case ast.Expr(value=ast.Call() as computed):
            return _placed(name, value, computed, function, text)
        case ast.If(test=test) if text.splitlines()[two.lineno - 1].lstrip().startswith("if "):
            made = _placed(name, value, test, function, text)
            return made and f"if {made}:"
        case ast.For(target=target, iter=over, orelse=[]):
            made = _placed(name, value, over, function, text)
            return made and f"for {_code(text, target)} in {made}:"
    return None


def _returned(name: str, value: ast.expr, returned: ast.expr, function: ast.FunctionDef, text: str) -> str | None:
    """``return`` of an expression with a variable's value in the place of the variable, if nothing else reads it."""
    if isinstance(returned, ast.Name) and returned.id == name and not _is_shared(name, function):
        return f"return {_code(text, value)}"
    tried = any(isinstance(n, ast.Try) for n in nodes(function))
    last = isinstance(value, ast.Call) and not tried and not _is_shared(name, function)
    made = _placed(name, value, returned, function, text, last=last)
    return made and f"return {made}"


def _placed(
    name: str, value: ast.expr, returned: ast.expr, function: ast.FunctionDef, text: str, *, last: bool = False
) -> str | None:
    """An expression with a variable's value in the place of the variable, if nothing else reads it: it is the last."""
    places = _reads(returned, name)
    named = [n for n in nodes(function) if isinstance(n, ast.Name) and n.id == name]
    if len(places) != 1:
        return None
    if not last and (len(named) != 2 or any(a.arg == name for a in nodes(function) if isinstance(a, ast.arg))):
        return None
    around = _around(returned, places[0])
    if any(isinstance(n, FunctionNode | ast.Lambda | Comprehension) for n in around):
        return None
    if any(isinstance(n, ast.IfExp | ast.BoolOp) for n in around) and not is_pure(value):
        return None
    if around and isinstance(around[0], ast.Attribute) and isinstance(value, ast.List | ast.Dict | ast.Set):
        return None  # [].append(a)
    before = (n for n in nodes(returned) if isinstance(n, ast.Call | ast.Subscript) and n not in around)
    if not is_pure(value) and any(before):
        return None  # what else the expression does, or reads, may depend on the value being there
    alone = (
        not around or isinstance(around[0], ast.Call | ast.keyword) and getattr(around[0], "func", None) != places[0]
    )
    made = _code(text, value)
    if isinstance(value, ast.List | ast.Tuple) and value.elts and around and isinstance(around[0], ast.Starred):
        whole, start = _code(text, returned), around[0].col_offset - returned.col_offset
        items = made[1:-1].removesuffix(",") if made[0] in "([" and made[-1] in ")]" else made
        return f"{whole[:start]}{items}{whole[start + len(name) + 1 :]}"
    outer = sum(isinstance(n, ast.Call) for n in around)
    if outer and outer + _depth(value) > DEEPEST:
        return None
    compared = isinstance(value, ast.BinOp) and around and isinstance(around[0], ast.Compare)
    if isinstance(value, ast.Tuple | ast.Starred) or isinstance(value, _OPERATORS) and not (alone or compared):
        made = f"({made})"
    whole = _code(text, returned)
    start = places[0].col_offset - returned.col_offset
    return f"{whole[:start]}{made}{whole[start + len(name) :]}"


def _is_shared(name: str, function: ast.FunctionDef) -> bool:
    """Whether a function inside of another one may read its variable later, or it is not the function's own."""
    inner = [n for n in nodes(function) if isinstance(n, FunctionNode | ast.Lambda) and n is not function]
    outer = {one for n in nodes(function) if isinstance(n, ast.Global | ast.Nonlocal) for one in n.names}
    return name in outer or any(isinstance(n, ast.Name) and n.id == name for one in inner for n in nodes(one))


def _around(tree: ast.expr, inner: ast.expr) -> list[ast.AST]:
    """The nodes of an expression around one of them, the nearest first."""
    parents = {child: node for node in nodes(tree) for child in symbols.children(node)}
    around: list[ast.AST] = []
    node: ast.AST = inner
    while node is not tree:
        node = parents[node]
        around.append(node)
    return around


def _depth(node: ast.AST) -> int:
    """How many calls stand inside each other."""
    return isinstance(node, ast.Call) + max(map(_depth, symbols.children(node)), default=0)


def _reads(node: ast.expr, name: str) -> list[ast.Name]:
    return [n for n in nodes(node) if isinstance(n, ast.Name) and n.id == name]


def _code(text: str, node: ast.expr) -> str:
    return ast.get_source_segment(text, node) or ""


def _operand(text: str, node: ast.expr) -> str:
    code = _code(text, node)
    return f"({code})" if isinstance(node, _OPERATORS) else code
