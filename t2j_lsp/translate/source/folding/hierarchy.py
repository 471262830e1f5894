"""A base class that only one class derives from, written as one class with it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache

from t2j_lsp import symbols
from t2j_lsp.translate.source.positions import first_line

from .definitions import defaults, definition, nodes
from .inlining import with_expressions
from .signatures import NEW
from .uses import HelperUses


def merge_classes(texts: dict[str, str], uses: Mapping[str, HelperUses]) -> None:
    """Merge the bases that nothing but one derived class uses."""
    for base, used in uses.items():
        apart = used.known and not used.calls and not used.checked and not used.bound and None not in used.reads
        if apart and len(used.subclassed) == 1:
            (derived,) = used.subclassed
            if derived in texts and base in texts and derived is not None:
                merged = merged_class(texts[base], texts[derived])
                if merged is not None:
                    texts[derived] = merged
                    del texts[base]


@cache
def merged_class(base: str, derived: str) -> str | None:
    """One class that does what ``derived`` does; None where that takes more than putting them together."""
    below, above = definition(base), definition(derived)
    if not isinstance(below, ast.ClassDef) or not isinstance(above, ast.ClassDef) or below.decorator_list:
        return None
    if len(above.bases) != 1 or above.keywords or below.keywords or above.decorator_list:
        return None
    low, high = _methods(below), _methods(above)
    parts = {name: _lines(base, method) for name, method in low.items()}
    parts |= {name: _lines(derived, method) for name, method in high.items()}
    for name, method in high.items():
        called = set(_super_calls(method)) & set(low)
        if called - {name}:
            return None
        if called or name == NEW and NEW in low:
            extended = _extended(base, low[name], derived, method)
            if extended is None:
                return None
            parts[name] = extended
    if NEW in parts:
        parts = {NEW: parts[NEW], **parts}
    assigned = {t.id for s in above.body if isinstance(s, ast.Assign) for t in s.targets if isinstance(t, ast.Name)}
    assigned |= set(_set_by(high[NEW])) if NEW in high else set()
    settings = [
        _lines(text, s)
        for text, node in ((base, below), (derived, above))
        for s in node.body
        if isinstance(s, ast.Assign | ast.AnnAssign)
        and not (node is below and _name(s) in assigned and isinstance(s, ast.AnnAssign) and s.value is None)
    ]
    others = [s for s in (*below.body, *above.body) if not isinstance(s, ast.Assign | ast.AnnAssign | ast.FunctionDef)]
    if any(not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)) for s in others):
        return None
    head = derived[: derived.index("class ")] + f"class {above.name}"
    bases = ", ".join(ast.unparse(b) for b in below.bases)
    head += f"({bases}):\n" if bases else ":\n"
    blocks = [_docstring(above, below), "".join(settings), *parts.values()]
    return head + "\n".join(block for block in blocks if block)


def _methods(node: ast.ClassDef) -> dict[str, ast.FunctionDef]:
    return {s.name: s for s in node.body if isinstance(s, ast.FunctionDef)}


def _set_by(constructor: ast.FunctionDef) -> Iterator[str]:
    """The attributes that a constructor gives the object."""
    for node in nodes(constructor):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self":
            yield node.attr


def _super_calls(method: ast.FunctionDef) -> Iterator[str]:
    """The methods of the base that a method calls."""
    for node in nodes(method):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Call):
            if isinstance(node.value.func, ast.Name) and node.value.func.id == "super":
                yield node.attr


def _extended(base: str, low: ast.FunctionDef, derived: str, high: ast.FunctionDef) -> str | None:
    """A method of the derived class, with what the base's does in the place where it calls that."""
    body = high.body[1:] if ast.get_docstring(high) is not None else high.body
    name = high.name
    places = [i for i, s in enumerate(body) if isinstance(s, ast.Expr) and _is_super_call(s.value, name)]
    if len(places) != 1 or sum(called == name for called in _super_calls(high)) != 1:
        return None
    (place,), statement = places, body[places[0]]
    assert isinstance(statement, ast.Expr)
    call = statement.value
    assert isinstance(call, ast.Call)
    if any(isinstance(n, ast.Return | ast.Yield | ast.YieldFrom) for n in symbols.own_nodes(low)):
        return None
    given = _given(low, call)
    if given is None:
        return None
    stores = {n.id for n in nodes(low) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    stores |= {s.name for s in low.body if isinstance(s, ast.FunctionDef)}
    known = {n.id for n in nodes(high) if isinstance(n, ast.Name)} | symbols.parameter_names(high)
    if stores & known:
        return None
    changed = {name: value for name, value in given.items() if value != name}
    counts = {p: sum(isinstance(n, ast.Name) and n.id == p for n in nodes(low)) for p in changed}
    if any(counts[p] > 1 and not (v.isidentifier() or _is_constant(v)) for p, v in changed.items()):
        return None
    low_body = low.body[1:] if ast.get_docstring(low) is not None else low.body
    if not low_body:
        return None
    moved = _slice(base, low_body[0], low_body[-1])
    if low.args.kwarg is not None:
        handed_on = re.compile(rf", \*\*{low.args.kwarg.arg}\b")
        if len(handed_on.findall(moved)) != 1 or moved.count(low.args.kwarg.arg) != 1:
            return None
        more = "".join(f", {k.arg}={ast.unparse(k.value)}" for k in call.keywords if k.arg not in given)
        moved = handed_on.sub(lambda _: more, moved)
    if changed:
        moved = with_expressions(moved, changed)
    lines = derived.splitlines(keepends=True)
    head = "".join(lines[first_line(high) - 1 : first_line(statement) - 1])
    rest = _slice(derived, body[place + 1], body[-1]) if body[place + 1 :] else ""
    return head + moved + rest


def _is_super_call(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == f"super().{name}"


def _given(low: ast.FunctionDef, call: ast.Call) -> dict[str, str] | None:
    """What a call passes for each parameter of the base's constructor."""
    plain = [a.arg for a in symbols.positional_parameters(low)][1:]
    every = [*plain, *(a.arg for a in low.args.kwonlyargs)]
    if low.args.vararg or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    given = {name: ast.unparse(value) for name, value in zip(plain, call.args, strict=False)}
    taken = {k.arg: ast.unparse(k.value) for k in call.keywords if k.arg is not None}
    given |= {name: value for name, value in taken.items() if name in every or low.args.kwarg is None}
    given = {name: ast.unparse(value) for name, value in defaults(low).items()} | given
    return given if set(given) == set(every) and all(k.arg is not None for k in call.keywords) else None


def _is_constant(code: str) -> bool:
    return isinstance(ast.parse(code, mode="eval").body, ast.Constant)


def _name(statement: ast.Assign | ast.AnnAssign) -> str | None:
    target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
    return target.id if isinstance(target, ast.Name) else None


def _lines(text: str, node: ast.stmt) -> str:
    return _slice(text, node, node)


def _slice(text: str, first: ast.stmt, last: ast.stmt) -> str:
    """The lines of some statements, with the comments directly above them."""
    lines = text.splitlines(keepends=True)
    start = first_line(first)
    while lines[start - 2].lstrip().startswith("#"):
        start -= 1
    chosen = lines[start - 1 : last.end_lineno]
    return "".join(chosen) if chosen[-1].endswith("\n") else "".join(chosen) + "\n"


def _docstring(above: ast.ClassDef, below: ast.ClassDef) -> str:
    """What both classes say of themselves, the derived one first."""
    texts = [text for node in (above, below) if (text := ast.get_docstring(node))]
    if not texts:
        return ""
    lines = "\n\n".join(texts).split("\n")
    if len(lines) == 1:
        return f'    """{lines[0]}"""\n'
    return "\n".join(["    " + line if line else "" for line in [f'"""{lines[0]}', *lines[1:]]]) + '\n    """\n'
