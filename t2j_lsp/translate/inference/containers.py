"""What code asks of containers of modules: a Sequential that is only called needs no method of a list."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator

from t2j_lsp.translate.rule.facts import UNKNOWN, Fact, Layer, ListOf
from t2j_lsp.translate.source.folding.classes import READING_METHODS, SLICE

from .file import Inference
from .readers import handed_to_readers
from .subscripts import is_key
from .unpacked import indexes_any

SEQUENTIAL = "torch.nn.Sequential"


def asked_of_containers(inference: Inference) -> frozenset[str]:
    """The methods that code may call of a Sequential, by name or by syntax: ``layers.append(x)`` of a list is none."""
    state = inference.state
    attributes = (node for node in inference.source.nodes if isinstance(node, ast.Attribute))
    names = {node.attr for node in attributes if _may_be_sequential(inference.facts.get(node.value, UNKNOWN))}
    for node in inference.source.nodes:
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load) and not is_key(node.slice):
            if _may_be_sequential(inference.facts.get(node.value, UNKNOWN)):
                names.add("__setitem__" if isinstance(node.ctx, ast.Store) else "__delitem__")
    files = [inference, *imported_files(inference)]
    if (
        state.uses.indexed
        or handed_to_readers(inference)
        or any(indexes_any(f) or f.state.uses.indexes_own for f in files)
    ):
        names |= READING_METHODS
        if len(files) > 1 or any(_may_slice(node, inference) for node in inference.source.nodes):
            names.add(SLICE)
    return frozenset(names)


def sequential_attributes(inference: Inference) -> Iterator[tuple[str, ast.expr]]:
    """The names of attributes that are assigned a Sequential, and what is assigned."""
    for node in inference.source.nodes:
        if isinstance(node, ast.Assign) and isinstance(fact := inference.fact(node.value), Layer):
            targets = [one.attr for one in node.targets if isinstance(one, ast.Attribute)]
            yield from ((name, node.value) for name in targets if fact.name == SEQUENTIAL)


def read_by_importers(
    inference: Inference, used_elsewhere: Callable[[Collection[str]], Collection[str]] | None
) -> frozenset[str]:
    """The methods that files which import this one may call of its Sequentials: those that read, or none."""
    held = {f".{name}" for name, _ in sequential_attributes(inference)} if used_elsewhere is not None else set()
    if used_elsewhere is None or not used_elsewhere(held):
        return frozenset()
    return READING_METHODS | {SLICE}


def _may_slice(node: ast.AST, inference: Inference) -> bool:
    """Whether it may take a slice of a Sequential."""
    match node:
        case ast.Name(id="slice"):
            return True
        case ast.Subscript(value=value, slice=ast.Slice()):
            return _may_be_sequential(inference.facts.get(value, UNKNOWN))
    return False


def asked_elsewhere(inference: Inference) -> frozenset[str]:
    """What the files that this one imports ask objects for: they may be handed what this one makes."""
    return frozenset(word for other in imported_files(inference) for word in other.source.words)


def imported_files(inference: Inference) -> list[Inference]:
    """The files of the project that a file imports, itself or by what it imports, as far as they were read."""
    files: dict[int, Inference] = {}
    todo = [inference]
    while todo:
        for other in todo.pop().imported.values():
            if other is not None and id(other) not in files:
                files[id(other)] = other
                todo.append(other)
    return [*files.values()]


def _may_be_sequential(fact: Fact) -> bool:
    return not isinstance(fact, ListOf) and not (isinstance(fact, Layer) and fact.name != SEQUENTIAL)
