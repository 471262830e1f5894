"""What the output asks for: imports and helpers, found by their names, with clashes resolved."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from t2j_lsp.symbols import Comprehension, ScopeNode, scopes_around, type_parameters, walk
from t2j_lsp.translate.rule.facts import Qual
from t2j_lsp.translate.rule.names import is_torch
from t2j_lsp.translate.rule.pieces import Piece
from t2j_lsp.translate.source.folding.agreements import without_agreed
from t2j_lsp.translate.source.folding.present import defines
from t2j_lsp.translate.source.folding.uses import Agreed
from t2j_lsp.translate.source.helpers import all_imports, helper_names
from t2j_lsp.translate.source.text import Source

from .context import Context
from .torch_only import left_whole

IMPORTS = {
    "jax": ("import jax", "jax"),
    "jnp": ("import jax.numpy as jnp", "jax.numpy"),
    "np": ("import numpy as np", "numpy"),
    "nnx": ("from flax import nnx", "flax.nnx"),
    "optax": ("import optax", "optax"),
    "BCOO": ("from jax.experimental.sparse import BCOO", "jax.experimental.sparse.BCOO"),
    "contextlib": ("import contextlib", "contextlib"),
    "functools": ("import functools", "functools"),
    "math": ("import math", "math"),
    "OrderedDict": ("from collections import OrderedDict", "collections.OrderedDict"),
    "einops": ("import einops", "einops"),
    **{
        name: (f"from stable_baselines3.common.buffers import {name}", f"stable_baselines3.common.buffers.{name}")
        for name in ("ReplayBuffer", "DictReplayBuffer")
    },
    **{
        name: (f"from safetensors.flax import {name}", f"safetensors.flax.{name}")
        for name in ("load_file", "save_file")
    },
    "safe_open": ("from safetensors import safe_open", "safetensors.safe_open"),
    "SummaryWriter": ("from tensorboardX import SummaryWriter", "tensorboardX.SummaryWriter"),
    "torch_state": ("from t2j_lsp import torch_state", "t2j_lsp.torch_state"),
    "load_torch_state": ("from t2j_lsp import load_torch_state", "t2j_lsp.load_torch_state"),
}
"""Import roots that templates may use: the line, and what it binds."""

_ANNOTATIONS = {
    "Any": "typing.Any",
    "NamedTuple": "typing.NamedTuple",
    **{n: f"collections.abc.{n}" for n in ("Callable", "Iterable", "Iterator", "Mapping", "Sequence")},
}
_LIBRARIES = {name: name for name in ("pickle", "zipfile")}
MEANINGS = {root: target for root, (_, target) in IMPORTS.items()} | _ANNOTATIONS | _LIBRARIES
"""What each name means that an import line of the output or of a helper binds."""
BUILTINS = {name: f"from builtins import {name}" for name in dir(builtins) if not name.startswith("_")}
"""Python's own names, which output and helpers read, and the line that binds one: ``max = 0`` takes it."""


@dataclass
class Known:
    """What only rendering a file shows, and what its start has to know: when it grew, the file is rendered again."""

    renames: dict[str, str] = field(default_factory=dict)
    """Names of the output that the user's code has taken, and what they are called instead."""
    drawing: set[ast.AST] = field(default_factory=set)
    """Functions that turned out to need ``rngs``."""
    left: dict[ast.stmt, str] = field(default_factory=dict)
    """Statements whose train step turned out not to be one, and why."""
    untouched: set[ast.AST] = field(default_factory=set)
    """Functions that turned out to stay PyTorch, which take none."""
    agreed: Agreed | None = None
    """Arguments of helpers that all calls agree on, and don't pass; None before it was asked."""
    agreements: int = 0
    """How often it turned out that calls agree, or don't after all."""

    @property
    def size(self) -> int:
        return len(self.renames) + len(self.drawing) + len(self.left) + len(self.untouched) + self.agreements


@dataclass
class NeededNames:
    """Names the output may use, and what they are called where the user's code has taken them."""

    helpers: frozenset[str]
    known: Known = field(default_factory=Known)
    claimed: set[str] = field(default_factory=set)
    """Names that a rule has written; the output may still have dropped them."""

    @property
    def renames(self) -> dict[str, str]:
        return self.known.renames

    def claim(self, names: frozenset[str], ctx: Context) -> None:
        """Say that the statement at hand uses names of the output; those that mean something else here are renamed."""
        self.claimed |= names
        around: list[ScopeNode] | None = None
        for name in names:
            if name in self.renames or not (name in self.helpers or name in IMPORTS or name in BUILTINS):
                continue
            if around is None:
                around = scopes(ctx)
            if taken(name, around, ctx) or taken_inside(name, ctx):
                self.renames[name] = free_name(name, ctx)

    def claim_top_level(self, ctx: Context) -> None:
        """Rename what the user's top level has taken, before anything is written: helpers and imports stand there."""
        symbols = ctx.source.symbols
        names = helper_names() | IMPORTS.keys() | all_imports().keys()
        names = names if symbols.stars else names & symbols.names
        kept = _read_by_torch(ctx) & self.helpers
        own = BUILTINS.keys() if symbols.stars else BUILTINS.keys() & {*symbols.module, *ctx.inference.env}
        for name in sorted(names | own):
            if name not in self.renames and (name in kept or taken(name, (), ctx)):
                self.renames[name] = free_name(name, ctx)

    def shortened(self, piece: Piece) -> Piece:
        """A piece whose calls of helpers pass nothing that all calls of the file agree on."""
        agreed = self.known.agreed
        return replace(piece, text=without_agreed(piece.text, agreed, self.renames)) if agreed else piece

    def text(self, name: str) -> str:
        """A dotted name as it must be written here."""
        root, dot, rest = name.partition(".")
        return self.renames.get(root, root) + dot + rest


