"""Which Sequentials are `nnx.Sequential`: those that are only called, in their file and where it hands them on.

Those that are read or get another child for one of theirs are a class that derives from it. What has names for its
children, or more or fewer in the end, is one that keeps them as PyTorch does.
"""

from __future__ import annotations

import ast

from t2j_lsp.translate.rule.definitions import Instance, is_module
from t2j_lsp.translate.rule.facts import TENSOR, UNKNOWN, Fact, Layer, Tensor
from t2j_lsp.translate.rule.layer import LAYERS

from .containers import SEQUENTIAL, asked_of_containers, imported_files
from .file import Inference
from .forward_pass import UnknownParameter
from .readers import handed_to_readers
from .single_values import gives_one_value
from .unpacked import indexes_any

LENGTHENING = frozenset(("add_module", "register_module", "append", "extend", "insert", "pop"))
"""The methods that give a Sequential more or fewer children."""
CHANGES = LENGTHENING | {"__delitem__", "_modules"}
"""What gives a Sequential names, or another length."""


def is_stock_sequential(inference: Inference, node: ast.Call) -> bool:
    """Whether nnx.Sequential does: it is only called, or children are read by number, and none returns a tuple."""
    if node in inference.state.uses.listed or indexes_any(inference):
        return False
    return _is_list_of_layers(inference, node)


def is_indexed_sequential(inference: Inference, node: ast.Call) -> bool:
    """Whether nnx.Sequential does that can be read like a list, and get other children in the place of some."""
    return _is_list_of_layers(inference, node) and CHANGES.isdisjoint(asked_of_containers(inference))


def is_empty_sequential(inference: Inference, node: ast.Call) -> bool:
    """Whether a Sequential gets no children, and is only called: ``self.shortcut = nn.Sequential()``."""
    if node.args or node.keywords or node in inference.state.uses.listed or indexes_any(inference):
        return False
    return _is_only_called(inference, node) and CHANGES.isdisjoint(asked_of_containers(inference))


def _is_list_of_layers(inference: Inference, node: ast.Call) -> bool:
    """Whether all children of a Sequential are given one by one, and none returns a tuple, which nnx would spread."""
    if not node.args or node.keywords or not _is_only_called(inference, node):
        return False
    for argument in node.args:
        fact = inference.fact(argument)
        if not is_module(fact) or not isinstance(_called(inference, fact), Tensor):
            return False
    return True


def _is_only_called(inference: Inference, node: ast.Call) -> bool:
    """Whether nothing asks for a Sequential's class or settings, and no other file is handed it to read."""
    asked = SEQUENTIAL in inference.isinstance_classes or inference.settings.of(node, SEQUENTIAL)
    return not asked and node not in handed_to_readers(inference)


def home_of(inference: Inference, node: ast.Call) -> Inference | None:
    """The file that a constructor's call stands in, this one or one that it imports; that one is inferred whole."""
    if node in inference.source.parents:
        return inference
    for other in imported_files(inference):
        if node in other.source.parents:
            other.ask_all()
            return other
    return None


def _called(inference: Inference, fact: Fact) -> Fact:
    """The fact of what a module returns."""
    match fact:
        case Layer() if fact.name in LAYERS:
            return LAYERS[fact.name].result
        case Instance():
            forward = fact.cls.info.method("forward")
            if forward is None:
                return TENSOR
            returned = inference.returns(forward)
            unknown = returned == UNKNOWN or isinstance(returned, UnknownParameter)
            return TENSOR if unknown and gives_one_value(forward, inference) else returned
        case _:
            return TENSOR
