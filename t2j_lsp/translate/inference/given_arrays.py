"""Writes into what a function was given: its caller sees them in PyTorch, and in JAX does not."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from t2j_lsp import symbols
from t2j_lsp.symbols import FunctionNode
from t2j_lsp.translate.rule.definitions import FunctionInfo
from t2j_lsp.translate.rule.facts import Tensor, is_number
from t2j_lsp.translate.source.positions import position

from .file import Inference
from .fillers import filled
from .forward_pass import is_known
from .places import Env, Reached, overlap
from .statement_reads import only_written, repeated, statements_after
from .written_parameters import Write

_LOST = (
    "PyTorch writes into the caller's {!r} here, which JAX can't: return the new array, and use it where it is called"
)
_IF_TENSOR = (
    "if {!r} is a tensor, PyTorch writes into the caller's here, which JAX can't: return the new array, and use it"
    " where it is called"
)
_SEEN = "PyTorch changes the caller's {!r} here, too; in JAX that keeps its values: return the new array if it is read"


class GivenArrays:
    """One function's writes into its parameters. ``asked``: those that somebody calls it to have written."""

    def __init__(
        self, inference: Inference, info: FunctionInfo | None, asked: set[str], statements: list[ast.stmt]
    ) -> None:
        self.inference, self.info = inference, info
        self.asked = asked
        self.statements = statements
        self.names = symbols.parameter_names(info.node) if info is not None else set()
        self.handed_back = filled(info, inference) if info is not None else None
        """The parameter that it writes into and returns, which those who call it store."""
        self.returned = Reached()
        """What its ``return`` statements give."""
        self._seen: dict[ast.stmt, tuple[str, Reached]] = {}

    @property
    def _nodes(self) -> Iterator[ast.AST]:
        return (n for statement in self.statements for n in symbols.walk(statement))

    def lost(self, write: Write, node: ast.stmt, env: Env, is_flag: bool) -> str | None:
        """Why a write into an array can't be, if only the caller can want it: nothing else reads its storage later.

        ``is_flag``: whether only a flag of the tensor is set.
        """
        owner = self._owner(write.held)
        if owner is None or owner == self.handed_back:
            return None
        if owner in self.asked or self._is_for_caller(write.held, node, env):
            return _LOST.format(owner)
        if not is_flag:
            self._seen[node] = owner, write.held
        return None

    def lost_if_array(self, node: ast.stmt, held: Reached, env: Env) -> str | None:
        """The same of ``x += y`` where nothing tells what ``x`` is: of a number nothing would come of it."""
        owner = self._owner(held)
        if owner is None or not isinstance(node, ast.AugAssign) or not self._may_be_arrays(node, owner):
            return None
        dropped = [s for s in self.statements if isinstance(s, ast.Return)] if owner in self.asked else []
        return _IF_TENSOR.format(owner) if self._is_for_caller(held, node, env, dropped) else None

    def seen(self) -> Mapping[ast.stmt, str]:
        """The writes of a function that anybody may call which its callers see as well, and what to tell of them."""
        if self.info is None or not self._is_public(self.info):
            return {}
        given, seen = self.returned.reach(), self._seen.items()
        return {node: _SEEN.format(owner) for node, (owner, held) in seen if not overlap(given, held.reach())}

    def _owner(self, held: Reached) -> str | None:
        return next((str(place[0]) for place in held.reach() if place[0] in self.names), None)

    def _is_public(self, info: FunctionInfo) -> bool:
        private = info.name.startswith("_") and info.name != "__call__"
        return not private and info.outer is None and (info.owner is None or not info.owner.name.startswith("_"))

    def _may_be_arrays(self, node: ast.AugAssign, owner: str) -> bool:
        """Whether both sides may be arrays, in code that has to do with arrays; ``n += 1`` of a counter is not."""
        facts, value = self.inference.facts, self.inference.fact(node.value)
        if not isinstance(node.target, ast.Name) or is_known(self.inference.fact(node.target)):
            return False
        if is_known(value) and not isinstance(value, Tensor) and not is_number(value):
            return False
        if owner in self.asked:
            return True
        counts = isinstance(node.value, ast.Constant) and isinstance(node.value.value, int)
        module = self.info is not None and self.info.runs_in_module
        return not counts and (module or any(isinstance(facts.get(n), Tensor) for n in self._nodes))

    def _is_for_caller(self, held: Reached, node: ast.stmt, env: Env, dropped: Sequence[ast.Return] = ()) -> bool:
        """Whether nothing in the function reads what was written to later, but to write again.

        ``dropped``: what is returned where nobody takes it, so that what these compute doesn't count.
        """
        if isinstance(node, ast.Return) or isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            return False
        places, parents = held.reach(), self.inference.source.parents
        names = {name for name, other in env.items() if overlap(other.reach(), places)}
        computed = [s for s in dropped if not isinstance(s.value, ast.Call)]
        within = {inner for place in (node, *computed) for inner in symbols.walk(place)}
        around = self.info.node if self.info is not None else self.inference.source.tree
        after = [*repeated(node, parents), *statements_after(node, around, self.inference.source)]
        other = _of_other_rounds(node, parents)
        behind = {n for n in other if position(n) > position(node)}
        for inner in (n for place in after for n in symbols.walk(place) if n not in other or n in behind):
            loaded = isinstance(inner, ast.Name) and inner.id in names and isinstance(inner.ctx, ast.Load)
            if loaded and inner not in within and not only_written(inner, parents):
                return False
        return True


def _of_other_rounds(node: ast.stmt, parents: Mapping[ast.AST, ast.AST]) -> set[ast.Name]:
    """Names of what loops around a statement go over: in a later round they are other items."""
    names, read = frozenset[str](), set[str]()
    other, again = set[ast.Name](), set[ast.Name]()
    for place in symbols.ancestors(node, parents):
        if isinstance(place, FunctionNode):
            break
        if isinstance(place, ast.For):
            targets = symbols.bound_names([place.target])
            names = targets | (names if read & targets else frozenset())
            read = {n.id for n in symbols.walk(place.iter) if isinstance(n, ast.Name)}
        elif isinstance(place, ast.While):
            names, read = frozenset(), set()
        else:
            continue
        inside = {n for part in place.body for n in symbols.walk(part) if isinstance(n, ast.Name)}
        other |= {n for n in inside if n.id in names}
        again |= {n for n in inside if n.id not in names}
    return other - again