def _read_by_torch(ctx: Context) -> set[str]:
    """The imports of PyTorch's that classes read which stay as they are written: ``class Mine(Distribution)``."""
    kept = (info.node for info in ctx.inference.classes.values() if left_whole(ctx, info))
    read = {node.id for whole in kept for node in walk(whole) if isinstance(node, ast.Name)}
    facts = {name: ctx.inference.env.get(name) for name in read}
    return {name for name, fact in facts.items() if isinstance(fact, Qual) and is_torch(fact.name)}


def scopes(ctx: Context) -> list[ScopeNode]:
    """The scopes that the statement at hand stands in, innermost first."""
    around: list[ScopeNode] = [f.node for f in reversed(ctx.scope.functions)]
    if ctx.scope.class_info is not None and not ctx.scope.functions:
        around.insert(0, ctx.scope.class_info.node)
    if ctx.scope.statement is not None:
        around += [s for s in scopes_around(ctx.scope.statement.node, ctx.source.parents) if s not in around]
    return around


def taken(name: str, around: Sequence[ScopeNode], ctx: Context) -> bool:
    """Whether a name of the output means something else in the user's code, at a place inside these scopes."""
    symbols = ctx.source.symbols
    if name not in symbols.names:
        return _brought(name, ctx)
    home = symbols.home(name, around)
    if home is None and name not in symbols.module:
        return _brought(name, ctx)
    targets = symbols.imports(home).get(name)
    if targets is not None:
        return not all(means(name, target) for target in targets)
    if home is None and name in helper_names() and defines(ctx.source.tree.body, name):
        return False
    fact = ctx.inference.env.get(name) if home is None else None
    return not (isinstance(fact, Qual) and is_torch(fact.name) and fact.name.endswith(f".{name}"))


def taken_inside(name: str, ctx: Context) -> bool:
    """Whether a lambda or comprehension of the statement at hand binds a name, or its own type parameters do.

    Which of its expressions is being written isn't known, so all of them count.
    """
    symbols = ctx.source.symbols
    if ctx.scope.statement is None or name not in symbols.names:
        return False
    node = ctx.scope.statement.node
    return name in type_parameters(node) or any(name in symbols.bound(scope) for scope in _inner_scopes(node))


def _inner_scopes(node: ast.AST) -> Iterator[ScopeNode]:
    """The lambdas and comprehensions of a statement, not those of statements inside it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.stmt):
            if isinstance(child, ast.Lambda | Comprehension):
                yield child
            yield from _inner_scopes(child)


def means(name: str, target: str) -> bool:
    """Whether an import binds what the output means by a name, or something of torch's, which goes."""
    if is_torch(target) or target == MEANINGS.get(name, f"builtins.{name}"):
        return True
    module, _, last = target.rpartition(".")
    if last != name:
        return False
    if name in helper_names():
        return module.startswith("t2j_lsp.rules.helpers.") or module.lstrip(".") == "torch_helpers"
    return {module, MEANINGS.get(name, "").rpartition(".")[0]} <= {"typing", "collections.abc"}


def _brought(name: str, ctx: Context) -> bool:
    """Whether an ``import *`` brings a name that nothing else binds: it does, or it may and would be the last to."""
    stars = [s for s in ctx.source.symbols.stars if s.level or not is_torch(s.module or "")]
    if not stars:
        return False
    fact = ctx.inference.env.get(name)
    if fact is None and (name in MEANINGS or name in BUILTINS):
        files = (ctx.inference.imported.get("." * star.level + (star.module or "")) for star in stars)
        fact = next((known for file in files if file is not None and (known := file.ask(name)) is not None), None)
        if fact is None:
            return False
    if fact is not None:
        return not (isinstance(fact, Qual) and (is_torch(fact.name) or fact.name == MEANINGS.get(name)))
    head = ctx.source.import_block_end
    return name in ctx.source.symbols.unbound or any(s.lineno > head for s in stars)


def free_name(name: str, ctx: Context) -> str:
    """What a name is called where the user's code has taken it. No ``import *`` brings names that begin with ``_``."""
    new = f"_{name}" if ctx.source.symbols.stars else f"{name}_"
    while new in ctx.names.of_source or new in ctx.names.reserved:
        new += "_"
    return new


def bound_by(line: str) -> str:
    """The name that an import line binds."""
    return line.split()[-1].partition(".")[0]


def has_import(line: str, source: Source) -> bool:
    """Whether the source's top level has this import, also as one of several names."""
    wanted = ast.parse(line).body[0]
    assert isinstance(wanted, ast.Import | ast.ImportFrom)
    alias = wanted.names[0]
    for node in source.tree.body:
        if type(node) is type(wanted) and getattr(node, "module", None) == getattr(wanted, "module", None):
            if any((a.name, a.asname) == (alias.name, alias.asname) for a in getattr(node, "names", [])):
                return True
    return False
