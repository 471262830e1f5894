"""In-place writes that another name can see, here or where the function was called.

``y = x[0]; y += 1`` changes ``x`` in PyTorch and leaves it alone in JAX. This pass follows, in source order, which
names of a function share storage, and finds the writes after which a sharing name is read. A write into a parameter
whose value is never read afterwards is for the caller, who doesn't see it in JAX.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from itertools import count

from t2j_lsp.symbols import ancestors
from t2j_lsp.translate.rule.facts import UNKNOWN, Fact, FunctionInfo, Layer, Qual, Tensor
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.names import TENSOR_ONLY, is_torch
from t2j_lsp.translate.source.text import IN_PLACE, STORED

from .call_sites import bound_arguments, called_function
from .file import Inference
from .forward_pass import UnknownParameter
from .gates import Gate

NEEDS = Gate(kinds=frozenset({ast.AugAssign}), words=frozenset({STORED, IN_PLACE, "inplace"}), facts=frozenset({Layer}))
"""Writes; a layer may have been built to write in place."""
VIEWS = names_with(Trait.VIEW)
_READ = "PyTorch writes in place here, and {!r}, read later, shares the memory; in JAX it keeps its value"
_LOST = (
    "PyTorch writes into the caller's {!r} here, which JAX can't: return the new array, and use it where it is called"
)


def shared_writes(inference: Inference) -> dict[ast.stmt, str]:
    """Statements that write into storage which another, later read name or the caller shares, and why they can't be.

    Where a function names JAX, it was converted before: what it writes to are arrays.
    """
    writes: dict[ast.stmt, str] = {}
    written_for = _written_for(inference)
    for info in inference.functions.values():
        if not inference.names_jax(info):
            writes.update(_Function(inference, info.node, written_for.get(info, set())).find())
    return writes


def _written_for(inference: Inference) -> dict[FunctionInfo, set[str]]:
    """The parameters that functions are called to write: the result is dropped, and what is passed is read later."""
    written: dict[FunctionInfo, set[str]] = {}
    last: dict[str, int] = {}
    """The last line on which each name is read."""
    for node in inference.source.nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            last[node.id] = max(last.get(node.id, 0), node.lineno)
    for node in inference.source.nodes:
        if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
            continue
        info = called_function(inference.fact(node.value.func))
        if info is None:
            continue
        for parameter, value in bound_arguments(node.value, info):
            read = isinstance(value, ast.Name) and last.get(value.id, 0) > node.lineno
            view = isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in VIEWS
            if read or view or isinstance(value, ast.Attribute | ast.Subscript):
                written.setdefault(info, set()).add(parameter.arg)
    return written


class _Function:
    """The sharing of names in one function."""

    def __init__(
        self, inference: Inference, node: ast.FunctionDef | ast.AsyncFunctionDef, written_for: set[str]
    ) -> None:
        self.inference = inference
        self.written_for = written_for
        """The parameters that somebody calls it to have written."""
        self.ids = count()
        self.group: dict[str, int] = {}
        self.statements = list(_flatten(node.body))
        for argument in ast.walk(node.args):
            if isinstance(argument, ast.arg):
                self.group[argument.arg] = next(self.ids)
        self.given = {self.group[name]: name for name in self.group}
        """The parameters by their storage."""
        self.held: dict[str, set[int]] = {}
        """The storages that lists got by ``append``."""

    def find(self) -> dict[ast.stmt, str]:
        writes: dict[ast.stmt, str] = {}
        for index, node in enumerate(self.statements):
            for written in self._written(node):
                rest = self.statements[index + 1 :]
                shared = self._read_later(written, node, rest) or self._listed(written, node, rest)
                if shared is not None:
                    writes[node] = _READ.format(shared)
                elif (parameter := self._of_caller(written, node, self.statements[index + 1 :])) is not None:
                    writes[node] = _LOST.format(parameter)
            self._bind(node)
            for holder, name in _appended(node):
                if name in self.group:
                    self.held.setdefault(holder, set()).add(self.group[name])
        return writes

    def _listed(self, written: str, node: ast.stmt, rest: list[ast.stmt]) -> str | None:
        """A list that holds the storage and is read later; in a loop, also one that gets it behind the write."""
        holders = [holder for holder, groups in self.held.items() if self.group.get(written, -1) in groups]
        for loop in self._loops_around(node):
            inside = list(_flatten(loop.body))
            if not any(written in _stored(n) for n in [loop, *inside] if not isinstance(n, ast.AugAssign)):
                holders += [holder for n in inside for holder, name in _appended(n) if name == written]
        return next((h for h in holders if any(_loads(part, h) for later in rest for part in _parts(later))), None)

    def _of_caller(self, written: str, node: ast.stmt, rest: list[ast.stmt]) -> str | None:
        """The parameter that a write is into, if only the caller can want it: nothing else reads its storage later."""
        group = self.group.get(written, -1)
        if group not in self.given:
            return None
        if self.given[group] in self.written_for:
            return self.given[group]
        if isinstance(node, ast.Return) or isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            return None
        names = {name for name, other in self.group.items() if other == group}
        within = set(ast.walk(node))
        for inner in (n for place in [*self._loops_around(node), *rest] for n in ast.walk(place)):
            loaded = isinstance(inner, ast.Name) and inner.id in names and isinstance(inner.ctx, ast.Load)
            if loaded and inner not in within and not self._only_written(inner):
                return None
        return self.given[group]

    def _loops_around(self, node: ast.stmt) -> Iterator[ast.For | ast.While]:
        """The loops of this function that a statement stands in: what stands in front of it runs after it, too."""
        for place in ancestors(node, self.inference.source.parents):
            if isinstance(place, ast.FunctionDef | ast.AsyncFunctionDef):
                return
            if isinstance(place, ast.For | ast.While):
                yield place

    def _only_written(self, node: ast.AST) -> bool:
        """Whether a name is read to write into what it holds."""
        parents = self.inference.source.parents
        place, parent = node, parents.get(node)
        while isinstance(parent, ast.Subscript | ast.Attribute) and parent.value is place:
            if isinstance(parent.ctx, ast.Store):
                return True
            place, parent = parent, parents.get(parent)
        return False

    def _bind(self, node: ast.stmt) -> None:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            for name in _stored(node):
                if not isinstance(node, ast.AugAssign):
                    self.group[name] = next(self.ids)
            return
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        base = self._base(node.value)
        if base is None and len(targets) > 1 and isinstance(self.inference.facts.get(node.value), Tensor):
            self.group |= dict.fromkeys((t.id for t in targets if isinstance(t, ast.Name)), next(self.ids))
            targets = [t for t in targets if not isinstance(t, ast.Name)]
        for target in targets:
            for stored in ast.walk(target):
                if isinstance(stored, ast.Name) and isinstance(stored.ctx, ast.Store):
                    shares = base is not None and base in self.group
                    self.group[stored.id] = self.group[base] if shares and base is not None else next(self.ids)

    def _base(self, node: ast.expr) -> str | None:
        """The name whose storage the value of an expression may share."""
        match node:
            case ast.Name():
                held = self.inference.facts.get(node, UNKNOWN)
                return node.id if isinstance(held, Tensor | UnknownParameter) or held == UNKNOWN else None
            case ast.Attribute() if node.attr in VIEWS:
                return self._base(node.value)
            case ast.Subscript() if _basic_index(node.slice):
                return self._base(node.value)
            case ast.Call(func=ast.Attribute() as func) if func.attr in VIEWS:
                fact = self.inference.facts.get(func)
                if isinstance(fact, Qual):
                    return self._base(node.args[0]) if fact.name == f"torch.{func.attr}" and node.args else None
                return self._base(func.value)
            case ast.Call() if works_in_place(node, self.inference.facts):
                return self._base(node.args[0]) if node.args else None
            case _:
                return None

    def _written(self, node: ast.stmt) -> Iterator[str]:
        """Names whose storage a statement writes into."""
        target = node.target if isinstance(node, ast.AugAssign) else None
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            target = node.targets[0]
        if target is not None:
            held = target.value if isinstance(target, ast.Subscript) else target
            name = self._base(held)
            if name is not None and isinstance(self.inference.facts.get(held), Tensor):
                yield name
        for call in _calls(node):
            func = call.func
            if isinstance(func, ast.Attribute) and func.attr.endswith("_") and not func.attr.endswith("__"):
                name = self._base(func.value)
                known = isinstance(self.inference.facts.get(func.value), Tensor) or func.attr in TENSOR_ONLY
                if name is not None and known and not isinstance(self.inference.facts.get(func), Qual):
                    yield name
            if works_in_place(call, self.inference.facts) and call.args:
                name = self._base(call.args[0])
                if name is not None:
                    yield name

    def _read_later(self, written: str, node: ast.stmt, rest: list[ast.stmt]) -> str | None:
        """A name that shares storage with ``written`` and is read after ``node`` before it is bound again."""
        group = self.group.get(written)
        rebound = {t.id for t in getattr(node, "targets", []) if isinstance(t, ast.Name)}
        for name, other in self.group.items():
            if other != group or name in rebound or (name == written and not self._rebinds_elsewhere(node, name)):
                continue
            for later in rest:
                own = [later] if not hasattr(later, "body") else list(_header(later))
                if any(_loads(part, name) for part in own):
                    return name
                if name in _stored(later):
                    break
        return None

    def _rebinds_elsewhere(self, node: ast.stmt, name: str) -> bool:
        """Whether the in-place value goes to another name only: ``out = self.relu(x)`` while ``x`` is read later."""
        return isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id != name


def _flatten(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """All statements in source order, without those of nested functions and classes."""
    for node in body:
        yield node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        for field in ("body", "orelse", "finalbody"):
            inner = getattr(node, field, None)
            if isinstance(inner, list):
                yield from _flatten(inner)
        for handler in getattr(node, "handlers", []):
            yield from _flatten(handler.body)


def _header(node: ast.stmt) -> Iterator[ast.AST]:
    for _, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.expr | ast.withitem):
                yield child


def _calls(node: ast.stmt) -> Iterator[ast.Call]:
    parts: list[ast.AST] = [node] if not hasattr(node, "body") else list(_header(node))
    for part in parts:
        yield from (n for n in ast.walk(part) if isinstance(n, ast.Call))


def _loads(node: ast.AST, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) for n in ast.walk(node))


def _parts(node: ast.stmt) -> list[ast.AST]:
    """What of a statement is no statement of its own, but for additions to a list."""
    if any(True for _ in _appended(node)):
        return []
    return [node] if not hasattr(node, "body") else list(_header(node))


def _appended(node: ast.stmt) -> Iterator[tuple[str, str]]:
    """The list and the name in ``outputs.append(x)``."""
    match node:
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(value=ast.Name(id=holder), attr="append"), args=[ast.Name(id=name)])
        ):
            yield holder, name


def _stored(node: ast.stmt) -> set[str]:
    parts: list[ast.AST] = [node] if not hasattr(node, "body") else list(_header(node))
    return {n.id for p in parts for n in ast.walk(p) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def works_in_place(node: ast.Call, facts: Mapping[ast.AST, Fact]) -> bool:
    """``F.relu(x, inplace=True)``, and a call of a layer that was built so."""
    if any(k.arg == "inplace" and _true(k.value) for k in node.keywords):
        function = facts.get(node.func)
        return isinstance(function, Qual) and is_torch(function.name) and bool(node.args)
    layer = facts.get(node.func)
    if isinstance(layer, Layer) and layer.node is not None:
        return any(k.arg == "inplace" and _true(k.value) for k in layer.node.keywords) or (
            layer.name in LAYERS and any(map(_true, LAYERS[layer.name].positional(layer.node, "inplace")))
        )
    return False


def _true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _basic_index(index: ast.expr) -> bool:
    """Whether indexing gives a view: numbers, slices, None and Ellipsis do, index arrays and masks do not."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return all(isinstance(p, ast.Slice | ast.Constant | ast.UnaryOp) for p in parts)
