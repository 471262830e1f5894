"""The helpers of one file, cut to what the file uses of them.

Round by round, until nothing changes: parameters for which every call passes the same literal become that literal, what
the literal decides is folded, a function that is one expression moves to where it is called, and what nobody needs any
more is not written.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from t2j_lsp.symbols import positional_parameters
from t2j_lsp.translate.source.helpers import Helper, described, renamed

from .absent import without_absent
from .arguments import assigned_names, decided, drop_arguments
from .called import asked_of_objects
from .classes import INHERITED, LIST_METHODS, READING_METHODS, SLICE, fold_classes
from .constants import folded, without_instances
from .definitions import definition, free_names, is_given, members, nodes
from .docstrings import switched_off
from .evaluation import evaluated, pure_functions
from .given import given, known_calls, never_none, possible, tuple_length, value_kind, with_values, within
from .hierarchy import merge_classes
from .hooks import HOOKED, of_hooks_after_calls
from .inlining import SHORT, expression_of, inlined
from .joining import joined
from .labels import label_axes, of_labels
from .literals import is_literal, literal
from .merging import merged
from .options import without_idle_options
from .orders import PLACES, without_idle_order
from .own_gradients import BASE, of_one_array
from .pairing import paired
from .partials import as_partial
from .paths import of_paths
from .placing import placings
from .plainer import counted_up
from .rates import of_one_rate
from .repeated import without_repeated_questions
from .signatures import NEW, without_parameters
from .stock import DEFAULTS, without_stock_defaults
from .tied import TIED, of_tied_products
from .unrolling import unrolled
from .uses import NOTHING_AGREED, Agreed, HelperUses, Index, UseFinder
from .variables import without_answer, without_idle_variables

WIDTHS = (88, 100, 111, 120)
"""The lengths of lines that make a difference."""

MOST_ROUNDS = 40
"""Rounds after which the helpers are written as they are then."""


def specialised(
    copied: Sequence[Helper],
    user: ast.Module,
    renames: Mapping[str, str],
    named: set[str],
    asked: frozenset[str] | None = None,
    elsewhere: frozenset[str] = frozenset(),
    agreed: Agreed = NOTHING_AGREED,
    width: int = WIDTHS[0],
    labels: Mapping[str, int | None] = MappingProxyType({}),
) -> list[Helper]:
    """The helpers that the output ``user`` still needs, each before those that need it, with what it needs of them.

    ``named`` are those whose names the output means; others may be variables of the user's. ``asked`` are the methods
    that the code may call of a Sequential; without it, those that it calls of anything. ``elsewhere`` are names
    by which other files may ask what this one hands them. ``agreed`` are arguments that the user's calls don't pass,
    or need not (`agreements.py`). ``width`` is how long a line may get by what moves into it, ``labels`` the
    callables that are always given class labels, and the axes of these.
    """
    width = max([WIDTHS[0], *(w for w in WIDTHS if w <= width)])
    written = {h.name: renames.get(h.name, h.name) for h in copied if h.name in named}
    index = Index({None: user})
    index.asked_of_containers = asked
    index.elsewhere = elsewhere
    if index.is_program:
        index.words |= elsewhere
    texts = {h.name: h.text for h in copied}
    if index.is_program:
        texts = of_one_rate(without_absent(texts, user, named), index.words)
    if index.is_program and labels:
        definitions = {name: definition(text) for name, text in texts.items()}
        for name, axes in label_axes(UseFinder(index, definitions, written).uses, written, labels):
            texts[name] = of_labels(texts[name], name, axes)
    if index.is_program and HOOKED in texts:
        texts = of_hooks_after_calls(texts, user)
    if index.is_program and TIED in texts:
        texts = of_tied_products(texts, user, index)
    if BASE in texts:
        texts = of_one_array(texts, index, written)
    if PLACES in texts:
        definitions = {name: definition(text) for name, text in texts.items()}
        texts = without_idle_order(texts, UseFinder(index, definitions, written).uses, index, written)
    if any('"seek"' in text for text in texts.values()):
        definitions = {name: definition(text) for name, text in texts.items()}
        texts = of_paths(texts, UseFinder(index, definitions, written).uses, user, index.is_program)
    key = (tuple(texts.items()), frozenset(named), _asked(texts, index, written, agreed), width)
    known = _known.get(key)
    if known is None:
        cut = _cut(texts, _User(index, written, agreed, width), named)
        plain = {name: without_stock_defaults(text, _stock_base(name, cut)) for name, text in cut.items()}
        plain = {name: counted_up(without_repeated_questions(text)) for name, text in plain.items()}
        known = {name: joined(paired(text, width)) for name, text in plain.items()}
        known = {name: as_partial(text, width) for name, text in known.items()}
        _known[key] = known
        while len(_known) > MOST_KNOWN:
            del _known[next(iter(_known))]
    return [described(replace(h, text=known[h.name])) for h in copied if h.name in known]


def _stock_base(name: str, texts: Mapping[str, str]) -> str | None:
    """The layer of Flax that a class among the helpers derives from, if what is between them passes keywords on."""
    node = definition(texts[name])
    for base in getattr(node, "bases", ()):
        if isinstance(base, ast.Name) and base.id in texts:
            constructor = [s for s in getattr(definition(texts[base.id]), "body", ()) if getattr(s, "name", "") == NEW]
            return _stock_base(base.id, texts) if all(s.args.kwarg for s in constructor) else None
        if ast.unparse(base) in DEFAULTS:
            return ast.unparse(base)
    return None


MOST_KNOWN = 500
_known: dict[Hashable, dict[str, str]] = {}
"""Helpers that were cut, by what was asked of them."""


@dataclass(frozen=True)
class _User:
    """The user's code, what it calls the helpers, the arguments that its calls agree on, and how long its lines are."""

    index: Index
    written: Mapping[str, str]
    agreed: Agreed
    width: int

    def uses_of(self, texts: Mapping[str, str]) -> UseFinder:
        definitions = {name: definition(text) for name, text in texts.items()}
        return UseFinder(self.index, definitions, self.written, self.agreed)


