"""Classes among the helpers: constructor parameters, attributes that are literals, methods that nobody calls.

A class is only cut if all of its uses are known, those of its bases and of the classes that derive from it too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache

from t2j_lsp.symbols import nearest
from t2j_lsp.translate.source.assignments import assigned

from .arguments import decided, drop_arguments
from .called import CALL, drop_agreed, method_calls, moved_in, object_calls, of_list, without_unpassed
from .constants import folded, without_instances
from .definitions import definition, is_given, nodes
from .docstrings import switched_off
from .family import Family
from .given import given, known_calls, never_none, with_values
from .idle_attributes import without_attribute
from .literals import is_literal, literal
from .signatures import NEW, without_methods, without_parameters
from .uses import HelperCall, Index, UseFinder

MODES = frozenset(("deterministic", "use_running_average", "training", "decode"))
"""Attributes that Flax sets from outside."""
_FLAX_WORDS = """
_length append apply axes beta bias deterministic dropout dtype embedding epsilon extend head_dim in_features insert
keys kernel kernel_size layer_instance layers lower mean module momentum n_steps ndim negative_slope num_embeddings
num_heads out_features padding rate remove rngs scale scan shape size step T threshold update use_running_average value
values var zeros
"""
_READ_WITH_WEIGHTS = frozenset(("parametrized",))
FLAX_NAMES = frozenset(_FLAX_WORDS.split()) | _READ_WITH_WEIGHTS
"""Attributes and methods of the helpers whose names stand in Flax's own code too, or in what loads their weights."""

LIST_METHODS = frozenset(("add_module", "append", "extend", "insert", "_assign", "__setitem__", "__delitem__"))
"""Methods that change a container: those that a file doesn't use go, as they do with a stock `nnx.Sequential`."""
_OF_NO_LIST = frozenset(("add_module",))
"""What a container is asked for wherever the output says it: ``self.fc = layer`` in a class of one becomes that."""
SLICE = "slice"
"""Stands among the methods that a file may call of a Sequential for slices of one."""
READING_METHODS = frozenset(("__len__", "__iter__", "__getitem__"))
"""Those that read a container: they go where none is read, as a stock `nnx.Sequential` has none of them."""

_MIXINS = {"__setitem__": ("update", "setdefault", "reverse"), "__delitem__": ("pop", "popitem", "clear", "remove")}
"""The inherited methods of `nnx.Dict` and `nnx.List` that set and delete items, as mutable collections do."""
INHERITED = frozenset(name for names in _MIXINS.values() for name in names)

_ENTERED = frozenset(("__enter__", "__exit__"))
"""What a ``with`` block calls."""

LIBRARIES = frozenset(("jax", "jnp", "nnx", "optax", "np", "math", "functools"))


def fold_classes(texts: dict[str, str], finder: UseFinder, user: Index) -> None:
    """One round over the classes among the helpers."""
    nodes = {name: node for name, text in texts.items() if isinstance(node := definition(text), ast.ClassDef)}
    family = Family(finder, nodes)
    for name in nodes:
        if family.is_known(name):
            _fold_constructor(texts, name, family)
    for name in nodes:
        lists = LIST_METHODS if not family.has_protocol(name) else ()
        if unasked := frozenset(
            m for m in lists if family.has(name, m) and not _asked_for(m, nodes[name], family, user)
        ):
            texts[name] = without_methods(texts[name], unasked)
        elif unread := frozenset(_reading(name, family, user)):
            texts[name] = without_methods(texts[name], unread)
        elif (whole := _without_slices(texts[name], nodes[name], user)) != texts[name]:
            texts[name] = whole
        elif family.is_known(name):
            _fold_attributes(texts, name, family, user)
            _fold_methods(texts, name, family, user)
            _drop_unpassed(texts, name, family, user)
            _move_in(texts, name, family, user)
            if restated := _restated(nodes[name], family):
                texts[name] = without_methods(texts[name], frozenset(restated))
            _drop_unread(texts, name, family, user, every=user.is_program or not family.is_plain(name))


