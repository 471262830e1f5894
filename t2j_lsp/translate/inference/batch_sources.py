"""Which tensors a batch is cut from: ``y`` of ``for x, y in DataLoader(TensorDataset(xs, ys))`` from ``ys``."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Set
from dataclasses import replace
from functools import cached_property

from t2j_lsp import symbols
from t2j_lsp.symbols import FunctionNode
from t2j_lsp.translate.rule.binding import argument
from t2j_lsp.translate.rule.definitions import Class, Function, FunctionInfo
from t2j_lsp.translate.rule.facts import UNKNOWN, Fact, Object, Qual, Scalar, Tensor
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.source.assignments import value_of

from .call_sites import bound_arguments, called_function
from .file import Inference

DEPTH = 12
"""How many names, calls and attributes are followed."""
_LOADERS, _DATASETS, _PARTS = (names_with(one) for one in (Trait.STACKS_ROWS, Trait.ROWS, Trait.SOME_ROWS))
_SAME_VALUES = names_with(Trait.SAME_VALUES)
_SAME = frozenset({"batch_size", "shuffle", "sampler", "num_workers", "pin_memory", "drop_last", "generator"})
"""Options of a loader that leave the rows of its dataset as they are, one batch a stack of them."""

Place = tuple[int | str, ...]
"""Where a value stands in tuples and dictionaries inside each other."""


class BatchSources:
    """Follows what a program's loops get back to its datasets. Whatever can't be followed has no source."""

    def __init__(self, inference: Inference) -> None:
        self.source, self.facts = inference.source, inference.facts
        self.functions = inference.functions

    def of(self, node: ast.expr) -> list[Tensor]:
        """The tensors of datasets from whose rows a value is stacked; none if one of them is unknown."""
        try:
            return list(self._cut(node, (), 0))
        except _Unknown:
            return []

    def values(self, node: ast.expr) -> list[ast.expr]:
        """The values that a name, an attribute or a call may have; none if one of them is unknown."""
        try:
            return list(self._values(node, 0))
        except _Unknown:
            return []

    def _cut(self, node: ast.expr, at: Place, depth: int) -> Iterator[Tensor]:
        """The tensors from which what stands at a place of a value is cut. Raises _Unknown."""
        match node:
            case ast.Call(func=ast.Attribute(value=owner, attr=name)) if name in _SAME_VALUES or self._moves(node):
                yield from self._cut(owner, at, depth + 1)
            case ast.Subscript(value=value, slice=ast.Constant(value=str() | int() as index)) if _counts_on(index):
                yield from self._cut(value, (index, *at), depth + 1)
            case ast.Tuple(elts=items) if at and not any(isinstance(item, ast.Starred) for item in items):
                yield from self._cut(_item(items, at[0]), at[1:], depth + 1)
            case ast.Name():
                for binding in self._bindings(node, depth):
                    yield from self._bound(binding, at, depth + 1)
            case _:
                raise _Unknown

    def _bound(self, binding: ast.expr, at: Place, depth: int) -> Iterator[Tensor]:
        """What `_cut` is for a name where it gets a value, or for an argument that is passed for it."""
        if not isinstance(binding, ast.Name) or isinstance(binding.ctx, ast.Load):
            yield from self._cut(binding, at, depth)
            return
        target: ast.AST = binding
        while isinstance(outer := self.source.parents.get(target), ast.Tuple | ast.List):
            at = (outer.elts.index(target), *at)  # type: ignore[arg-type]
            target = outer
        match outer:
            case ast.Assign(value=value):
                if not self._is_itself(binding, value, at):
                    yield from self._cut(value, at, depth)
            case ast.For(iter=loop) | ast.comprehension(iter=loop):
                yield from self._rows(loop, at, depth)
            case _:
                raise _Unknown

    def _is_itself(self, binding: ast.Name, value: ast.expr, at: Place) -> bool:
        """Whether a name is given its own value, moved: ``y = y.to(device)``."""
        while at and isinstance(value, ast.Tuple):
            value, at = _item(value.elts, at[0]), at[1:]
        while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            if value.func.attr not in _SAME_VALUES and not self._moves(value):
                return False
            value = value.func.value
        return not at and isinstance(value, ast.Name) and value.id == binding.id

    def _moves(self, call: ast.Call) -> bool:
        """Whether a call is ``x.to(device)``, which keeps the dtype."""
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "to" or len(call.args) != 1:
            return False
        to = self.facts.get(call.args[0], UNKNOWN)
        named = isinstance(call.args[0], ast.Name | ast.Attribute) and _last_name(call.args[0]) in ("device", "dev")
        moved = named or isinstance(call.args[0], ast.Constant) or isinstance(to, Object) and to.kind == "device"
        return moved and all(k.arg == "non_blocking" for k in call.keywords)

    def _rows(self, loop: ast.expr, at: Place, depth: int) -> Iterator[Tensor]:
        """The tensors from which a place of what a loop gets is cut."""
        match loop:
            case ast.Call(func=ast.Name(id="enumerate"), args=[inner, *_]) if at and at[0] == 1:
                yield from self._rows(inner, at[1:], depth + 1)
            case ast.Call(func=func, args=[inner, *_]) if self._shows_progress(func):
                yield from self._rows(inner, at, depth + 1)
            case _:
                for loader in self._made(loop, _LOADERS, depth + 1):
                    yield self._part(loader, at, depth + 1)

    def _part(self, loader: ast.Call, at: Place, depth: int) -> Tensor:
        """The tensor of a loader's dataset from which a part of each batch is stacked."""
        collate = next((k.value for k in loader.keywords if k.arg == "collate_fn"), None)
        others = {k.arg for k in loader.keywords} - _SAME - {"dataset"}
        if len(at) != 1 or len(loader.args) > 3 or others - {"collate_fn"}:
            raise _Unknown
        size = argument(loader, 1, "batch_size")
        data = argument(loader, 0, "dataset")
        if data is None or isinstance(size, ast.Constant) and size.value is None:
            raise _Unknown
        facts: set[Fact] = set() if collate is None else set(self._collated(collate, at[0]))
        for made in self._made(data, _DATASETS, depth) if collate is None else ():
            own = self._own_rows(made)
            if own is None and any(isinstance(a, ast.Starred) for a in made.args):
                raise _Unknown
            if own is None:
                facts.add(self.facts.get(_item(made.args, at[0]), UNKNOWN))
            else:
                facts.update(self._stacked(own, at[0]))
        match list(facts):
            case [Tensor() as only]:
                return only
        raise _Unknown

    def _made(self, node: ast.expr, names: Set[str], depth: int) -> Iterator[ast.Call]:
        """The calls of some classes of PyTorch that a value comes from, one at least. Raises _Unknown."""
        if depth > DEPTH:
            raise _Unknown
        own = names is _DATASETS and isinstance(node, ast.Call) and self._own_rows(node) is not None
        if isinstance(node, ast.Call) and (own or self._is_one(node.func, names)):
            yield node
            return
        for value in self._values(node, depth):
            yield from self._made(value, names, depth + 1)

    def _shows_progress(self, func: ast.expr) -> bool:
        """Whether it is tqdm's, which yields what it is given."""
        fact = self.facts.get(func)
        return isinstance(fact, Qual) and fact.name.partition(".")[0] == "tqdm" and fact.name.endswith(".tqdm")

    def _own_rows(self, made: ast.Call) -> FunctionInfo | None:
        """The method of a class of the file that gives a row, where it makes one of that."""
        fact = self.facts.get(made.func)
        method = fact.info.method("__getitem__") if isinstance(fact, Class) else None
        return method if method is not None and method.node in self.functions else None

    def _collated(self, function: ast.expr, at: int | str) -> Iterator[Fact]:
        """A part of the batches that a function of the file makes of rows."""
        fact = self.facts.get(function)
        if not isinstance(fact, Function) or fact.info.node not in self.functions:
            raise _Unknown
        for returned in _returned_by(fact.info.node):
            yield self.facts.get(_part_of(returned, at), UNKNOWN)

    def _stacked(self, rows: FunctionInfo, at: int | str) -> Iterator[Fact]:
        """What a loader makes of a part of the rows that a method gives: tensors are stacked, whole numbers as well."""
        for returned in _returned_by(rows.node):
            part = _part_of(returned, at)
            match part, self.facts.get(part, UNKNOWN):
                case ast.Subscript(value=whole, slice=ast.Name() as place), Tensor() if self._is_number_of(place, rows):
                    yield self.facts.get(whole, UNKNOWN)
                case _, Tensor(rank=rank) as one:
                    yield replace(one, rank=None if rank is None else rank + 1)
                case _, Scalar(kind="int"):
                    yield Tensor(1, "int64", sure=True)
                case _:
                    raise _Unknown

    def _is_number_of(self, name: ast.Name, rows: FunctionInfo) -> bool:
        """Whether a name is the number of the row that a method is asked for."""
        plain = symbols.positional_parameters(rows.node)
        return len(plain) == 2 and plain[1].arg == name.id and (rows.node, name.id) not in self._stores

    def _is_one(self, func: ast.expr, names: Set[str]) -> bool:
        fact = self.facts.get(func)
        return isinstance(fact, Qual) and fact.name in names

    def _values(self, node: ast.expr, depth: int) -> Iterator[ast.expr]:
        """The values that an expression may have: of a name, of an attribute, of a call of the file's functions."""
        match node:
            case ast.Attribute():
                yield from self._assigned_to(node)
            case ast.Call():
                yield from self._returned(node)
            case ast.Name():
                for binding in self._bindings(node, depth):
                    stored = isinstance(binding, ast.Name) and not isinstance(binding.ctx, ast.Load)
                    yield from self._given(binding) if stored else [binding]
            case _:
                raise _Unknown

    def _given(self, binding: ast.expr) -> list[ast.expr]:
        """What a name is given: one value, or those that a loop over a written tuple of tuples gives it in turn."""
        parent = self.source.parents.get(binding)
        match self.source.parents.get(parent) if isinstance(parent, ast.Tuple) else None:
            case ast.For(target=ast.Tuple(elts=names) as target, iter=ast.Tuple(elts=turns) | ast.List(elts=turns)):
                if target is parent and all(isinstance(t, ast.Tuple) and len(t.elts) == len(names) for t in turns):
                    return [_item(t.elts, names.index(binding)) for t in turns if isinstance(t, ast.Tuple)]
        return [self._value(binding)]

    def _value(self, binding: ast.expr) -> ast.expr:
        """What a name is given; a part of a dataset has its rows."""
        parent = self.source.parents.get(binding)
        if isinstance(parent, ast.Assign) and binding in parent.targets:
            return parent.value
        statement = self.source.parents.get(parent) if isinstance(parent, ast.Tuple) else None
        match statement:
            case ast.Assign(targets=[target], value=ast.Call(func=func, args=[whole, *_])) if target is parent:
                if self._is_one(func, _PARTS):
                    return whole
            case ast.Assign(targets=[ast.Tuple(elts=names) as target], value=ast.Tuple(elts=parts)):
                if target is parent and len(names) == len(parts):
                    return parts[names.index(binding)]
        raise _Unknown

    def _returned(self, call: ast.Call) -> Iterator[ast.expr]:
        """What a function of the file returns."""
        fact = self.facts.get(call.func)
        node = fact.info.node if isinstance(fact, Function) else None
        if node is None or node not in self.functions:
            raise _Unknown
        yield from _returned_by(node)

    # --- where names and attributes get their values --------------------------------------------------------------

    def _bindings(self, name: ast.Name, depth: int) -> list[ast.expr]:
        """Where a name gets its values: names that are stored to, and the arguments that calls pass for it."""
        home = self.source.home(name)
        stored: list[ast.expr] = list(self._stores.get((home, name.id), ()))
        if depth <= DEPTH and isinstance(home, FunctionNode):
            parameter = next((a for a in symbols.named_parameters(home) if a.arg == name.id), None)
            stored += self._passed(home, parameter) if parameter is not None else []
        if depth > DEPTH or not stored:
            raise _Unknown
        return stored

    @cached_property
    def _stores(self) -> dict[tuple[ast.AST | None, str], list[ast.Name]]:
        """Where names are stored to, by the scope that they belong to."""
        stores: dict[tuple[ast.AST | None, str], list[ast.Name]] = {}
        for node in self.source.nodes:
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                stores.setdefault((self.source.home(node), node.id), []).append(node)
        return stores

    def _passed(self, function: ast.AST, parameter: ast.arg) -> list[ast.expr]:
        """What the file's calls pass for a parameter of a function, of which nothing else is done than to call it."""
        info = self.functions.get(function)
        if info is None:
            raise _Unknown
        passed: list[ast.expr] = []
        for call in self._calls(info, self.source.parents.get(function)):
            given = next((v for p, v in bound_arguments(call, info) if p is parameter), None)
            if given is None:
                raise _Unknown
            passed.append(given)
        return passed

    def _calls(self, info: FunctionInfo, owner: ast.AST | None) -> Iterator[ast.Call]:
        """The calls of a function. Raises _Unknown where it may be handed around."""
        is_method = isinstance(owner, ast.ClassDef) and info.name != "__init__"
        name = owner.name if isinstance(owner, ast.ClassDef) and not is_method else info.name
        for node in self._named.get(name, ()):
            if isinstance(node, ast.Attribute) != is_method:
                continue
            if (
                isinstance(node, ast.Attribute)
                and self.facts.get(node.value, UNKNOWN) != UNKNOWN
                and not self._runs(node, info)
            ):
                continue  # a method of something else
            call = self.source.parents.get(node)
            if isinstance(call, ast.Call) and call.func is node and self._runs(node, info):
                yield call
            elif isinstance(node.ctx, ast.Load):
                raise _Unknown

    @cached_property
    def _named(self) -> dict[str, list[ast.Name | ast.Attribute]]:
        """The names and attributes of the file, by the last word."""
        named: dict[str, list[ast.Name | ast.Attribute]] = {}
        for node in self.source.nodes:
            if isinstance(node, ast.Name | ast.Attribute):
                named.setdefault(_last_name(node), []).append(node)
        return named

    def _runs(self, function: ast.expr, info: FunctionInfo) -> bool:
        return called_function(self.facts.get(function, UNKNOWN)) is info

    def _assigned_to(self, node: ast.Attribute) -> Iterator[ast.expr]:
        """What ``self.loader`` is given, if only methods of its own class give it anything."""
        cls = symbols.nearest(ast.ClassDef, node, self.source.parents)
        if not isinstance(node.value, ast.Name) or node.value.id != "self" or cls is None:
            raise _Unknown
        assigned = False
        for other in self._named.get(node.attr, ()):
            if isinstance(other, ast.Attribute) and not isinstance(other.ctx, ast.Load):
                assigned, value = True, value_of(other, self.source.parents)
                own = symbols.nearest(ast.ClassDef, other, self.source.parents) is cls
                if not own or value is None:
                    raise _Unknown
                yield value
        if not assigned:
            raise _Unknown