def _asked(texts: Mapping[str, str], user: Index, written: Mapping[str, str], agreed: Agreed) -> Hashable:
    """All that the user's code says of what it uses of helpers: from the same, the same comes out."""
    finder = UseFinder(user, {name: definition(text) for name, text in texts.items()}, written)
    asked = tuple(
        (
            uses.known,
            frozenset(uses.bound),
            frozenset(uses.unsure),
            frozenset(uses.literals),
            uses.checked,
            frozenset(uses.subclassed),
            frozenset(uses.reads),
            frozenset(
                (tuple(map(_kind, c.node.args)), frozenset((k.arg, _kind(k.value)) for k in c.node.keywords))
                for c in uses.calls
                if c.home is None
            ),
        )
        for uses in finder.uses.values()
    )
    own = {name for text in texts.values() for name in members(text)} | INHERITED
    return (
        asked,
        asked_of_objects(finder, {name: definition(text) for name, text in texts.items()}),
        *(frozenset(own & names) for names in (user.words, user.stored, user.keywords, user.strings, user.elsewhere)),
        user.items,
        user.enters,
        user.is_program,
        _containers(user),
        tuple(sorted(agreed.items())),
    )


def _kind(argument: ast.expr) -> tuple[bool, str | None, int | None]:
    return is_given(argument), value_kind(argument), tuple_length(argument)


def _containers(user: Index) -> Hashable:
    asked = user.asked_of_containers
    return None if asked is None else (LIST_METHODS | READING_METHODS | {SLICE}) & asked


def _cut(texts: dict[str, str], user: _User, named: set[str]) -> dict[str, str]:
    for name, text in texts.items():
        # A class that only those make who are given one: if nobody else does, nobody has any.
        asks = re.compile(rf"isinstance\([^()]*\b{name}\b")
        if name not in named and isinstance(definition(text), ast.ClassDef) and any(map(asks.search, texts.values())):
            without = {other: without_instances(text, name) for other, text in texts.items()}
            without = _settled(without, user, named)
            if name not in without:
                return without
    return _settled(texts, user, named)


def _settled(before: dict[str, str], user: _User, named: set[str]) -> dict[str, str]:
    """The texts after as many rounds as change anything, and after functions are put where they alone are called."""
    for _ in range(MOST_ROUNDS):
        texts = _without_unused(_round(dict(before), user), named)
        if texts == before and (texts := _placed(before, user, named)) == before:
            break
        before = texts
    return before


def _placed(texts: dict[str, str], user: _User, named: set[str]) -> dict[str, str]:
    """The texts with one function or method in the place where it is called, if that makes no line too long."""
    for home, moved, gone in placings(texts, user.uses_of(texts), user.index, named, user.width):
        if _too_long(moved, user.width) <= _too_long(texts[home], user.width):
            return {name: moved if name == home else text for name, text in texts.items() if name != gone}
    return texts


