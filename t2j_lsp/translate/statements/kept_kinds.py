"""Whether an assignment gives a parameter or buffer its shape and dtype: ``self.mean = 0.9 * self.mean + m``.

A variable of Flax that is written into, ``self.mean[...] = value``, keeps both, and one without elements stays empty.
"""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.rule.definitions import ClassInfo, Instance
from t2j_lsp.translate.rule.facts import Fact, Qual, Tensor
from t2j_lsp.translate.rule.library import Trait, names_with


def keeps_its_kind(ctx: Context, target: ast.Attribute, value: ast.expr, owner: Instance) -> bool:
    """Whether the value is an update of what is there, and nothing says that it is longer or of another dtype."""
    inside = list(symbols.walk(value))
    text = ast.unparse(target)
    updates = any(isinstance(n, ast.Attribute) and n.attr == target.attr and ast.unparse(n) == text for n in inside)
    if not updates or any(isinstance(n, ast.Call) and _joins(ctx.fact(n.func)) for n in inside):
        return False
    info = next((info for info in owner.cls.info.ancestry() if target.attr in info.said), None)
    new = ctx.fact(value)
    return info is None or all(_is_alike(first, new) for first in _made(info, target.attr))


def _made(info: ClassInfo, name: str) -> list[Fact]:
    """What constructors give an attribute."""
    return [fact for author, fact in info.said[name].items() if author is not None and author.name == "__init__"]


def _is_alike(old: Fact, new: Fact) -> bool:
    """Whether nothing says that two tensors have other axes, or dtypes of another kind."""
    if not isinstance(old, Tensor) or not isinstance(new, Tensor):
        return True
    axes = old.rank is None or new.rank is None or old.rank == new.rank
    if old.dtype is None or _kind(old.dtype) == "float" and new.dtype is None:
        return axes
    return axes and new.dtype is not None and _kind(old.dtype) == _kind(new.dtype)


def _kind(dtype: str) -> str:
    return next((kind for kind in ("bool", "complex", "int") if kind in dtype), "float")


def _joins(fact: Fact) -> bool:
    return isinstance(fact, Qual) and fact.name in names_with(Trait.JOINS)
