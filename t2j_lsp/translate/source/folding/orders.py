"""States of modules that are only saved, and loaded by name: nobody asks for the order of their names.

Where files hold nothing but such states, JAX makes them numpy's arrays by itself, in alphabetical order.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

from t2j_lsp import symbols
from t2j_lsp.symbols import nearest, positional_parameters

from .uses import HelperUses, Index

STATE, PLACES = "torch_arrays", "saved_places"
"""The helpers that give a module's state, and the places of what is in it."""
_ORDERED, _IF_LOOSE = "ordered: bool = True", ", ordered=not strict"
_OF_ANYTHING, _OF_STATES = "ArrayPickler(file).dump(value)", "pickle.dump(jax.device_get(value), file)"
_SAVES, _LOADS, _READS = "save_pickle", "load_state_dict", ("read_pickle", "read_plain_pickle", "load_pickle")
DEEPEST = 6
"""Names and functions of the file through which a value is followed."""


def without_idle_order(
    texts: Mapping[str, str], uses: Mapping[str, HelperUses], user: Index, written: Mapping[str, str]
) -> dict[str, str]:
    """The texts of helpers that all leave states in any order, if they are only saved and loaded, or that all sort."""
    changed = dict(texts)
    others = any(f"{PLACES}(" in text for name, text in texts.items() if name not in (STATE, PLACES, _LOADS))
    if not others and (STATE not in texts or _Saved(user, written).all(uses[STATE])):
        if STATE in texts:
            changed[STATE] = texts[STATE].replace(_ORDERED, _ORDERED.replace("True", "False"))
            if _SAVES in texts and _are_states(uses[_SAVES], written):
                changed[_SAVES] = texts[_SAVES].replace(_OF_ANYTHING, _OF_STATES)
    elif _LOADS in texts:
        changed[_LOADS] = texts[_LOADS].replace(_IF_LOOSE, "")
    return changed


def _are_states(saves: HelperUses, written: Mapping[str, str]) -> bool:
    """Whether every file is of one module's state."""
    first = [call.node.args[0] for call in saves.calls if call.node.args]
    made = [value.func for value in first if isinstance(value, ast.Call)]
    return (
        saves.known
        and all(isinstance(func, ast.Name) and func.id == written.get(STATE) for func in made)
        and len(made) == len(saves.calls)
    )


class _Saved:
    """Where the user's code saves states, and what it does with those that it reads from files."""

    def __init__(self, user: Index, written: Mapping[str, str]) -> None:
        self.user, self.written = user, written
        self.keys: set[object] = set()
        """The keys under which states stand in dictionaries that are saved; None for a state that stands alone."""

    def all(self, states: HelperUses) -> bool:
        """Whether every state goes into a file or a module, and into a module if it comes from a file."""
        calls = [call.node for call in states.calls]
        if not states.known or any(call.home is not None for call in states.calls):
            return False
        if not all(self._is_saved(call, None, 0) for call in calls):
            return False
        read = [n for name in _READS for n in self.user.of_module(self.written.get(name, ""))]
        return all(self._is_loaded(parent, 0) for n in read if isinstance(parent := self.user.parents[n], ast.Call))

    def _is_saved(self, value: ast.expr, key: object, depth: int) -> bool:
        """Whether a value is only saved or loaded, alone or under a key."""
        parent = self.user.parents[value]
        match parent:
            case ast.Dict() if value in parent.values:
                at = parent.keys[parent.values.index(value)]
                constant = at.value if isinstance(at, ast.Constant) and key is None else ...
                return self._is_saved(parent, constant, depth)
            case ast.Call(args=[first, *_]) if first is value and self._calls(parent, _SAVES):
                self.keys.add(key)
                return True
            case ast.Call(args=[_, second]) if second is value and key is None and self._calls(parent, _LOADS):
                return True
            case ast.Subscript(slice=ast.Constant(), ctx=ast.Load()) if key is None:
                return parent.value is value
            case ast.Call(func=ast.Name(id=name)) if value in parent.args and depth < DEEPEST:
                functions = self.user.definitions.get(name, [])
                plain = [positional_parameters(f) for f in functions]
                place = parent.args.index(value)
                if len(plain) != 1 or place >= len(plain[0]) or any(isinstance(a, ast.Starred) for a in parent.args):
                    return False
                return self._are_saved(_reads(functions[0], plain[0][place].arg), key, depth)
            case ast.Assign(targets=[ast.Name(id=name)]) if depth < DEEPEST:
                return self._are_saved(self._read_in_scope(parent, name), key, depth)
        return False

    def _are_saved(self, reads: Iterable[ast.Name], key: object, depth: int) -> bool:
        names = list(reads)
        return bool(names) and all(self._is_saved(n, key, depth + 1) for n in names)

    def _is_loaded(self, value: ast.expr, depth: int) -> bool:
        """Whether what a file holds is only asked for its parts, of which states go into modules."""
        parent = self.user.parents[value]
        match parent:
            case ast.Call(args=[_, second]) if second is value and self._calls(parent, _LOADS):
                return True
            case ast.Subscript(slice=ast.Constant(value=key)) if parent.value is value:
                if key not in self.keys:
                    return not self.keys & {None, ...}
                owner = self.user.parents[parent]
                return isinstance(owner, ast.Call) and self._calls(owner, _LOADS)
            case ast.Assign(targets=[ast.Name(id=name)]) if depth < DEEPEST:
                return all(self._is_loaded(n, depth + 1) for n in self._read_in_scope(parent, name))
        return False

    def _calls(self, call: ast.Call, helper: str) -> bool:
        return isinstance(call.func, ast.Name) and call.func.id == self.written.get(helper)

    def _read_in_scope(self, statement: ast.stmt, name: str) -> list[ast.Name]:
        """Where a variable is read: in its function, or anywhere if it is the file's."""
        if (scope := nearest(ast.FunctionDef, statement, self.user.parents)) is not None:
            return _reads(scope, name)
        return [n for n in self.user.reads.get(("name", name), ()) if isinstance(n, ast.Name)]


def _reads(scope: ast.AST, name: str) -> list[ast.Name]:
    inside = symbols.walk(scope)
    return [n for n in inside if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)]
