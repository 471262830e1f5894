"""Whether a file has a helper already, as an earlier conversion wrote it."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import chain

from t2j_lsp import symbols
from t2j_lsp.symbols import named_parameters, walk
from t2j_lsp.translate.source.helpers import closure, defined, helpers

from .definitions import definition
from .specialise import WIDTHS, specialised


def defines(body: Sequence[ast.stmt], name: str) -> bool:
    """Whether statements define a name once, as the helper of that name: whole, or cut to its parameters."""
    definitions = [node for node in body if defined(node) == name]
    if len(definitions) != 1:
        return False
    plain, parameters = _plain(definitions[0]), _parameters(definitions[0])
    if plain == _dump(name):
        return True
    if not parameters or not _names([definitions[0]]) <= _names_of_helper(name):
        return False  # A function of the user's that has a helper's name.
    return any(plain == _cut(name, parameters, width) for width in WIDTHS)


def _parameters(node: ast.stmt) -> tuple[str, ...]:
    if not isinstance(node, ast.FunctionDef):
        return ()
    return tuple(a.arg for a in named_parameters(node))


def _names(code: Iterable[ast.AST]) -> set[str]:
    """The names, parameters and attributes in some code."""
    names: set[str] = set()
    for node in chain.from_iterable(map(walk, code)):
        match node:
            case ast.Name(id=name) | ast.arg(arg=name) | ast.Attribute(attr=name):
                names.add(name)
    return names


@cache
def _names_of_helper(name: str) -> set[str]:
    """Those in a helper and all that it uses: cutting it adds none."""
    return _names(definition(helper.text) for helper in closure({name}))


@cache
def _dump(name: str) -> str:
    return _plain(ast.parse(helpers()[name].text).body[0])


def _plain(node: ast.stmt) -> str:
    """A definition without its annotations, which may have been left out."""
    plain = copy.deepcopy(node)
    for one in symbols.walk(plain):
        if isinstance(one, ast.arg):
            one.annotation = None
        elif isinstance(one, ast.FunctionDef):
            one.returns = None
    return ast.dump(plain)


@cache
def _cut(name: str, parameters: tuple[str, ...], width: int) -> str:
    """A function among the helpers with these parameters alone, the others at their defaults."""
    call = ast.parse(f"{name}({', '.join(f'{one}={one}' for one in parameters)})")
    texts = {h.name: h.text for h in specialised(closure({name}), call, {}, {name}, width=width)}
    return _plain(ast.parse(texts[name]).body[0])
