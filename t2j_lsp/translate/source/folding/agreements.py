"""Flags that all calls of a file pass alike: they go from the calls, and their literals into the helper.

``nn.LSTM(4, 5, batch_first=True)`` in every place of a file needs no helper that knows of another order of axes.
Switches, names and None go, from constructors of layers, and only where the helper gets shorter. A number says
something where it stands, and so does what a function is asked, ``top_k(x, 2, largest=False)``: that goes only where
the function gets much shorter, as one that resizes images in seven ways does.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping

from t2j_lsp import symbols
from t2j_lsp.translate.source.helpers import Helper

from .definitions import defaults, definition, nodes
from .literals import is_literal, literal
from .signatures import NEW, without_arguments
from .uses import NOTHING_AGREED, Agreed, HelperCall, HelperUses, Index, UseFinder, is_partial

LEAST_GAIN = 1
"""Statement that a class has to lose."""
LEAST_GAIN_OF_FUNCTIONS = 6
"""Those that a function has to lose."""
LEAST_NODES = 60
"""Nodes of the syntax tree of a function that could lose them."""

LONGEST_LINE = 120
"""That of helpers."""

Cut = Callable[[Agreed], list[Helper]]
"""The helpers of a file, cut to its uses where its calls agree on these arguments."""


def may_agree(copied: Iterable[Helper], user: ast.Module, written: Mapping[str, str]) -> bool:
    """Whether some call of a helper passes a flag at all: most files have none, and nothing has to be cut to see it."""
    made = {written[h.name] for h in copied if h.name in written and _is_long(definition(h.text))}
    return any(
        isinstance(node, ast.Call)
        and any(_is_switch(k.value) for k in node.keywords)
        and any(isinstance(called, ast.Name) and called.id in made for called in (node.func, *node.args[:1]))
        for node in symbols.walk(user)
    )


def agreements(cut: Cut, user: ast.Module, written: Mapping[str, str]) -> Agreed:
    """The arguments that all calls of the user's code agree on, and without which helpers are shorter."""
    texts = _texts(cut(NOTHING_AGREED))
    finder = UseFinder(Index({None: user}), {name: definition(text) for name, text in texts.items()}, written)
    agreed: dict[str, tuple[tuple[str, str], ...]] = {}
    for name, uses in finder.uses.items():
        function = _signature(name, texts)
        if function is None or name not in written or not uses.known or None in uses.subclassed:
            continue
        constants = tuple(_constants(function, uses, finder, written[name]))
        if not constants:
            continue
        shorter = _texts(cut({**agreed, name: constants}))
        gain = LEAST_GAIN if isinstance(definition(texts[name]), ast.ClassDef) else LEAST_GAIN_OF_FUNCTIONS
        if _statements(shorter) <= _statements(texts) - gain and _are_gone(name, constants, shorter):
            agreed[name], texts = constants, shorter
    return agreed


def hold(agreed: Agreed, copied: list[Helper], user: ast.Module, written: Mapping[str, str]) -> bool:
    """Whether the user's code passes none of these arguments any more, and no helper asks for one."""
    texts = _texts(copied)
    finder = UseFinder(Index({None: user}), {name: definition(text) for name, text in texts.items()}, written)
    for name, constants in agreed.items():
        parameters = {parameter for parameter, _ in constants}
        uses = finder.uses.get(name)
        if uses is None:
            continue
        passed = {k.arg for call in uses.calls if call.home is None for k in call.node.keywords} | uses.bound
        if not uses.known or parameters & passed or not _are_gone(name, constants, texts):
            return False
    return True


def without_agreed(text: str, agreed: Agreed, written: Mapping[str, str]) -> str:
    """Code whose calls of helpers pass nothing that all calls agree on."""
    for name, constants in agreed.items():
        called = written.get(name, name)
        if called in text and _is_code(text):
            names = frozenset(parameter for parameter, _ in constants)
            text = _bare(without_arguments(text, called, frozenset(), names), called, names)
    return text


def _is_code(text: str) -> bool:
    """Whether a text is read alone: not if it is an expression that goes on in another line."""
    try:
        return bool(ast.parse(text).body)
    except SyntaxError:
        return False


def _bare(text: str, called: str, names: frozenset[str]) -> str:
    """``f`` for ``functools.partial(f, flag=True)``."""
    match ast.parse(text).body[0]:
        case ast.Expr(value=ast.Call(args=[ast.Name(id=function)]) as call) if is_partial(call) and function == called:
            kept = [k for k in call.keywords if k.arg not in names]
            return without_arguments(text, ast.unparse(call.func), frozenset(), names) if kept else called
    return text


