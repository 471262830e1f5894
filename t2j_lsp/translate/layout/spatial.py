"""Which parameters of a file's functions have axes of space, so that they may be taken channels-last.

A layer takes it, or such a parameter of another function, or every caller gives a value that a layer made. It begins
with what layers take: functions that hand each other a number, or a flag, would say of it that all of them take it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import FunctionInfo
from t2j_lsp.translate.rule.facts import Scalar
from t2j_lsp.translate.rule.library import Trait, names_with

from .attributes import Key
from .chains import Chain, Interface
from .scene import Marks

_SHAPED = names_with(Trait.SHAPED)
Parameter = tuple[FunctionInfo, ast.arg]
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


def arguments(node: ast.Call, info: FunctionInfo, interface: Interface) -> dict[ast.expr, int] | None:
    """The arguments that are taken channels-last; None where they aren't all known."""
    if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
        return None
    named = {a.arg: a for a in info.node.args.args[1:]}
    given = dict(zip(named, node.args, strict=False)) | {k.arg: k.value for k in node.keywords if k.arg}
    takes = {}
    for name, arg in named.items():
        if rank := interface.takes.get(arg, 0):
            if name not in given:
                return None
            takes[given[name]] = rank
    return takes


@dataclass
class SpatialParameters:
    """Finds them, by what is known so far: the marks of functions, the calls of each, and what layers take."""

    inference: Inference
    infos: Mapping[FunctionNode, FunctionInfo]
    marks: Mapping[FunctionNode, Marks]
    sites: Mapping[FunctionInfo, Mapping[ast.Call, FunctionNode]]
    interfaces: Mapping[FunctionInfo, Interface]
    layers: Mapping[Key, Chain]
    key: Callable[[ast.Call], Key | None]
    """The attribute that a call calls."""
    function: Callable[[ast.Call], FunctionInfo | None]
    alike: Callable[[ast.Call], ast.expr | None]
    makes: Callable[[ast.Call, FunctionInfo], bool]
    """Whether a constructor call makes an instance whose ``forward`` it is."""

    def parameters(self, built: set[ast.Call]) -> set[Parameter]:
        """All of them, of functions that are known; ``built`` makes the instances that stand in chains of layers."""
        open_ones = {
            (info, arg): None for info, one in self.interfaces.items() if info.node in self.marks for arg in one.takes
        }
        reads = {one: self._reads(*one) for one in open_ones}
        spatial: set[Parameter] = set()
        todo = [one for one in open_ones if reads[one] and not self._is_size(one, reads[one])]
        while True:
            more = [one for one in todo if self._is_spatial(one, reads[one], built, spatial)]
            if not more:
                return spatial
            spatial.update(more)
            todo = [one for one in todo if one not in spatial]

    def _reads(self, info: FunctionInfo, parameter: ast.arg) -> list[ast.Name]:
        return [name for name, held in self.marks[info.node].reads.items() if parameter in held.bindings]

    def _is_spatial(
        self, one: Parameter, reads: Iterable[ast.Name], built: set[ast.Call], spatial: set[Parameter]
    ) -> bool:
        info = one[0]
        marks = self.marks[info.node]
        if any(self.is_taken(name, marks, spatial) for name in reads):
            return True
        if any(self.makes(call, info) for call in built):
            return False
        sites = self.sites.get(info, {})
        return bool(sites) and all(self._is_given(site, where, one, spatial) for site, where in sites.items())

    def _is_given(self, site: ast.Call, where: FunctionNode, one: Parameter, spatial: set[Parameter]) -> bool:
        """Whether a call gives a channels-last value, which is no parameter that isn't known to be one."""
        given, marks = self.value(site, *one), self.marks[where]
        return given is not None and all(v in marks.natural and self._is_made(v, where, spatial) for v in given)

    def _is_made(self, value: ast.expr, where: FunctionNode, spatial: set[Parameter]) -> bool:
        held = self.marks[where].reads.get(value) if isinstance(value, ast.Name) else None
        info = self.infos.get(where)
        for binding in held.bindings if held is not None else ():
            if isinstance(binding, ast.arg) and (info is None or (info, binding) not in spatial):
                return False
            given = binding.value if isinstance(binding, ast.Assign) else None
            if isinstance(given, ast.Name) and given is not value and not self._is_made(given, where, spatial):
                return False
        return True

    def value(self, site: ast.Call, info: FunctionInfo, parameter: ast.arg) -> Iterable[ast.expr] | None:
        """What a call gives a parameter, if anything; None where that isn't known."""
        return arguments(site, info, Interface({parameter: 1}, 0))

    def _is_size(self, one: Parameter, reads: Iterable[ast.Name]) -> bool:
        """Whether a parameter is a number, or stands for a size: ``x.view(b, c, height, width)``."""
        given = (value for site in self.sites.get(one[0], {}) for value in self.value(site, *one) or ())
        return any(map(self._stands_for_size, (*reads, *given)))

    def _stands_for_size(self, node: ast.expr) -> bool:
        parent = self.inference.source.parents[node]
        method = parent.func if isinstance(parent, ast.Call) and node in parent.args else None
        shaped = isinstance(method, ast.Attribute) and method.attr in _SHAPED
        return shaped or isinstance(self.inference.facts.get(node), Scalar)

    # --- what is taken ----------------------------------------------------------------------------------------------

    def is_taken(self, node: ast.expr, marks: Marks, spatial: set[Parameter] | None = None) -> bool:
        """Whether a layer, or such a function, takes a value, a part of it, or what is applied to all axes alike.

        With ``spatial``, of functions only those of which it is known that this parameter is one.
        """
        todo, seen = [node], {node}
        while todo:
            node = todo.pop()
            parent = self.inference.source.parents[node]
            if parent in marks.met or parent in marks.functions:
                if isinstance(parent, ast.Call) and node in parent.args and node in marks.wanted:
                    if spatial is None or self._takes(parent, node, spatial):
                        return True
                continue
            new = set(self._passed_on(node, parent, marks)) - seen
            seen |= new
            todo += new
        return False

    def _takes(self, call: ast.Call, node: ast.expr, spatial: set[Parameter]) -> bool:
        """Whether what a call calls is a layer, or a function that is known to take such a value."""
        key = self.key(call)
        chain = self.layers.get(key) if key is not None else None
        if chain is not None:
            own = [info for info, _ in spatial if any(self.makes(made, info) for made in chain.own)]
            return bool(chain.calls or chain.borders or own)
        info = self.function(call)
        if info is None:
            return True
        return any(
            (info, arg) in spatial and node in (self.value(call, info, arg) or ()) for arg in info.node.args.args
        )

    def _passed_on(self, node: ast.expr, parent: ast.AST, marks: Marks) -> Iterator[ast.expr]:
        """Expressions that hold a value, or a part of it, because of where it stands: names that it is assigned to."""
        parents = self.inference.source.parents
        is_argument = isinstance(parent, ast.Call)
        if isinstance(parent, ast.Attribute):
            parent = parents[parent]
        if isinstance(parent, ast.Call) and self.alike(parent) is node:
            yield parent
            return
        if isinstance(parent, ast.Subscript) and parent in marks.natural:
            yield parent
            return
        if isinstance(parent, ast.Call) and parent not in marks.natural and not is_argument:
            parent = parents[parent]  # a, b = x.chunk(2, dim=1)
        if isinstance(parent, ast.Assign | ast.AnnAssign):
            yield from (name for name, held in marks.reads.items() if parent in held.bindings)
