"""Writes into arrays of NumPy whose memory is a tensor's in PyTorch: ``torch.from_numpy(a)`` and ``x.numpy()``.

In JAX neither sees what is written into the other, and the array of ``np.asarray(x)`` can't be written into. Where no
tensor is read afterwards that would have been written, the call copies; where one is, the write is told.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from t2j_lsp import symbols
from t2j_lsp.translate.rule.definitions import FunctionInfo
from t2j_lsp.translate.rule.facts import Fact, Qual, Tensor

from .places import Env, Reached, crossed, overlap
from .statement_reads import calls_of
from .storage import Storage, dotted

TENSOR = "PyTorch's {!r}, read later, shares the memory of this array; in JAX it keeps its value: make the tensor anew"
KEPT = "PyTorch's tensor and NumPy's array in {!r} share their memory; in JAX neither sees what the other is written"
_WRITING = frozenset({"fill", "sort", "partition", "put", "itemset"})
_GIVEN = frozenset({"numpy.copyto", "numpy.put", "numpy.place", "numpy.putmask", "numpy.fill_diagonal"})


@dataclass
class NumpyMemory:
    """What a file's functions say of arrays and tensors that share memory."""

    copied: set[ast.Call] = field(default_factory=set)
    """Calls whose result must be a copy."""
    kept: dict[str, list[tuple[ast.Call, Reached, Env]]] = field(default_factory=dict)
    """What attributes hold that was made from the other side, from what, and what else names hold there."""
    sources: dict[str, list[ast.Call]] = field(default_factory=dict)
    """What was made of the memory of attributes."""
    returned: dict[FunctionInfo, set[ast.Call]] = field(default_factory=dict)
    """What functions hand out."""
    into_results: set[FunctionInfo] = field(default_factory=set)
    """Functions whose result is written into."""
    into_attributes: dict[str, list[ast.stmt]] = field(default_factory=dict)
    """Statements that write into what attributes hold."""

    def seen_writes(self) -> dict[ast.stmt, str]:
        """Writes that another attribute sees; what else is written into is copied from here on."""
        for info in self.into_results & self.returned.keys():
            self.copied |= self.returned[info]
        writes: dict[ast.stmt, str] = {}
        held = {call for entries in self.kept.values() for call, _, _ in entries}
        for attribute, entries in self.kept.items():
            for call, base, env in entries:
                for other in _attributes(base, env) - {attribute}:
                    self.sources.setdefault(other, []).append(call)
        for attribute, statements in self.into_attributes.items():
            made = self.kept.get(attribute, [])
            lasting = any(_attributes(base, env) - {attribute} for _, base, env in made)
            if lasting or any(call in held for call in self.sources.get(attribute, ())):
                writes |= dict.fromkeys(statements, KEPT.format(attribute))
            else:
                self.copied |= {call for call, _, _ in made} | set(self.sources.get(attribute, ()))
        return writes

    def bound(self, target: ast.expr, value: ast.expr, storage: Storage, env: Env) -> None:
        """An attribute is given a value."""
        for call in symbols.walk(value):
            if isinstance(call, ast.Call) and call in storage.crossings:
                base = storage.crossings[call]
                if isinstance(target, ast.Attribute):
                    self.kept.setdefault(target.attr, []).append((call, base, env))

    def returns(self, info: FunctionInfo, value: ast.expr, held: Reached, storage: Storage) -> None:
        """A function hands a value out."""
        within = set(symbols.walk(value))
        for call, base in storage.crossings.items():
            if call in within or overlap(held.reach(), base.places):
                self.returned.setdefault(info, set()).add(call)

    def note_sources(self, storage: Storage) -> None:
        """What a function made of the memory of attributes."""
        for call, base in storage.crossings.items():
            for owner, _ in base.places:
                if isinstance(owner, str) and "." in owner:
                    self.sources.setdefault(owner.rpartition(".")[2], []).append(call)

    def writes(self, node: ast.stmt, target: ast.expr, held: Reached, storage: Storage) -> list[ast.Call]:
        """The calls that share the memory that a statement writes into."""
        self.into_results |= {storage.results[owner] for owner, _ in held.places if owner in storage.results}
        inner = target
        while isinstance(inner, ast.Subscript):
            inner = inner.value
        if isinstance(inner, ast.Attribute):
            self.into_attributes.setdefault(inner.attr, []).append(node)
        return [call for call, base in storage.crossings.items() if overlap(base.places, held.places)]


def other_side(env: Env, held: Reached) -> Env:
    """The names that may hold the same memory from the other side."""
    return {
        name: other
        for name, other in env.items()
        if any(crossed(p) != crossed(q) and overlap(frozenset({p}), frozenset({q})) for p in held.places
               for q in other.reach())
    }  # fmt: skip


def numpy_targets(node: ast.stmt, facts: Mapping[ast.AST, Fact]) -> Iterator[ast.expr]:
    """What a statement writes into that may be an array of NumPy."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AugAssign) else []
    for target in targets:
        if isinstance(target, ast.Subscript) and not isinstance(facts.get(target.value), Tensor):
            yield target.value
        elif isinstance(node, ast.AugAssign) and dotted(target) and not isinstance(facts.get(target), Tensor):
            yield target
    for call in calls_of(node):
        function = facts.get(call.func)
        if isinstance(function, Qual) and function.name in _GIVEN and call.args:
            yield call.args[0]
        elif isinstance(call.func, ast.Attribute) and not isinstance(facts.get(call.func.value), Tensor):
            if call.func.attr in _WRITING and not isinstance(facts.get(call.func.value), Qual):
                yield call.func.value
            elif call.func.attr == "shuffle" and call.args:
                yield call.args[0]


def _attributes(base: Reached, env: Env) -> set[str]:
    """The attributes that hold memory, which is there to be read later."""
    owners = {owner for owner, _ in base.places if isinstance(owner, str)}
    names = owners | {name for name, held in env.items() if overlap(held.reach(), base.places)}
    return {name.rpartition(".")[2] for name in names if "." in name}