def _fold_constructor(texts: dict[str, str], name: str, family: Family) -> None:
    node = definition(texts[name])
    assert isinstance(node, ast.ClassDef)
    function = next((s for s in node.body if isinstance(s, ast.FunctionDef) and s.name == NEW), None)
    if function is None:
        return
    made = [one for one in (name, *family.below(name)) if family.constructor(one) == name]
    calls = [(one, call) for one in made for call in family.finder.uses[one].calls]
    supers = [
        (other, call)
        for other in family.below(name)
        if family.has(other, NEW) and family.constructor(family.above[other][0]) == name
        for call in _super_calls(family.nodes[other], other)
    ]
    every = [call for _, call in (*calls, *supers)]
    if any(not call.is_plain for call in every):
        return
    bound = {parameter for one in made for parameter in family.finder.uses[one].bound}
    constants = decided(function, every, bound, shift=1)
    if not constants:
        unsure = {parameter for one in made for parameter in family.finder.uses[one].unsure}
        if every and (passed := given(function, every, unsure, shift=1)):
            texts[name] = never_none(texts[name], passed, NEW)
        if every and not bound:
            texts[name] = with_values(texts[name], known_calls(function, every, unsure, shift=1), NEW)
        return
    names = frozenset(known for known, _ in constants)
    texts[name] = without_parameters(folded(texts[name], constants, NEW), NEW, names, switched_off(constants))
    for one in made:
        drop_arguments(texts, one, function, names, [call for who, call in calls if who == one], shift=1)
    drop_arguments(texts, f"super().{NEW}", function, names, [call for _, call in supers], shift=1)


def _super_calls(node: ast.ClassDef, home: str) -> list[HelperCall]:
    return [
        HelperCall(call, home)
        for call in nodes(node)
        if isinstance(call, ast.Call) and ast.unparse(call.func) == f"super().{NEW}"
    ]


def _fold_methods(texts: dict[str, str], name: str, family: Family, user: Index) -> None:
    """Fold the parameters of methods that only the class and its kin call, on ``self``."""
    kin = family.kin(name)
    for method in [s for s in family.nodes[name].body if isinstance(s, ast.FunctionDef) and not s.decorator_list]:
        if (
            method.name.startswith("__")
            or method.name in user.words
            or method.name in FLAX_NAMES
            and not family.is_plain(name)
        ):
            continue
        if sum(family.has(one, method.name) for one in kin) != 1:
            continue
        reads = [n for n in family.finder.own.reads.get(("attribute", method.name), []) if not of_library(n)]
        calls = [
            HelperCall(c, family.finder.homes[n]) for n in reads if isinstance(c := family.finder.parents[n], ast.Call)
        ]
        own = all(isinstance(n, ast.Attribute) and ast.unparse(n.value) == "self" for n in reads)
        plain = all(call.is_plain and call.home in kin and call.node.func in reads for call in calls)
        if not own or not plain or len(calls) != len(reads) or not calls:
            continue
        constants = decided(method, calls, (), shift=1)
        if constants:
            names = frozenset(known for known, _ in constants)
            texts[name] = without_parameters(
                folded(texts[name], constants, method.name), method.name, names, switched_off(constants)
            )
            drop_arguments(texts, f"self.{method.name}", method, names, calls, shift=1)
            return  # the tree of the class is another one now


def _move_in(texts: dict[str, str], name: str, family: Family, user: Index) -> None:
    """Put what a method that is one expression returns where ``self`` calls it, once, if nothing else names it."""
    if family.kin(name) != [name] or definition(texts[name]) is not family.nodes[name]:
        return
    for method in (s for s in family.nodes[name].body if isinstance(s, ast.FunctionDef) and not s.decorator_list):
        asked = method.name in user.words or method.name in FLAX_NAMES or method.name.startswith("__")
        if not asked and len(family.finder.own.reads.get(("attribute", method.name), [])) == 1:
            if (moved := moved_in(texts[name], method)) is not None:
                texts[name] = moved
                return


def _drop_unpassed(texts: dict[str, str], name: str, family: Family, user: Index) -> None:
    """Fold the parameters of methods that no call passes, in a program: other files may call a module otherwise."""
    if not user.is_program or definition(texts[name]) is not family.nodes[name]:
        return  # something was folded in this round
    for method in (s for s in family.nodes[name].body if isinstance(s, ast.FunctionDef) and not s.decorator_list):
        calls = None
        if method.name == CALL and family.kin(name) == [name]:
            calls = object_calls(family.finder, name)
        elif not method.name.startswith("_") and family.is_plain(name):
            calls = method_calls(family.finder, method.name)
        if calls and (changed := without_unpassed(texts[name], method, calls)) != texts[name]:
            texts[name] = changed
            return
        if method.name == CALL and calls and drop_agreed(texts, name, method, calls):
            return


