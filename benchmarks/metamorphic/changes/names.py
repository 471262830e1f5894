"""Locals, attributes, functions and classes under other names, among them those that t2j writes itself."""

from __future__ import annotations

import ast
import builtins
import random
import symtable
from collections import Counter
from collections.abc import Iterator

import libcst as cst
import torch

from benchmarks.metamorphic.change import Changed, change
from benchmarks.metamorphic.source import Source
from benchmarks.metamorphic.variables import Variables

WRITTEN = (
    "jnp", "jax", "nnx", "lax", "optax", "np", "train_step", "loss_fn", "grads", "loss", "key", "state",
    "kernel", "params", "graphdef", "array", "axis", "partial", "layer_norm", "Conv", "Linear", "Array", "dtype",
    "x", "model", "optimizer", "self_", "value", "nll_loss", "fused", "out", "step", "data",
)  # fmt: skip
"""Names that conversions have: what they import, helpers, and the variables of a train step."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def _outermost(node: ast.AST) -> Iterator[_Function]:
    """Functions that no other function is around, in the order of the text."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _Function):
            yield child
        else:
            yield from _outermost(child)


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.Function]:
    for child in table.get_children():
        if isinstance(child, symtable.Function):
            yield child
        else:
            yield from _tables(child)


def _locals(node: _Function, table: symtable.Function) -> list[str]:
    """Variables of a function that may have another name: nothing but assignments in it binds them."""
    words = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    if words & {"locals", "eval", "exec", "vars", "globals"} or any(
        isinstance(n, ast.ClassDef) for n in ast.walk(node)
    ):
        return []
    other: set[str] = {"self", "cls"}
    for inner in ast.walk(node):
        match inner:
            case ast.arg(arg=name):
                other.add(name)
            case ast.FunctionDef(name=name) if inner is not node:
                other.add(name)
            case ast.Import() | ast.ImportFrom():
                other |= {a.asname or a.name.partition(".")[0] for a in inner.names}
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                other |= set(names)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                other.add(name)
    own = [s.get_name() for s in table.get_symbols() if s.is_local() and not s.is_parameter() and not s.is_imported()]
    return [name for name in own if name not in other and not name.startswith("__")]


class _Locals(Variables):
    """Renames the variables of each outermost function by its own table."""

    def __init__(self, tables: list[dict[str, str]]) -> None:
        super().__init__()
        self.tables = iter(tables)
        self.depth = 0
        self.names: dict[str, str] = {}

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        super().visit_FunctionDef(node)
        if not self.depth:
            self.names = next(self.tables)
        self.depth += 1

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        self.depth -= 1
        if not self.depth:
            self.names = {}
        return updated_node

    def variable(self, node: cst.Name) -> cst.BaseExpression | None:
        new = self.names.get(node.value)
        return None if new is None else cst.Name(new, node.lpar, node.rpar)


def _with_locals(source: Source, pick: dict[str, str] | random.Random) -> Changed:
    """Locals renamed: to fresh names, or to names of `WRITTEN` that their function has nowhere."""
    functions = list(_outermost(source.tree))
    by_line = {(t.get_name(), t.get_lineno()): t for t in _tables(symtable.symtable(source.text, "<text>", "exec"))}
    renamed: dict[str, str] = {}
    fresh: dict[str, str] = {}
    tables: list[dict[str, str]] = []
    for node in functions:
        line = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        table = by_line.get((node.name, node.lineno)) or by_line.get((node.name, line))
        names = _locals(node, table) if table is not None else []
        if isinstance(pick, random.Random):
            used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
            free = [w for w in WRITTEN if w not in used and w not in source.bound]
            pick.shuffle(free)
            tables.append(dict(zip(names, free, strict=False)))
        else:
            for name in names:
                if name not in fresh:
                    fresh[name] = source.fresh(f"renamed_{name}")
                    renamed[fresh[name]] = name
            tables.append({name: fresh[name] for name in names})
    return Changed(source.module.visit(_Locals(tables)).code, renamed)


@change("locals renamed")
def locals_renamed(source: Source, rng: random.Random) -> Changed:
    """Variables of functions under names that nothing else has."""
    return _with_locals(source, {})


@change("locals renamed to what t2j writes")
def locals_as_written(source: Source, rng: random.Random) -> Changed:
    """Variables of functions named jnp, nnx, rngs, loss_fn, grads, ..."""
    return _with_locals(source, rng)


# --- attributes -----------------------------------------------------------------------------------------------------


def _of_torch() -> frozenset[str]:
    """Attributes that objects of torch and Python have."""
    kinds: list[object] = [torch.nn.Module, torch.Tensor, torch, torch.nn, torch.nn.functional, torch.optim, str, dict]
    kinds += [list, torch.distributions, torch.utils.data.DataLoader, set, tuple, int]
    attributes = {name for kind in kinds for name in dir(kind)}
    for kind in vars(torch.nn).values():
        if isinstance(kind, type):
            attributes |= set(dir(kind)) | set(getattr(kind, "__annotations__", {}))
            attributes |= set(getattr(kind, "__constants__", ()))
    return frozenset(attributes | {"weight", "bias", "padding", "training", "param_groups", "grad", "dtype", "device"})


_TAKEN = _of_torch()


