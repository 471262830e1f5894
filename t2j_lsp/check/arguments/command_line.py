"""Gives programs that read their command line one: the defaults of `argparse`, and placeholders for what is required.

A worker has no command line. Both workers make the same one up, from the parser itself: an option that must be given
and a positional argument get a word that their type, choices and number of values allow.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from t2j_lsp.check.program.names import HYPERPARAMETERS, value_for
from t2j_lsp.check.program.scopes import ModuleScope

GIVEN: list[str] = []
"""The words that were made up since this list was emptied."""
_own = False
"""Whether programs read the command line that they have."""
_WORDS = ("4", "0.1", "true", "1,2", "[1]", "{}", ".")
"""What a type of the program's own may take."""
_Parse = Callable[..., tuple[Any, list[str]]]


def install() -> None:
    """Gives every parser that reads the command line placeholders for what it requires."""
    original: _Parse = argparse.ArgumentParser.parse_known_args

    @functools.wraps(original)
    def parse_known_args(self: argparse.ArgumentParser, args: Any = None, namespace: Any = None) -> Any:
        if args or _own:
            return original(self, args, namespace)
        made = list(placeholders(self))
        GIVEN.extend(made)
        return original(self, made, namespace)

    argparse.ArgumentParser.parse_known_args = parse_known_args  # type: ignore[method-assign]


@contextlib.contextmanager
def as_given() -> Iterator[None]:
    """Programs read ``sys.argv`` as it is: a whole program runs with the arguments of its user."""
    global _own
    _own = True
    try:
        yield
    finally:
        _own = False


def placeholders(parser: argparse.ArgumentParser) -> Iterator[str]:
    """The command line that a parser requires at least: options first, so that none ends among positional values."""
    done: set[int] = set()
    for group in parser._mutually_exclusive_groups:
        if group.required and group._group_actions and not any(a.required for a in group._group_actions):
            yield from _option(parser, group._group_actions[0])
        done |= {id(action) for action in group._group_actions}
    for action in parser._actions:
        if action.option_strings and action.required and id(action) not in done:
            yield from _option(parser, action)
    for action in parser._actions:
        if action.option_strings or not action.required or id(action) in done:
            continue
        if isinstance(action, argparse._SubParsersAction):
            name = next(iter(action.choices))
            yield from (name, *placeholders(action.choices[name]))
        else:
            yield from _values(parser, action)


def _option(parser: argparse.ArgumentParser, action: argparse.Action) -> Iterator[str]:
    if action.option_strings:
        yield action.option_strings[-1]
    yield from _values(parser, action)


def _values(parser: argparse.ArgumentParser, action: argparse.Action) -> Sequence[str]:
    """As many words as an action takes at least."""
    counts = {None: 1, argparse.ONE_OR_MORE: 1, argparse.PARSER: 1, argparse.REMAINDER: 0}
    number = action.nargs if isinstance(action.nargs, int) else counts.get(action.nargs, 0)
    return [_value(parser, action)] * number


def _value(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    """The first word that an action's type and choices allow: one that its name suggests, or any."""
    known = [HYPERPARAMETERS[action.dest].strip('"')] if action.dest in HYPERPARAMETERS else []
    if action.choices is not None:
        words = [str(choice) for choice in action.choices]
    elif action.type is None or action.type is str:
        words = [*known, action.dest]
    else:
        kind = ast.Name(getattr(action.type, "__name__", ""))
        guess = value_for(action.dest, kind, ModuleScope([])) if kind.id in ("int", "float") else None
        words = [*known, *([str(guess)] if guess is not None else []), *_WORDS, action.dest]
    for word in words:
        with contextlib.suppress(Exception):  # whatever a type of the user's raises
            value = parser._get_value(action, word)
            if action.choices is None or value in action.choices:
                return word
    return words[0] if words else action.dest
