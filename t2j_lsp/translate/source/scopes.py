"""Scopes: how branches join, what imports of neighbouring files resolve to."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from t2j_lsp.symbols import bound_as, scopes_around
from t2j_lsp.translate.rule.definitions import Class, Function
from t2j_lsp.translate.rule.facts import UNKNOWN, Fact, Qual
from t2j_lsp.translate.rule.join import join
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.library import CLASSES
from t2j_lsp.translate.rule.names import canonical, is_torch
from t2j_lsp.translate.rule.record import REGISTRY

from .text import Source

Resolve = Callable[[int, str], "str | None"]


def merge(into: dict[str, Fact], a: dict[str, Fact], b: dict[str, Fact]) -> None:
    """Join two branches. A name that only one of them binds keeps that fact."""
    merged: dict[str, Fact] = {}
    for name in a.keys() | b.keys():
        if name in a and name in b:
            merged[name] = join(a[name], b[name]) if a[name] is not b[name] else a[name]
        else:
            merged[name] = a[name] if name in a else b[name]
    replace_env(into, merged)


def replace_env(env: dict[str, Fact], new: dict[str, Fact]) -> None:
    if env is not new:
        env.clear()
        env.update(new)


_MISSING = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})


def is_fallback(node: ast.Try) -> bool:
    """``try: from a import f``, ``except ImportError: from b import f``: two places for one thing."""
    tries = any(isinstance(one, ast.Import | ast.ImportFrom) for one in node.body)
    caught = [h.type.elts if isinstance(h.type, ast.Tuple) else [h.type] for h in node.handlers]
    return tries and any(e is None or isinstance(e, ast.Name) and e.id in _MISSING for types in caught for e in types)


def merge_fallback(into: dict[str, Fact], node: ast.Try, tried: dict[str, Fact], other: dict[str, Fact]) -> None:
    """Join the two ways of a fallback. An imported name is what is known of it, as each stands for the other."""
    imports = [one for one in node.body if isinstance(one, ast.Import | ast.ImportFrom)]
    imported = {bound_as(alias) for one in imports for alias in one.names}
    known: dict[str, Fact] = {}
    for name in tried.keys() & other.keys():
        if tried[name] != other[name] and not (_is_known(tried[name]) and name not in imported):
            first = next((fact for fact in (tried[name], other[name]) if _is_known(fact)), None)
            known |= {name: first} if first is not None else {}
    merge(into, tried | known, other | known)


def _is_known(fact: Fact) -> bool:
    """Whether it is a class or function that is in sight, or one of a library that has rules."""
    if not isinstance(fact, Qual):
        return isinstance(fact, Class | Function)
    if fact.name in LAYERS or fact.name in CLASSES or REGISTRY.get(fact.name) is not None:
        return True
    return is_torch(fact.name) and any(name.startswith(f"{fact.name}.") for name in (*LAYERS, *REGISTRY.rules))


def star_names(module: str) -> dict[str, Fact]:
    """What ``from torch.nn import *`` binds, as far as rules know it."""
    prefix = canonical(module) + "."
    names = [*REGISTRY.rules, *LAYERS, *CLASSES]
    return {n[len(prefix) :]: Qual(n) for n in names if n.startswith(prefix) and "." not in n[len(prefix) :]}


def may_be_import(source: Source, node: ast.AST) -> bool:
    """Whether an import of the module level may bind what a name means: it is no tensor whatever it is asked for."""
    if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
        return False
    imports = [at for at in source.bound_at.get(node.id, ()) if isinstance(at, ast.alias) and bound_as(at) == node.id]
    return any(not scopes_around(at, source.parents) for at in imports) and source.home(node) is None


def starred_names(source: Source, env: Mapping[str, Fact]) -> frozenset[str]:
    """Names that an import of everything brings from PyTorch, but what they are isn't in sight.

    Rules know them, and a star behind PyTorch's may bring others; or no rule does, and only PyTorch's can bring them.
    """
    stars = [n for n in source.tree.body if isinstance(n, ast.ImportFrom) and n.names[0].name == "*" and not n.level]
    of_torch = [n.module or "" for n in stars if is_torch(n.module or "")]
    given = {name for module in of_torch for name in star_names(module)}
    if of_torch and len(of_torch) == len(source.symbols.stars):
        given |= source.symbols.unbound - given
    return frozenset(n for n in given if n in source.symbols.unbound and env.get(n, UNKNOWN) == UNKNOWN)


def relative_resolve(resolve: Resolve | None, level: int, module: str) -> Resolve | None:
    """``resolve`` as seen from the imported file.

    Its own relative imports start in its package, which is ``module`` itself if that is a package and the one around
    it if not: where nothing is found there, the other is tried.
    """
    if resolve is None:
        return None
    parts = module.split(".") if module else []
    around = parts[:-1]
    is_package = resolve(level, ".".join([*parts, "__init__"])) is not None
    packages = [parts, around] if is_package or not parts else [around, parts]

    def relative(inner: int, name: str) -> str | None:
        if inner == 0:
            return resolve(0, name)
        for package in packages:
            up = inner - 1
            base = package[: len(package) - up] if up <= len(package) else []
            target = ".".join([*base, name] if name else base)
            outer = level + max(0, up - len(package)) if level else 0
            if target or outer:
                resolved = resolve(outer, target)
                if resolved is not None:
                    return resolved
        return None

    return relative


def is_main(node: ast.AST) -> bool:
    """Whether it is ``if __name__ == "__main__":``, whose body is the program, as the rest of the module level is."""
    test = node.test if isinstance(node, ast.If) else None
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"