class _Unknown(Exception):
    """A value that can't be followed to a dataset."""


def _returned_by(function: ast.AST) -> Iterator[ast.expr]:
    """The values that a function returns, if it says so plainly."""
    inside = [n for n in symbols.walk(function) if n is not function]
    returned = [n.value for n in inside if isinstance(n, ast.Return)]
    if not returned or any(isinstance(n, ast.Yield | ast.YieldFrom | FunctionNode) for n in inside):
        raise _Unknown
    for value in returned:
        if value is None:
            raise _Unknown
        yield value


def _part_of(value: ast.expr, at: int | str) -> ast.expr:
    """A part of a tuple or a dictionary that is written out."""
    match value:
        case ast.Tuple(elts=items) if not any(isinstance(item, ast.Starred) for item in items):
            return _item(items, at)
        case ast.Dict(keys=keys, values=values) if all(isinstance(k, ast.Constant) for k in keys):
            named = [v for k, v in zip(keys, values, strict=True) if isinstance(k, ast.Constant) and k.value == at]
            return _item(named, 0)
    raise _Unknown


def _counts_on(index: int | str) -> bool:
    """Whether it is the name of a part, or its place from the first on."""
    return isinstance(index, str) or index >= 0


def _item(items: list[ast.expr], index: int | str) -> ast.expr:
    if isinstance(index, str) or index >= len(items):
        raise _Unknown
    return items[index]


def _last_name(node: ast.Name | ast.Attribute) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr
