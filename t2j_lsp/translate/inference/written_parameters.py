"""Which of their arguments calls of the file's own functions and modules write into, in place.

``h = self.block(x); return h + x`` adds what ``block`` made of ``x``, if it begins with ``nn.ReLU(inplace=True)``. In
JAX ``x`` keeps its values.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors
from t2j_lsp.translate.rule.definitions import Function, FunctionInfo, Instance
from t2j_lsp.translate.rule.facts import Fact, Layer, Qual, Tensor
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.source.positions import position

from .call_sites import bound_arguments
from .containers import SEQUENTIAL
from .file import Inference
from .fillers import filled
from .forward_pass import is_known
from .places import Reached
from .storage import is_built_in_place

Written = Mapping[FunctionInfo, Collection[str]]
"""The parameters that functions write into, and may hand something else back for."""
IN_CALL = "PyTorch writes in place in this call, and {!r}, read later, shares the memory; in JAX it keeps its value"


@dataclass
class SharedWrites:
    """What a file's writes into shared storage come to."""

    statements: dict[ast.stmt, str] = field(default_factory=dict)
    """Statements that write into storage which another, later read name or the caller shares, and why they can't be."""
    snapshots: dict[ast.stmt, str] = field(default_factory=dict)
    """Statements that keep what an optimizer writes into, and why that isn't the same in JAX."""
    rectified: dict[ast.stmt, str] = field(default_factory=dict)
    """Statements that set what is negative in a name's array to 0; it is read later, and nothing else shares it."""
    seen: dict[ast.stmt, str] = field(default_factory=dict)
    """Statements that write into what a caller gave and may read, and what to tell of it."""
    copied: set[ast.Call] = field(default_factory=set)
    """Calls between NumPy and tensors that must copy, because the array is written into."""


@dataclass(frozen=True)
class Write:
    """A write into storage: what the conversion binds anew instead, as text, and whether a new name gets the value."""

    root: str
    held: Reached
    elsewhere: bool


def written_by_call(call: ast.Call, written: Written, inference: Inference) -> Iterator[ast.expr]:
    """The tensors that a call is given and writes into, where it doesn't give them back as its value."""
    for one, is_array in _written_by_call(call, written, inference):
        fact = inference.fact(one)
        if isinstance(fact, Tensor) or is_array and not is_known(fact):
            yield one


def _written_by_call(call: ast.Call, written: Written, inference: Inference) -> Iterator[tuple[ast.expr, bool]]:
    """The arguments that a call writes into, and whether the function that it runs says that they are tensors."""
    fact = inference.facts.get(call.func)
    info = _function(fact)
    if info is not None and info in written and filled(info, inference) is None:
        for parameter, value in bound_arguments(call, info):
            if parameter.arg in written[info]:
                yield value, _is_tensor(info, parameter.arg, inference)
    elif isinstance(fact, Layer) and call.args and _begins_in_place(fact, written, inference):
        yield call.args[0], False


def _is_tensor(info: FunctionInfo, parameter: str, inference: Inference) -> bool:
    """Whether a parameter is a tensor wherever the function reads it."""
    home = info.home if isinstance(info.home, Inference) else inference
    reads = [n for n in symbols.walk(info.node) if isinstance(n, ast.Name) and n.id == parameter]
    facts = [home.facts.get(n) for n in reads if isinstance(n.ctx, ast.Load)]
    return bool(facts) and all(isinstance(fact, Tensor) and fact.sure for fact in facts)


def _function(fact: Fact | None) -> FunctionInfo | None:
    """The function of the file that a call runs: itself, or a module's ``forward``."""
    if isinstance(fact, Function):
        return fact.info
    if isinstance(fact, Instance) and fact.cls.info.is_module:
        return fact.cls.info.method("forward")
    return None


def _begins_in_place(fact: Layer, written: Written, inference: Inference) -> bool:
    """Whether a Sequential's first layer writes into what it is given."""
    if fact.name != SEQUENTIAL or fact.node is None or not fact.node.args:
        return False
    first = inference.facts.get(fact.node.args[0])
    if isinstance(first, Layer):
        return is_built_in_place(first) or _begins_in_place(first, written, inference)
    info = _function(first)
    if info is None or info not in written:
        return False
    parameters = info.node.args.args[1:2]
    return any(p.arg in written[info] for p in parameters)


def only_rectifies(call: ast.Call, inference: Inference) -> bool:
    """Whether all that a call writes into its argument is a ReLU of it: it may be rectified in front of the call."""
    fact = inference.facts.get(call.func)
    while isinstance(fact, Layer) and fact.name == SEQUENTIAL and fact.node is not None and fact.node.args:
        fact = inference.facts.get(fact.node.args[0])
    return isinstance(fact, Layer | Qual) and fact.name in names_with(Trait.RELU)


def sets_flag(method: ast.AST | None) -> bool:
    """Whether a method whose name ends as those in place do leaves the values as they are."""
    return isinstance(method, ast.Attribute) and method.attr in ("requires_grad_", "detach_", "share_memory_")


def is_read_beside(call: ast.Call, name: str, statement: ast.stmt, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether the statement of a call that writes into a name's tensor computes with the tensor behind the call.

    In ``x + block(x)`` the sum is taken last, whichever stands first.
    """
    return any(_uses_beside(call, name, statement, parents))


def is_used_before(call: ast.Call, name: str, statement: ast.stmt, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether the statement computes with the tensor in front of the call, too."""
    return not all(_uses_beside(call, name, statement, parents))


def is_used_beside(call: ast.Call, name: str, statement: ast.stmt, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether the statement computes with the tensor anywhere but in the call."""
    return any(True for _ in _uses_beside(call, name, statement, parents))


def _uses_beside(call: ast.Call, name: str, statement: ast.stmt, parents: Mapping[ast.AST, ast.AST]) -> Iterator[bool]:
    """For each use of a name in the statement of a call, but not in the call, whether it comes behind the call."""
    inside, around = set(symbols.walk(call)), set(ancestors(call, parents))
    for choice in [n for n in around if isinstance(n, ast.IfExp)]:
        for arm in (choice.body, choice.orelse):
            if arm is not call and arm not in around and choice.test is not call and choice.test not in around:
                inside |= set(symbols.walk(arm))  # which isn't evaluated where the call is
    for node in symbols.walk(statement):
        if not (isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)) or node in inside:
            continue
        user = parents[node]
        while isinstance(user, ast.Attribute | ast.Subscript | ast.keyword | ast.Starred):
            user = parents[user]
        place = (getattr(user, "lineno", 0), getattr(user, "col_offset", 0))
        yield user in around or place > position(call)
