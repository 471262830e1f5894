"""Whether a file has a helper already, as an earlier conversion wrote it."""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from functools import cache

from t2j_lsp.symbols import named_parameters
from t2j_lsp.translate.source.helpers import closure, defined, helpers

from .specialise import WIDTHS, specialised


def defines(body: Sequence[ast.stmt], name: str) -> bool:
    """Whether statements define a name once, as the helper of that name: whole, or cut to its parameters."""
    definitions = [node for node in body if defined(node) == name]
    if len(definitions) != 1:
        return False
    plain, parameters = _plain(definitions[0]), _parameters(definitions[0])
    return plain == _dump(name) or any(plain == _cut(name, parameters, width) for width in WIDTHS)


def _parameters(node: ast.stmt) -> tuple[str, ...]:
    if not isinstance(node, ast.FunctionDef):
        return ()
    return tuple(a.arg for a in named_parameters(node))


@cache
def _dump(name: str) -> str:
    return _plain(ast.parse(helpers()[name].text).body[0])


def _plain(node: ast.stmt) -> str:
    """A definition without its annotations, which may have been left out."""
    plain = copy.deepcopy(node)
    for one in ast.walk(plain):
        if isinstance(one, ast.arg):
            one.annotation = None
        elif isinstance(one, ast.FunctionDef):
            one.returns = None
    return ast.dump(plain)


@cache
def _cut(name: str, parameters: tuple[str, ...], width: int) -> str | None:
    """A function among the helpers with these parameters alone, the others at their defaults."""
    call = ast.parse(f"{name}({', '.join(f'{one}={one}' for one in parameters)})")
    texts = {h.name: h.text for h in specialised(closure({name}), call, {}, {name}, width=width)}
    return _plain(ast.parse(texts[name]).body[0]) if parameters else None
