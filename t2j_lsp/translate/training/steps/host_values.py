"""What a train step is given in place of the values it is made of: it is evaluated in front of the step.

Arrays of Python's and NumPy's values, ``torch.as_tensor(np.array(states))``: given the list, the step would be compiled
for every length of it. And the next batch of an iterator, ``model(next(batches))``, and what an object says that no
compiled function can be given, ``self.beta() * kl``.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors
from t2j_lsp.translate.inference.call_sites import called_function
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.forward_pass import UnknownParameter
from t2j_lsp.translate.rule.definitions import is_module
from t2j_lsp.translate.rule.facts import UNKNOWN, Fact, ListOf, Object, Qual, Scalar, Tensor
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.source.evaluation import evaluated_once
from t2j_lsp.translate.training.program.cut_values import GROWING
from t2j_lsp.translate.training.program.flow import DataFlow
from t2j_lsp.translate.training.program.once import gives_number


def is_numpy(fact: Fact) -> bool:
    """Whether a value is known to be an array of numpy, or of a library like it."""
    return isinstance(fact, Object) and fact.kind == "array"


def makes_array(inference: Inference, node: ast.AST) -> bool:
    """Whether it is a call that makes an array of values."""
    fact = inference.fact(node.func) if isinstance(node, ast.Call) and node.args else None
    return isinstance(fact, Qual) and fact.name in names_with(Trait.FROM_VALUES)


def made_of_value(inference: Inference, node: ast.expr) -> ast.Call | None:
    """The array that is made of a value that is no tensor, or of which nothing is known: ``torch.tensor(state)``."""
    whole: ast.AST = node
    while isinstance(around := inference.source.parents.get(whole), ast.Attribute):
        whole = around
    facts = [inference.fact(one) for one in (node, whole) if isinstance(one, ast.expr)]
    made = isinstance(around, ast.Call) and around.args[:1] == [whole] and makes_array(inference, around)
    return around if made and all(map(_is_of_host, facts)) and isinstance(around, ast.Call) else None


def _is_of_host(fact: Fact) -> bool:
    """Whether a value is one of Python's or NumPy's that an array is made of, or nothing is known of it."""
    listed = isinstance(fact, ListOf) and isinstance(fact.item, Scalar)
    return fact == UNKNOWN or isinstance(fact, UnknownParameter) or is_numpy(fact) or listed


def given_before(inference: Inference, flow: DataFlow, code: Sequence[ast.AST], own: set[str]) -> set[ast.AST]:
    """What is made in front of the step that some code moves into, of what isn't its ``own``."""
    calls = [
        n for part in code for n in symbols.walk(part) if isinstance(n, ast.Call) and flow.reads(n).isdisjoint(own)
    ]
    made = {n for n in calls if makes_array(inference, n) and made_of_host_values(inference, n)}
    return made | {n for n in calls if takes_next(inference, n, code)}


def takes_next(inference: Inference, node: ast.AST, code: Sequence[ast.AST]) -> bool:
    """Whether it is ``next(batches)``, which moved code evaluates once: then it may as well stand in front."""
    match node:
        case ast.Call(func=ast.Name(id="next"), args=[ast.Name() | ast.Attribute() as taken], keywords=[]):
            pass
        case _:
            return False
    if "next" in inference.env or not evaluated_once(node, inference.source.parents):
        return False
    text, named = ast.unparse(taken), 0
    for part in code:
        named += sum(isinstance(n, ast.Name | ast.Attribute) and ast.unparse(n) == text for n in symbols.walk(part))
    return named == 1 and any(always(node, part, inference) for part in code)


def asked_number(
    inference: Inference, flow: DataFlow, node: ast.AST, code: Sequence[ast.AST], exposed: set[str]
) -> ast.Call | None:
    """The call of a method that gives a number, ``self.beta()``, made of what is known before the step.

    The object is no module, the method changes nothing, and nothing of the code that moves changes what it reads.
    """
    call = inference.source.parents.get(node)
    info = called_function(inference.fact(node)) if isinstance(node, ast.Attribute) else None
    if not isinstance(call, ast.Call) or call.func is not node or info is None or info.external:
        return None
    if info.owner is None or info.owner.acts_as_module or not gives_number(inference, call):
        return None
    if not evaluated_once(call, inference.source.parents) or not any(always(call, part, inference) for part in code):
        return None
    given = [n for argument in (*call.args, *call.keywords) for n in symbols.walk(argument) if isinstance(n, ast.expr)]
    if any(isinstance(fact := inference.fact(n), Tensor) or is_module(fact) for n in given):
        return None
    inside = [n for n in symbols.walk(info.node) if isinstance(n, ast.Attribute | ast.Call)]
    read = {n.attr for n in inside if isinstance(n, ast.Attribute)}
    written = {name.rpartition(".")[2] for part in code for name in flow.writes(part)}
    pure = not any(_changes(n, inference) for n in inside) and read.isdisjoint(written)
    return call if pure and flow.reads(call) <= exposed else None


def _changes(node: ast.Attribute | ast.Call, inference: Inference) -> bool:
    """Whether something may change what an object or the program keeps: an assignment, or another function's call."""
    if isinstance(node, ast.Attribute):
        return not isinstance(node.ctx, ast.Load)
    grows = isinstance(node.func, ast.Attribute) and node.func.attr in GROWING
    return grows or called_function(inference.fact(node.func)) is not None


def always(node: ast.AST, code: ast.AST, inference: Inference) -> bool:
    """Whether no statement around a part of some code decides about it, or repeats it."""
    for around in (node, *ancestors(node, inference.source.parents)):
        if around is code:
            return not isinstance(code, ast.For | ast.While | ast.If)
        if isinstance(around, ast.stmt) and not isinstance(around, ast.With | ast.Assign | ast.Expr | ast.AugAssign):
            return False
    return False


def made_of_host_values(inference: Inference, call: ast.Call) -> bool:
    """Whether an array is made of a list of values, or by NumPy, and of nothing that JAX computes."""
    facts = [inference.fact(n) for n in symbols.walk(call) if isinstance(n, ast.expr) and n is not call]
    if any(isinstance(fact, Tensor) or is_module(fact) for fact in facts):
        return False
    names = {fact.name for fact in facts if isinstance(fact, Qual)}
    if any(name.startswith("numpy.random") for name in names):
        return False
    first = inference.fact(call.args[0])
    listed = isinstance(first, ListOf) and not isinstance(first.item, Tensor) and not is_module(first.item)
    return isinstance(call.args[0], ast.Name | ast.Attribute) and listed or any(n.startswith("numpy.") for n in names)