def with_agreement(text: str, constants: Iterable[tuple[str, str]]) -> str:
    """A helper whose docstring says in its first paragraph what all calls agreed on."""
    node = definition(text)
    lines = text.split("\n")
    match getattr(node, "body", [])[:1]:
        case [ast.Expr(value=ast.Constant(value=str() as said, lineno=number))] if lines[number - 1].count('"""'):
            pass
        case _:
            return text
    line = lines[number - 1]
    agreed = "Here " + ", ".join(f"`{name}={value}`" for name, value in constants) + "."
    first, marks = said.split("\n")[0], '"""' if line.count('"""') == 2 else ""
    begin = line[: line.index('"""') + 3] + first
    if len(begin) + 1 + len(agreed) + len(marks) <= LONGEST_LINE:
        lines[number - 1] = f"{begin} {agreed}{marks}"
    else:
        indent = line[: line.index('"""')]
        lines[number - 1 : number] = [begin, "", indent + agreed, *([indent + marks] if marks else [])]
    described = "\n".join(lines)
    return described if _is_code(described) else text


def _texts(copied: list[Helper]) -> dict[str, str]:
    return {h.name: h.text for h in copied}


def _statements(texts: Mapping[str, str]) -> int:
    return sum(isinstance(node, ast.stmt) for text in texts.values() for node in nodes(definition(text)))


def _is_long(node: ast.AST) -> bool:
    """Whether a definition is that of a class, or of a function that may lose enough."""
    function = isinstance(node, ast.FunctionDef)
    return isinstance(node, ast.ClassDef) or function and sum(1 for _ in nodes(node)) > LEAST_NODES


def _signature(name: str, texts: Mapping[str, str]) -> ast.FunctionDef | None:
    """What is called with the arguments: a function, or what makes an instance of a class."""
    node = definition(texts[name]) if name in texts else None
    return node if isinstance(node, ast.FunctionDef) else _constructor(name, texts)


def _constructor(name: str, texts: Mapping[str, str]) -> ast.FunctionDef | None:
    """What makes an instance of a class, if that is among the helpers."""
    node = definition(texts[name]) if name in texts else None
    if not isinstance(node, ast.ClassDef):
        return None
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == NEW:
            return statement
    bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
    return next((constructor for base in bases if (constructor := _constructor(base, texts)) is not None), None)


def _are_gone(name: str, constants: tuple[tuple[str, str], ...], texts: Mapping[str, str]) -> bool:
    function = _signature(name, texts)
    if function is None or function.args.kwarg is not None:
        return False
    left = {a.arg for a in symbols.named_parameters(function)}
    return not left & {parameter for parameter, _ in constants}


def _constants(
    function: ast.FunctionDef, uses: HelperUses, finder: UseFinder, called: str
) -> Iterator[tuple[str, str]]:
    """The parameters for which all of the user's calls pass one literal, by name."""
    sites = list(_sites(finder, called))
    direct = {id(site) for site in sites if site is not None}
    if not sites or None in sites:
        return
    plain = [a.arg for a in symbols.positional_parameters(function)]
    plain = plain[function.name == NEW :]
    others = [c for c in uses.calls if c.home is None and id(c.node) not in direct]
    for name, default in defaults(function).items():
        place = plain.index(name) if name in plain else None
        if any(call.argument(place, name) is not None for call in others):
            continue
        passed = [_passed(site, place, name, default) for site in sites if site is not None]
        said = any(k.arg == name for site in sites if site is not None for k in site.keywords)
        if None not in passed and len(set(passed)) == 1 and said:
            yield name, passed[0] or ""


def _sites(finder: UseFinder, called: str) -> Iterator[ast.Call | None]:
    """The calls of a helper by its own name, and the partials of it; None for any other use."""
    user = finder.indexes[0]
    for node in user.of_module(called):
        match user.parents.get(node):
            case ast.Call() as call if call.func is node:
                yield call if HelperCall(call, None).is_plain else None
            case ast.Call(args=[first]) as call if first is node and is_partial(call):
                yield call if HelperCall(call, None).is_plain else None
            case _:
                yield None


def _passed(site: ast.Call, place: int | None, name: str, default: ast.expr) -> str | None:
    """The literal that a call passes by name, or leaves to the default; None if there is no such literal."""
    value = next((k.value for k in site.keywords if k.arg == name), None)
    if value is None and (is_partial(site) or place is not None and place < len(site.args)):
        return None
    value = default if value is None else value
    return literal(value) if _is_switch(value) and is_literal(value) else None


def _is_switch(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, bool | str | None)
