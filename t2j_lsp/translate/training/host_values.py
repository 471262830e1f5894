"""Arrays that are made of Python's and NumPy's values: ``torch.as_tensor(np.array(states))``.

A train step is given the array. Given the list, it would be compiled for every length of it.
"""

from __future__ import annotations

import ast

from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.facts import ListOf, Qual, Tensor, is_module
from t2j_lsp.translate.rule.library import Trait, names_with

from .flow import DataFlow


def makes_array(inference: Inference, node: ast.AST) -> bool:
    """Whether it is a call that makes an array of values."""
    fact = inference.fact(node.func) if isinstance(node, ast.Call) and node.args else None
    return isinstance(fact, Qual) and fact.name in names_with(Trait.FROM_VALUES)


def given_arrays(inference: Inference, flow: DataFlow, node: ast.AST, own: set[str]) -> set[ast.AST]:
    """The arrays in moved code that are made in front of the step, of what isn't its ``own``."""
    made = [n for n in ast.walk(node) if isinstance(n, ast.Call) and makes_array(inference, n)]
    return {n for n in made if made_of_host_values(inference, n) and flow.reads(n).isdisjoint(own)}


def made_of_host_values(inference: Inference, call: ast.Call) -> bool:
    """Whether an array is made of a list of values, or by NumPy, and of nothing that JAX computes."""
    facts = [inference.fact(n) for n in ast.walk(call) if isinstance(n, ast.expr) and n is not call]
    if any(isinstance(fact, Tensor) or is_module(fact) for fact in facts):
        return False
    names = {fact.name for fact in facts if isinstance(fact, Qual)}
    if any(name.startswith("numpy.random") for name in names):
        return False
    first = inference.fact(call.args[0])
    listed = isinstance(first, ListOf) and not isinstance(first.item, Tensor) and not is_module(first.item)
    return isinstance(call.args[0], ast.Name | ast.Attribute) and listed or any(n.startswith("numpy.") for n in names)
