"""Which object of the JAX file stands for an object of the torch file.

A conversion keeps names. In code that somebody wrote it is the object whose ``# t2j:`` comment says so, or one with
the usual name: ``mlp``, ``mlp_apply`` or ``apply_mlp`` for ``MLP``. The comment stands above the object::

    # t2j: of="MLP", init="init_params", weights={"w1": "fc1.weight.T", "b1": "fc1.bias"}

``init`` names the function that makes the tree of parameters that a function takes first; ``weights`` says which of
its leaves (or of a module's variables) is which entry of torch's state dict.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import Any

from t2j_lsp import symbols
from t2j_lsp.check.inputs import CommentError, comments_for
from t2j_lsp.contract import HELPER_MARKS, HELPERS_DOCSTRING, ChannelsLast, channels_last_of, own_helpers

from .objects import CheckedObject
from .slice import Slicer

_PARAMETERS = frozenset({"params", "parameters", "variables", "weights", "theta", "p", "state", "model_params"})
_Definition = ast.FunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Counterpart:
    """An object of the JAX file. ``init``: functions that may make its parameters; ``weights`` as in the comment."""

    name: str
    takes_parameters: bool = False
    init: tuple[str, ...] = ()
    weights: dict[str, str] = field(default_factory=dict)
    renamed: bool = False
    """Whether a comment chose it, or its name is another than torch's: names inside may differ then."""
    written: bool = False
    """Whether t2j wrote the file: parameters that have torch's names are in torch's layouts."""
    layout: ChannelsLast | None = None
    """What it takes and gives channels-last, as a comment in it says."""


def counterpart(jax_side: Slicer, item: CheckedObject) -> Counterpart | None:
    """The object of the JAX file for one of the torch file; None where there is none. Raises CommentError."""
    definitions = {s.name: s for s in jax_side.scope.body if isinstance(s, _Definition)}
    said = {name: _settings(jax_side.text, node) for name, node in definitions.items()}
    chosen = next((name for name, entries in said.items() if entries.get("of") == item.name), None)
    if chosen is None and jax_side.modules.defines(jax_side.main, item.name):
        chosen = item.name
    if chosen is None:
        usual = (name for name in _usual_names(item.name) if name in definitions)
        chosen = next(usual, None)
    if chosen is None:
        return None
    node, entries = definitions.get(chosen), said.get(chosen, {})
    takes = item.is_class and isinstance(node, ast.FunctionDef) and _takes_parameters(node)
    init = (entries["init"],) if "init" in entries else tuple(_inits(definitions, chosen, item.name)) if takes else ()
    renamed, written = bool(entries) or chosen != item.name, _is_written(jax_side)
    weights, layout = entries.get("weights", {}), _layout(jax_side.text, node)
    return Counterpart(chosen, takes, init, weights, renamed, written, layout)


def _is_written(side: Slicer) -> bool:
    """Whether t2j wrote a file: it says so, or the module of its own does that it imports helpers from."""
    if any(mark in side.text for mark in HELPER_MARKS):
        return True
    own = own_helpers(side.path)
    if own is None or f"{own.stem} import " not in side.text:
        return False
    try:
        return own.read_bytes().startswith(HELPERS_DOCSTRING.encode())
    except OSError:
        return False


def _layout(text: str, node: _Definition | None) -> ChannelsLast | None:
    """What the comment in a function, or in the ``__call__`` of a class, says of its axes."""
    if isinstance(node, ast.ClassDef):
        calls = (s for s in node.body if isinstance(s, ast.FunctionDef) and s.name == "__call__")
        node = next(calls, None)
    if node is None:
        return None
    return channels_last_of("\n".join(text.splitlines()[max(node.lineno - 2, 0) : node.body[-1].lineno]))


def given_from_outside(torch_side: Slicer, jax_side: Slicer, item: CheckedObject, other: Counterpart) -> list[str]:
    """What a function of the torch file reads from outside and its counterpart has to be given: ``model``."""
    node = next((s for s in jax_side.scope.body if isinstance(s, ast.FunctionDef) and s.name == item.name), None)
    if isinstance(item.node, ast.ClassDef) or node is None or node.name != other.name:
        return []
    own = symbols.parameter_names(item.node)
    names = symbols.positional_parameters(node)
    more = [a.arg for a in names[: len(names) - len(node.args.defaults)] if a.arg not in own]
    return more if set(more) <= _read_outside(torch_side, item.node) else []


def _read_outside(side: Slicer, node: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Names that a function of a file, and those of the file that it names, read without giving them a value."""
    functions = {s.name: s for s in side.scope.body if isinstance(s, ast.FunctionDef)}
    outside: set[str] = set()
    waiting, seen = [node.name], set()
    functions.setdefault(node.name, node)  # type: ignore[arg-type]
    while waiting:
        name = waiting.pop()
        seen.add(name)
        names = [n for n in ast.walk(functions[name]) if isinstance(n, ast.Name)]
        read = {n.id for n in names} - {n.id for n in names if not isinstance(n.ctx, ast.Load)}
        outside |= read
        waiting += [one for one in read if one in functions and one not in seen]
    return outside


def _settings(text: str, node: _Definition) -> dict[str, Any]:
    entries = {k: v for k, v in comments_for(text, node).items() if k in ("of", "init", "weights")}
    weights = entries.get("weights", {})
    if not isinstance(weights, dict) or not all(isinstance(x, str) for pair in weights.items() for x in pair):
        raise CommentError('`weights` should be like weights={"w1": "fc1.weight.T", "b1": "fc1.bias"}')
    if not all(isinstance(entries.get(key, ""), str) for key in ("of", "init")):
        raise CommentError('`of` and `init` should be names in quotes: of="MLP", init="init_params"')
    return entries


def _usual_names(name: str) -> list[str]:
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
    flat = snake.replace("_", "")
    bases = list(dict.fromkeys([snake, flat, name]))
    return [
        *bases,
        *(f"{base}_{verb}" for base in bases for verb in ("apply", "forward", "fn")),
        *(f"{verb}_{base}" for base in bases for verb in ("apply", "forward")),
    ]


def _takes_parameters(node: ast.FunctionDef) -> bool:
    first = symbols.positional_parameters(node)[:1]
    return bool(first) and first[0].arg in _PARAMETERS


def _inits(definitions: dict[str, _Definition], chosen: str, torch: str) -> list[str]:
    """Functions that by their names make parameters, best first."""
    base = re.sub(r"^(apply|forward)_|_(apply|forward|fn)$", "", chosen)
    best = [f"init_{base}", f"{base}_init", f"init_{chosen}", f"{chosen}_init", f"init_{torch}", f"init_{base}_params"]
    others = [name for name in definitions if re.search(r"(^|_)(init|initialize|make_params|create_params)", name)]
    names = dict.fromkeys([*best, *others])
    return [name for name in names if isinstance(definitions.get(name), ast.FunctionDef)]
