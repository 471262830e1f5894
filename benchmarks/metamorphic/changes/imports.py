"""How torch and its packages are imported and called."""

from __future__ import annotations

import random

import libcst as cst
import torch

from benchmarks.metamorphic.change import change
from benchmarks.metamorphic.source import Source
from benchmarks.metamorphic.variables import Spelling, with_imports

FUNCTIONAL = "torch.nn.functional"
_HOMES = ("torch", "torch.nn", FUNCTIONAL)


class _Rename(Spelling):
    """Gives an imported module another name, in the import as well."""

    def __init__(self, source: Source, full: str, name: str, statement: str) -> None:
        super().__init__(source, lambda qualified: name if qualified == full else None)
        self.old = next(old for old, meaning in source.imports.items() if meaning == full)
        self.statement = statement

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine:
        """Lines of imports, the name taken out of its own and imported as asked."""
        body: list[cst.BaseSmallStatement] = []
        for statement in updated_node.body:
            if isinstance(statement, cst.Import | cst.ImportFrom) and not isinstance(statement.names, cst.ImportStar):
                kept = [a for a in statement.names if bound_name(a) != self.old]
                if len(kept) < len(statement.names):
                    body += [statement.with_changes(names=_spaced(kept))] if kept else []
                    new = cst.parse_statement(self.statement)
                    assert isinstance(new, cst.SimpleStatementLine)
                    body += new.body
                    continue
            body.append(statement)
        return updated_node.with_changes(body=[s.with_changes(semicolon=cst.MaybeSentinel.DEFAULT) for s in body])


def bound_name(alias: cst.ImportAlias) -> str:
    """The name that an import binds."""
    return alias.evaluated_alias or alias.evaluated_name.partition(".")[0]


def _spaced(names: list[cst.ImportAlias]) -> list[cst.ImportAlias]:
    return [*names[:-1], names[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)]


def _renamed(source: Source, full: str, name: str, statement: str) -> cst.Module:
    """The module ``full`` under another name, which ``statement`` imports; ``{}`` in both stands for a free one."""
    if full not in source.imports.values():
        return source.module
    free = source.fresh(name)
    return source.module.visit(_Rename(source, full, free, statement.format(free)))


@change("import torch as th")
def torch_as_th(source: Source, rng: random.Random) -> cst.Module:
    """Torch under another name."""
    return _renamed(source, "torch", "th", "import torch as {}")


@change("from torch import nn")
def nn_from_torch(source: Source, rng: random.Random) -> cst.Module:
    """torch.nn from torch, under another name."""
    return _renamed(source, "torch.nn", "neural", "from torch import nn as {}")


@change("import functional as func")
def functional_as_func(source: Source, rng: random.Random) -> cst.Module:
    """torch.nn.functional under another name."""
    return _renamed(source, FUNCTIONAL, "func", "import torch.nn.functional as {}")


@change("full names of torch")
def full_names(source: Source, rng: random.Random) -> cst.Module:
    """torch.nn.Linear for nn.Linear, torch.nn.functional.relu for F.relu."""
    if source.imports.get("torch", "torch") != "torch" or source.bound["torch"] > 1:
        return source.module
    changed = source.module.visit(Spelling(source, lambda full: full if full in _HOMES[1:] else None))
    return changed if "torch" in source.imports else with_imports(changed, ["import torch"])


@change("from torch.nn import *")
def star(source: Source, rng: random.Random) -> cst.Module:
    """Layers by their bare names."""
    public = [n for n in vars(torch.nn) if not n.startswith("_")]
    if source.words & set(public) - _attributes(source, "torch.nn"):
        return source.module  # one of the names would come to mean something else

    def bare(full: str) -> str | None:
        home, _, name = full.rpartition(".")
        return name if home == "torch.nn" and name in public and name[0].isupper() else None

    changed = source.module.visit(Spelling(source, bare))
    return with_imports(changed, ["from torch.nn import *"]) if not changed.deep_equals(source.module) else changed


def _attributes(source: Source, home: str) -> set[str]:
    """The names that are only ever read from a module of torch, or are words of no variable."""
    names: set[str] = set()
    free = set(source.words) - set(source.bound)

    class Read(Spelling):
        def variable(self, node: cst.Name) -> None:
            free.discard(node.value)

    source.module.visit(Read(source, lambda full: None))
    names |= free
    return names


@change("from torch.nn import Linear as ...")
def each_by_name(source: Source, rng: random.Random) -> cst.Module:
    """Every layer and function of torch imported by itself, under another name."""
    imports: dict[str, str] = {}

    def own(full: str) -> str | None:
        home, _, name = full.rpartition(".")
        if home not in _HOMES or not callable(_value(full)):
            return None
        if full not in imports:
            imports[full] = source.fresh(f"{'T' if name[0].isupper() else 't'}_{name}")
        return imports[full]

    changed = source.module.visit(Spelling(source, own))
    lines = [f"from {f.rpartition('.')[0]} import {f.rpartition('.')[2]} as {n}" for f, n in imports.items()]
    return with_imports(changed, lines) if lines else changed


def _value(full: str) -> object:
    """The thing that torch has under a full name."""
    value: object = torch
    for part in full.split(".")[1:]:
        value = getattr(value, part, None)
    return value