def _reading(name: str, family: Family, user: Index) -> Iterator[str]:
    """The methods of a Sequential that read it, if nothing in its own code does."""
    node, asked = family.nodes[name], user.asked_of_containers
    if asked is not None and _is_sequential(node):
        calls = {ast.unparse(n) for n in nodes(node) if isinstance(n, ast.Call | ast.For)}
        if not any(call in text for text in calls for call in ("list(self)", "len(self)", "in self:")):
            yield from (m for m in READING_METHODS if family.has(name, m) and m not in asked)


def _is_sequential(node: ast.ClassDef) -> bool:
    return [ast.unparse(base) for base in node.bases] == ["nnx.Sequential"]


def _without_slices(text: str, node: ast.ClassDef, user: Index) -> str:
    """A Sequential without what it does for slices, in a program that takes none."""
    whole = user.is_program and SLICE not in (user.asked_of_containers or (SLICE,)) and _is_sequential(node)
    return without_instances(text, SLICE) if whole else text


def _asked_for(method: str, node: ast.ClassDef, family: Family, user: Index) -> bool:
    """Whether anything in the output may call a method by its name, or by the syntax that stands for it."""
    sequential = any(ast.unparse(base) == "nnx.Sequential" for base in node.bases)
    asked = user.asked_of_containers if sequential else None
    if method in ("__setitem__", "__delitem__") and (asked is None or method in asked):
        kind = ast.Store if method == "__setitem__" else ast.Del
        inherited = () if sequential else _MIXINS[method]
        if any(name in user.words or family.finder.own.reads.get(("attribute", name)) for name in inherited):
            return True
        return kind in user.items
    own = [n for n in family.finder.own.reads.get(("attribute", method), []) if not of_list(n, family.finder)]
    words = user.words if asked is None else asked | user.strings | user.words & _OF_NO_LIST
    return method in words or any(_function(n, family.finder) != method for n in own)


def _function(node: ast.AST, finder: UseFinder) -> str | None:
    """The name of the function that a node stands in."""
    function = nearest(ast.FunctionDef, node, finder.parents)
    return function.name if function is not None else None


def of_library(node: ast.expr) -> bool:
    """Whether a node is a name of a library, `jax.lax.scan`."""
    root = node
    while isinstance(root, ast.Attribute):
        root = root.value
    return node is not root and isinstance(root, ast.Name) and root.id in LIBRARIES


# --- attributes -------------------------------------------------------------------------------------------------------


def _fold_attributes(texts: dict[str, str], name: str, family: Family, user: Index) -> None:
    """Put literals for the attributes of ``self`` that are given one literal, once, wherever the class is made."""
    constants = tuple(_literal_attributes(name, family, user))
    if not constants:
        if family.kin(name) == [name] and (held := frozenset(_given_attributes(name, family, user))):
            texts[name] = never_none(texts[name], held)
        return
    for one in (name, *family.below(name)):
        texts[one] = folded(texts[one], constants)


def _literal_attributes(name: str, family: Family, user: Index) -> Iterator[tuple[str, str]]:
    kin = family.kin(name)
    stores = [s for one in kin for s in _stores(family.nodes[one])]
    if any(pattern is None for one in kin for pattern in _computed(family.nodes[one])):
        return
    patterns = [p for one in kin for p in _computed(family.nodes[one]) if p is not None]
    for attribute, value, sure in _stores(family.nodes[name]):
        if attribute in MODES or not sure or value is None or not is_literal(value):
            continue
        if sum(known == attribute for known, _, _ in stores) != 1 or attribute in user.stored | user.keywords:
            continue
        if not any(all(part in attribute for part in parts) for parts in patterns):
            yield f"self.{attribute}", literal(value)


def _given_attributes(name: str, family: Family, user: Index) -> Iterator[str]:
    """The attributes of ``self`` that are never None."""
    stores = list(_stores(family.nodes[name]))
    if any(True for _ in _computed(family.nodes[name])):
        return
    for attribute in {known for known, _, _ in stores} - user.stored - user.keywords - MODES:
        own = [(value, sure) for known, value, sure in stores if known == attribute]
        if all(is_given(value) for value, _ in own) and any(sure for _, sure in own):
            yield f"self.{attribute}"


@cache
def _stores(node: ast.ClassDef) -> tuple[tuple[str, ast.expr | None, bool], ...]:
    """The attributes that a class assigns, what it assigns, and whether it always does, first of all."""
    return tuple(_each_store(node))