def _round(texts: dict[str, str], user: _User) -> dict[str, str]:
    finder = user.uses_of(texts)
    for name, strings in possible({name: definition(text) for name, text in texts.items()}, finder.uses).items():
        texts[name] = within(texts[name], tuple(sorted(strings.items()))) if strings else texts[name]
    for name, uses in finder.uses.items():
        node = definition(texts[name])
        if isinstance(node, ast.FunctionDef):
            texts[name] = without_idle_options(texts[name], node, uses)
            _fold_function(texts, name, node, uses, user.width)
            if uses.known and uses.calls and all(isinstance(finder.parents[c.node], ast.Expr) for c in uses.calls):
                texts[name] = without_answer(texts[name])
    fold_classes(texts, finder, user.index)
    pure = pure_functions(texts)
    texts = {name: folded(unrolled(evaluated(text, pure)), ()) for name, text in texts.items()}
    texts = {name: merged(without_idle_variables(text), user.width) for name, text in texts.items()}
    finder = user.uses_of(texts)
    for name, uses in finder.uses.items():
        _move_in(texts, name, uses, user.width)
    for name in list(texts):
        _bind(texts, name, finder.uses)
    merge_classes(texts, finder.uses)
    return texts


def _fold_function(texts: dict[str, str], name: str, node: ast.FunctionDef, uses: HelperUses, width: int) -> None:
    constants = decided(node, uses.calls, uses.bound) if uses.known else ()
    if any(isinstance(d, ast.Call) for d in node.decorator_list):
        return  # a decorator with arguments may count or name the parameters
    if not constants:
        if uses.known and (passed := given(node, uses.calls, uses.unsure)):
            texts[name] = never_none(texts[name], passed, name)
        if uses.known and uses.calls and not uses.bound:
            texts[name] = with_values(texts[name], known_calls(node, uses.calls, uses.unsure), name)
        return
    names = frozenset(known for known, _ in constants)
    text = without_parameters(folded(texts[name], constants), name, names, switched_off(constants))
    if _statements(text) == _statements(texts[name]) and _too_long(text, width) > _too_long(texts[name], width):
        return  # a default that decides nothing may give a long value a name
    texts[name] = text
    drop_arguments(texts, name, node, names, uses.calls)


def _statements(text: str) -> int:
    return sum(isinstance(node, ast.stmt) for node in nodes(definition(text)))


def _too_long(text: str, width: int) -> int:
    """How many lines of code are longer, with each half of the width that they are; what is said is not broken."""
    remarks = (n for n in nodes(definition(text)) if isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant))
    said = {line for n in remarks for line in range(n.lineno, (n.end_lineno or n.lineno) + 1)}
    code = (line for number, line in enumerate(text.splitlines(), 1) if number not in said)
    return sum(1 + (len(line) - width) // (width // 2) for line in code if len(line) > width)


def _move_in(texts: dict[str, str], name: str, uses: HelperUses, width: int) -> None:
    """Put a function that is one expression where the other helpers call it."""
    if name not in texts or not uses.own or not uses.calls or uses.checked or uses.subclassed:
        return
    if not isinstance(definition(texts[name]), ast.FunctionDef):
        return
    expression = expression_of(texts[name])
    if expression is None or len(uses.calls) > 1 and len(expression) > SHORT:
        return
    for home in {call.home for call in uses.calls if call.home is not None and call.home != name}:
        moved = inlined(texts[home], texts[name])
        alone = len(uses.calls) == 1 and len(expression) <= SHORT
        if moved is not None and (alone or _too_long(moved, width) <= _too_long(texts[home], width)):
            texts[home] = moved


def _bind(texts: dict[str, str], name: str, uses: Mapping[str, HelperUses]) -> None:
    """Write ``f2 = functools.partial(f, 2)`` as a function of that name, where nothing else uses ``f``."""
    match definition(texts[name]):
        case ast.Assign(value=ast.Call(func=called, args=[ast.Name(id=function), *places], keywords=[])):
            pass
        case _:
            return
    made = definition(texts[function]) if function in texts else None
    if not isinstance(made, ast.FunctionDef) or ast.unparse(called) != "functools.partial":
        return
    reads = [n for n in uses[function].reads if n != name]
    plain = [a.arg for a in positional_parameters(made)][: len(places)]
    if reads or not all(map(is_literal, places)) or set(plain) & assigned_names(made):
        return
    constants = tuple((parameter, literal(value)) for parameter, value in zip(plain, places, strict=True))
    text = without_parameters(folded(texts[function], constants), function, frozenset(plain))
    texts[name] = renamed(text, {function: name})
    del texts[function]


def _without_unused(texts: dict[str, str], named: Iterable[str]) -> dict[str, str]:
    """The definitions that are needed for those that the user's code names."""
    needed: set[str] = set()
    todo = [name for name in named if name in texts]
    while todo:
        name = todo.pop()
        if name not in needed:
            needed.add(name)
            todo += [one for one in free_names(texts[name]) if one in texts]
    return {name: text for name, text in texts.items() if name in needed}
