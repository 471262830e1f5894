"""Scopes: how branches join, what imports of neighbouring files resolve to."""

from __future__ import annotations

from collections.abc import Callable

from t2j_lsp.translate.rule.facts import Fact, Qual
from t2j_lsp.translate.rule.join import join
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.library import CLASSES
from t2j_lsp.translate.rule.names import canonical
from t2j_lsp.translate.rule.record import REGISTRY

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


def star_names(module: str) -> dict[str, Fact]:
    """What ``from torch.nn import *`` binds, as far as rules know it."""
    prefix = canonical(module) + "."
    names = [*REGISTRY.rules, *LAYERS, *CLASSES]
    return {n[len(prefix) :]: Qual(n) for n in names if n.startswith(prefix) and "." not in n[len(prefix) :]}


def relative_resolve(resolve: Resolve | None, level: int, module: str) -> Resolve | None:
    """``resolve`` as seen from the imported file.

    Its own relative imports start in its package, which is ``module`` itself if that is a package and the one around
    it if not: the text doesn't say which, so the inner place is tried first.
    """
    if resolve is None:
        return None
    parts = module.split(".") if module else []

    def relative(inner: int, name: str) -> str | None:
        if inner == 0:
            return resolve(0, name)
        for package in (parts, parts[:-1]) if parts else (parts,):
            up = inner - 1
            base = package[: len(package) - up] if up <= len(package) else []
            target = ".".join([*base, name] if name else base)
            outer = level + max(0, up - len(package)) if level else 0
            if target or outer:
                found = resolve(outer, target)
                if found is not None:
                    return found
        return None

    return relative