def _each_store(node: ast.ClassDef) -> Iterator[tuple[str, ast.expr | None, bool]]:
    for statement in node.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
                yield name, statement.value, True
            case ast.Assign(targets=[ast.Tuple()]):
                yield from ((t.id, value, True) for t, value in assigned(statement) if isinstance(t, ast.Name))
            case ast.FunctionDef():
                sure = set(statement.body) if statement.name == NEW else set()
                yield from _stores_of(statement, sure)


def _stores_of(function: ast.FunctionDef, sure: Iterable[ast.stmt]) -> Iterator[tuple[str, ast.expr | None, bool]]:
    always = set(sure)
    for statement in nodes(function):
        targets: list[tuple[ast.expr, ast.expr | None]] = []
        match statement:
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                targets = list(zip(names, values, strict=True)) if len(names) == len(values) else []
                targets = targets or [(n, None) for n in names]
            case ast.Assign():
                targets = [(t, statement.value) for t in statement.targets]
            case ast.AugAssign() | ast.AnnAssign():
                targets = [(statement.target, None)]
            case ast.For() | ast.comprehension():
                targets = [(n, None) for n in nodes(statement.target) if isinstance(n, ast.Attribute)]
            case ast.Delete() | ast.withitem():
                targets = [(n, None) for n in nodes(statement) if isinstance(n, ast.Attribute)]
        for target, value in targets:
            for inner in [target] if isinstance(target, ast.Attribute) else nodes(target):
                if isinstance(inner, ast.Attribute):
                    yield inner.attr, value if inner is target else None, statement in always


@cache
def _computed(node: ast.ClassDef) -> tuple[list[str] | None, ...]:
    """The names that a class computes for ``setattr``, as the parts of them that are known; None for any name."""
    return tuple(_each_computed(node))


def _each_computed(node: ast.ClassDef) -> Iterator[list[str] | None]:
    for call in nodes(node):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in ("setattr", "delattr"):
            match call.args[1]:
                case ast.JoinedStr(values=values):
                    yield [str(v.value) for v in values if isinstance(v, ast.Constant)]
                case ast.Constant(value=str() as name):
                    yield [name]
                case _:
                    yield None


# --- methods ----------------------------------------------------------------------------------------------------------


def _drop_unread(texts: dict[str, str], name: str, family: Family, user: Index, every: bool) -> None:
    """Take out methods and attributes that nothing names: neither the file, nor a helper, nor Flax.

    Unless it is ``every`` one, only those with an underscore.

    Where the file is no program, others may ask a module for what PyTorch's has, unless it is a layer of Flax with
    another behaviour: of those they can't, since they may be the stock layer as well.
    """
    node = family.nodes[name]
    read = {*user.words, *family.finder.own.words}
    if not family.is_plain(name):
        read |= FLAX_NAMES
    methods = {s.name for s in node.body if isinstance(s, ast.FunctionDef)}
    if not every:
        read |= {one for one in (*methods, *(a for a, _, _ in _stores(node))) if not one.startswith("_")}
    idle = methods - read if not family.is_called_back(name) else ()
    gone = {m for m in idle if not (m.startswith("__") and m.endswith("__"))}
    gone |= methods & _ENTERED if every and not user.enters else set()
    if gone:
        texts[name] = without_methods(texts[name], frozenset(gone))
    while (changed := without_attribute(texts[name], read)) != texts[name]:
        texts[name] = changed


def _restated(node: ast.ClassDef, family: Family) -> set[str]:
    """The methods that only call the base's with the same arguments, and a constructor that does nothing."""
    restated: set[str] = set()
    for method in (s for s in node.body if isinstance(s, ast.FunctionDef) and not s.decorator_list):
        body = method.body[1:] if ast.get_docstring(method) is not None else method.body
        if len(body) != 1:
            continue
        empty = isinstance(body[0], ast.Pass) and ast.unparse(method.args) == "self"
        if method.name == NEW and empty and {ast.unparse(base) for base in node.bases} <= {"nnx.Module"}:
            restated.add(NEW)
        base = next((m for one in family.above[node.name] for m in family.nodes[one].body if _is(m, method.name)), None)
        if isinstance(base, ast.FunctionDef) and isinstance(body[0], ast.Return | ast.Expr):
            names = [a.arg for a in method.args.args[1:]]
            same = ast.dump(base.args) == ast.dump(method.args) and not method.args.kwonlyargs
            if same and ast.unparse(body[0]).removeprefix("return ") == f"super().{method.name}({', '.join(names)})":
                restated.add(method.name)
    return restated


def _is(statement: ast.stmt, name: str) -> bool:
    return isinstance(statement, ast.FunctionDef) and statement.name == name
