"""Calls of the text's own functions and classes: whether their arguments fit the parameters."""

from __future__ import annotations

import ast
from collections import ChainMap
from collections.abc import Iterable
from dataclasses import dataclass

from t2j_lsp import symbols
from t2j_lsp.symbols import bound_names
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.source.folding.uses import bound_function

from .assignment import scope_name
from .problem import Problem

_Def = ast.FunctionDef | ast.AsyncFunctionDef
_SAME_SIGNATURE = (
    frozenset({"jit", "nnx.jit", "jax.jit", "staticmethod", "classmethod"}),
    frozenset({"override", "typing.override", "abstractmethod", "abc.abstractmethod"}),
    *map(names_with, (Trait.NO_GRADIENT, Trait.COMPILES, Trait.DROPPED_DECORATOR)),
)
"""Decorators that leave what a function can be called with, by name: of a text alone no facts are known."""
_EMPTY_BASES = frozenset({"nnx.Module", "nnx.Pytree", "object", "nn.Module", "torch.nn.Module", "Module"})
"""Bases whose constructor takes nothing."""


@dataclass(frozen=True)
class _Parameters:
    names: tuple[str, ...]
    """Those that may be given by position."""
    required: frozenset[str]
    keywords: frozenset[str]
    any_position: bool
    any_keyword: bool

    def misfit(self, node: ast.Call) -> str | None:
        """Why a call can't be bound; None where it can, or may."""
        spread = any(isinstance(a, ast.Starred) for a in node.args)
        unpacked = any(k.arg is None for k in node.keywords)
        given = [a for a in node.args if not isinstance(a, ast.Starred)]
        if len(given) > len(self.names) and not self.any_position:
            return f"takes {len(self.names)} positional arguments, and is given {len(given)}"
        taken = set(self.names[: len(given)]) if not spread else set()
        for keyword in node.keywords:
            name = keyword.arg
            if name is None:
                continue
            if name in taken:
                return f"is given {name!r} twice"
            if name not in self.keywords and not self.any_keyword:
                return f"has no parameter {name!r}"
            taken.add(name)
        missing = self.required - taken
        if missing and not spread and not unpacked:
            return f"is not given {', '.join(sorted(map(repr, missing)))}"
        return None


def misfits(tree: ast.Module) -> list[Problem]:
    """Calls of functions and classes that the text defines once, which fail by their arguments alone."""
    calls = _Calls(tree)
    names = ChainMap(_definitions(tree.body))
    for statement in tree.body:
        calls.read(statement, (), None, names)
    return calls.problems


_Names = ChainMap[str, ast.stmt | None]
"""What defines each name that a scope sees; None where it isn't a function or class alone."""


def _definitions(body: Iterable[ast.stmt]) -> dict[str, ast.stmt | None]:
    made: dict[str, ast.stmt | None] = {}
    for statement in body:
        for name in bound_names([statement]):
            known = isinstance(statement, ast.FunctionDef | ast.ClassDef) and name not in made
            made[name] = statement if known else None
    return made


