"""What the output asks for: imports and helpers, found by their names, with clashes resolved."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import lru_cache

from .context import Context
from .facts import Qual

IMPORTS = {
    "jax": ("import jax", "jax"),
    "jnp": ("import jax.numpy as jnp", "jax.numpy"),
    "lax": ("from jax import lax", "jax.lax"),
    "np": ("import numpy as np", "numpy"),
    "nnx": ("from flax import nnx", "flax.nnx"),
    "optax": ("import optax", "optax"),
    "functools": ("import functools", "functools"),
    "math": ("import math", "math"),
    "einops": ("import einops", "einops"),
}
"""Import roots that templates may use: the line, and what it binds."""


class Restart(Exception):
    """Something was learnt that an earlier edit had to know: translate again, knowing it."""

    def __init__(self, name: str = "", function: ast.AST | None = None) -> None:
        super().__init__(name)
        self.name = name
        self.line: int = getattr(function, "lineno", 0)
        """Line of a function that turned out to need rngs, where no name clashes."""


@dataclass
class Needs:
    """Names the output may use, and what they are called where the user's code has taken them."""

    helpers: frozenset[str]
    renames: dict[str, str] = field(default_factory=dict)
    claimed: set[str] = field(default_factory=set)
    """Names that a rule has written; the output may still have dropped them."""

    def claim(self, names: frozenset[str], ctx: Context) -> None:
        """Check that each free name of a template means what the template means by it here."""
        self.claimed |= names
        for name in names:
            if name in self.renames or (name not in self.helpers and name not in IMPORTS):
                continue
            if name in ctx.names and _taken(name, ctx):
                raise Restart(name)

    def text(self, name: str) -> str:
        """A dotted name as it must be written here."""
        root, dot, rest = name.partition(".")
        return self.renames.get(root, root) + dot + rest


def _taken(name: str, ctx: Context) -> bool:
    """Whether the user's code binds ``name`` to something else, in the module or in the functions around."""
    fact = ctx.inference.env.get(name)
    if fact is not None:
        meant = IMPORTS[name][1] if name in IMPORTS else None
        if not (isinstance(fact, Qual) and (fact.name == meant or fact.name.endswith("." + name))):
            return True
        return meant is None and not fact.name.startswith("torch")
    return any(name in bound_names(function.node) for function in ctx.functions)


@lru_cache(maxsize=1024)
def bound_names(node: ast.FunctionDef | ast.AsyncFunctionDef) -> frozenset[str]:
    """Every name that a function binds: parameters, assignments, definitions."""
    found: set[str] = set()
    for inner in ast.walk(node):
        match inner:
            case ast.arg():
                found.add(inner.arg)
            case ast.Name() if isinstance(inner.ctx, ast.Store):
                found.add(inner.id)
            case ast.FunctionDef() | ast.ClassDef() if inner is not node:
                found.add(inner.name)
    return frozenset(found)