def _attributes(source: Source) -> list[str]:
    """Attributes that methods of this file's own modules give themselves, and that nobody else can know by name."""
    if source.words & {"getattr", "setattr", "hasattr", "add_module", "register_module", "delattr", "__dict__"}:
        return []
    counts: Counter[str] = Counter()
    for node in source.classes.values():
        if not source.is_module_class(node):
            continue
        for inner in ast.walk(node):
            match inner:
                case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                    counts[name] += 1
    other = {n.name for n in ast.walk(source.tree) if isinstance(n, _Function | ast.ClassDef)}
    other |= {n.arg for n in ast.walk(source.tree) if isinstance(n, ast.keyword) and n.arg} & _class_level(source)
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            other |= set(node.value.replace(".", " ").split())
    other |= _TAKEN | _class_level(source)
    return [name for name in counts if name not in other and not name.startswith("__")]


def _class_level(source: Source) -> set[str]:
    """Names of classes' bodies, and the attributes of things that are not a module of this file."""
    names: set[str] = set()
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ClassDef):
            for statement in node.body:
                names |= {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            if not (node.name in source.classes and source.is_module_class(node)):
                names |= {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}
    return names


class _Attributes(cst.CSTTransformer):
    """Renames attributes, whatever they are read from."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def visit_Import(self, node: cst.Import) -> bool:
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        return False

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.Attribute:
        new = self.names.get(original_node.attr.value)
        return updated_node if new is None else updated_node.with_changes(attr=cst.Name(new))


@change("attributes renamed")
def attributes_renamed(source: Source, rng: random.Random) -> Changed:
    """What modules keep in themselves, under names that nothing else has."""
    names = {name: source.fresh(f"renamed_{name}") for name in _attributes(source)}
    return Changed(source.module.visit(_Attributes(names)).code, {new: old for old, new in names.items()})


@change("attributes renamed to what t2j writes")
def attributes_as_written(source: Source, rng: random.Random) -> cst.Module:
    """What modules keep in themselves is named rngs, kernel, jnp, params, ..."""
    free = [w for w in WRITTEN if w not in source.words and w not in _TAKEN]
    rng.shuffle(free)
    return source.module.visit(_Attributes(dict(zip(_attributes(source), free, strict=False))))


# --- functions and classes ------------------------------------------------------------------------------------------


class _Definitions(Variables):
    """Renames things defined at the top level, in their definitions as well."""

    def __init__(self, names: dict[str, str]) -> None:
        super().__init__()
        self.names = names

    def variable(self, node: cst.Name) -> cst.BaseExpression | None:
        new = self.names.get(node.value)
        return None if new is None else cst.Name(new, node.lpar, node.rpar)

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        return updated_node.with_changes(
            name=cst.Name(self.names.get(updated_node.name.value, updated_node.name.value))
        )

    def leave_ClassDef(self, original_node: cst.ClassDef, updated_node: cst.ClassDef) -> cst.ClassDef:
        return updated_node.with_changes(
            name=cst.Name(self.names.get(updated_node.name.value, updated_node.name.value))
        )


def _definitions(source: Source, kind: type[ast.stmt]) -> list[str]:
    """Names at the top level that a file's own definitions alone bind and that stand in no string or import."""
    strings = {
        word
        for n in ast.walk(source.tree)
        if isinstance(n, ast.Constant) and isinstance(n.value, str)
        for word in "".join(c if c.isidentifier() or c.isdigit() else " " for c in n.value).split()
    }
    definitions = [n for n in source.tree.body if isinstance(n, kind)]
    names = [str(getattr(n, "name", "")) for n in definitions]
    return [n for n in names if source.bound[n] == 1 and n not in strings and not n.startswith("__")]


def _redefined(source: Source, names: dict[str, str]) -> Changed:
    return Changed(source.module.visit(_Definitions(names)).code, {new: old for old, new in names.items()})


def _free(source: Source, rng: random.Random, capital: bool) -> list[str]:
    layers = ["Sequential", "Dropout", "BatchNorm", "Embed", "Module", "Rngs", "Param", "Dense", "List", "Conv"]
    words = [*layers, "Linear", "LayerNorm"] if capital else list(WRITTEN)
    free = [w for w in words if w not in source.words and not hasattr(builtins, w)]
    rng.shuffle(free)
    return free


@change("functions renamed")
def functions_renamed(source: Source, rng: random.Random) -> Changed:
    """Functions under names that nothing else has."""
    return _redefined(source, {n: source.fresh(f"renamed_{n}") for n in _definitions(source, ast.FunctionDef)})


@change("functions renamed to what t2j writes")
def functions_as_written(source: Source, rng: random.Random) -> Changed:
    """Functions named jnp, train_step, loss_fn, ..."""
    names = _definitions(source, ast.FunctionDef)
    return _redefined(source, dict(zip(names, _free(source, rng, False), strict=False)))


@change("classes renamed")
def classes_renamed(source: Source, rng: random.Random) -> Changed:
    """Classes under names that nothing else has."""
    return _redefined(source, {n: source.fresh(f"Renamed{n}") for n in _definitions(source, ast.ClassDef)})


@change("classes renamed to what t2j writes")
def classes_as_written(source: Source, rng: random.Random) -> Changed:
    """Classes named as Flax's layers are: Sequential, Dropout, Embed, ..."""
    names = _definitions(source, ast.ClassDef)
    return _redefined(source, dict(zip(names, _free(source, rng, True), strict=False)))