class _Calls:
    def __init__(self, tree: ast.Module) -> None:
        self.problems: list[Problem] = []
        rebinding = (n for n in symbols.walk(tree) if isinstance(n, ast.Global | ast.Nonlocal))
        self.rebound = {name for node in rebinding for name in node.names}

    def read(self, node: ast.AST, path: tuple[str, ...], owner: ast.ClassDef | None, names: _Names) -> None:
        """Note the calls in a node that fail, in a scope that sees these names."""
        match node:
            case ast.ClassDef():
                path, owner = (*path, scope_name(node)), node
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                path = (*path, scope_name(node))
                given = dict.fromkeys(symbols.parameter_names(node))
                names = names.new_child({**_definitions(node.body), **given})
            case ast.Lambda():
                names = names.new_child(dict.fromkeys(symbols.parameter_names(node)))
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                targets = (n.id for g in node.generators for n in symbols.walk(g.target) if isinstance(n, ast.Name))
                names = names.new_child(dict.fromkeys(targets))
            case ast.Call(func=ast.Call() as made) if (function := bound_function(made)) is not None:
                places = [*made.args[1:], *node.args]
                merged = ast.Call(function, places, [*made.keywords, *node.keywords], lineno=node.lineno)
                self.read(merged, path, owner, names)
                return
            case ast.Call(func=ast.Name(id=name)) if name not in self.rebound:
                parameters = self._called(names.get(name), names)
                if parameters is not None and (reason := parameters.misfit(node)) is not None:
                    self.problems.append(Problem(node.lineno, path, name, True, f"{name} {reason}"))
            case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name)) if owner is not None:
                method = self._method(owner, name, names)
                if method is not None and (parameters := _parameters(method, 1)) is not None:
                    reason = parameters.misfit(node)
                    if reason is not None and not self._assigned(owner, name):
                        self.problems.append(Problem(node.lineno, path, name, True, f"self.{name} {reason}"))
            case _:
                pass
        for child in symbols.children(node):
            self.read(child, path, owner, names)

    def _called(self, definition: ast.stmt | None, names: _Names) -> _Parameters | None:
        match definition:
            case ast.FunctionDef():
                return _parameters(definition, 0)
            case ast.ClassDef() if not definition.keywords and not definition.decorator_list:
                return self._constructor(definition, names)
            case _:
                return None

    def _constructor(self, node: ast.ClassDef, names: _Names, depth: int = 0) -> _Parameters | None:
        if depth > 20 or self._own_method(node, "__new__") is not None or node.decorator_list:
            return None
        init = self._own_method(node, "__init__")
        if init is not None:
            return _parameters(init, 1)
        if len(node.bases) != 1:
            return None if node.bases else _Parameters((), frozenset(), frozenset(), False, False)
        base = node.bases[0]
        if isinstance(base, ast.Name) and isinstance(parent := names.get(base.id), ast.ClassDef):
            return self._constructor(parent, names, depth + 1)
        if ast.unparse(base) in _EMPTY_BASES:
            return _Parameters((), frozenset(), frozenset(), False, False)
        return None

    def _method(self, node: ast.ClassDef, name: str, names: _Names, depth: int = 0) -> _Def | None:
        """A method of the class or of its bases in the text; None where another base could have it first."""
        own = self._own_method(node, name)
        if own is not None or depth > 20:
            return own
        for base in node.bases:
            parent = names.get(base.id) if isinstance(base, ast.Name) else None
            if not isinstance(parent, ast.ClassDef):
                return None
            method = self._method(parent, name, names, depth + 1)
            if method is not None:
                return method
        return None

    def _own_method(self, node: ast.ClassDef, name: str) -> _Def | None:
        methods = [s for s in node.body if isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef) and s.name == name]
        return methods[0] if len(methods) == 1 else None

    def _assigned(self, node: ast.ClassDef, name: str) -> bool:
        """Whether the class has an attribute of that name, too."""
        return any(
            isinstance(n, ast.Attribute) and n.attr == name and isinstance(n.ctx, ast.Store) for n in symbols.walk(node)
        )


def _parameters(node: _Def, skipped: int) -> _Parameters | None:
    decorators = {ast.unparse(symbols.called_decorator(d)) for d in node.decorator_list}
    if any(_transparent(d) is False for d in node.decorator_list):
        return None
    if "staticmethod" in decorators:
        skipped = 0
    arguments = node.args
    plain = [a.arg for a in symbols.positional_parameters(node)]
    optional = set(plain[len(plain) - len(arguments.defaults) :]) if arguments.defaults else set()
    only = [a.arg for a in arguments.kwonlyargs]
    required = {a for a, d in zip(only, arguments.kw_defaults, strict=True) if d is None}
    names = tuple(plain[skipped:])
    return _Parameters(
        names,
        frozenset((set(names) - optional) | required),
        frozenset({*(a.arg for a in arguments.args), *only} - set(plain[:skipped])),
        arguments.vararg is not None,
        arguments.kwarg is not None,
    )


def _transparent(decorator: ast.expr) -> bool:
    if isinstance(decorator, ast.Call):
        named = ast.unparse(decorator.func)
        if named in ("functools.partial", "partial") and decorator.args:
            return _keeps_signature(decorator.args[0])
        return _keeps_signature(decorator.func)
    return _keeps_signature(decorator)


def _keeps_signature(decorator: ast.expr) -> bool:
    name = ast.unparse(decorator)
    return any(name in names for names in _SAME_SIGNATURE)
