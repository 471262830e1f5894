"""What code asks of containers of modules: a Sequential that is only called needs no method of a list."""

from __future__ import annotations

import ast

from t2j_lsp.translate.rule.facts import ListOf

from .file import Inference


def asked_of_containers(inference: Inference) -> frozenset[str]:
    """The methods that code may call of a Sequential, by name or by syntax: ``layers.append(x)`` of a list is none."""
    state = inference.state
    attributes = (node for node in inference.source.nodes if isinstance(node, ast.Attribute))
    found = {node.attr for node in attributes if not isinstance(inference.facts.get(node.value), ListOf)}
    if state.indexed or state.indexes_any or state.indexes_own:
        found |= {"__len__", "__iter__", "__getitem__"}
    return frozenset(found)
