"""Functions that write into an array they are given and hand it back: a file's own initialisers.

``def trunc_(t, std): t.uniform_(-1, 1); t.erfinv_(); return t.mul_(std)`` is called for what it does to ``t``. In JAX
it returns the new array, and whoever calls it stores that where the old one is held.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from t2j_lsp import symbols
from t2j_lsp.symbols import FunctionNode
from t2j_lsp.translate.rule.definitions import Function, FunctionInfo
from t2j_lsp.translate.rule.facts import Fact, Partial, Qual, Tensor
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.names import TENSOR_ONLY, is_torch
from t2j_lsp.translate.rule.tensors import behind_data
from t2j_lsp.translate.source.syntax import IN_PLACE

from .call_sites import bound_arguments, called_function
from .file import Inference
from .storage import VIEWS, works_in_place

_NO_GRADIENT = names_with(Trait.NO_GRADIENT)


def written_argument(call: ast.Call, inference: Inference) -> ast.expr | None:
    """What a call writes into besides its receiver: ``F.relu(x, inplace=True)``, or a call of such a function."""
    if works_in_place(call, inference.facts) and call.args:
        return call.args[0]
    fact = inference.facts.get(call.func)
    if isinstance(fact, Qual) and fact.name.startswith("torch.nn.init.") and in_place(fact.name):
        return _initialised_array(call, inference.facts)
    if isinstance(fact, Partial) and isinstance(fact.function, Function):
        return _of_partial(call, fact, fact.function.info, inference)
    name = filled(fact.info, inference) if isinstance(fact, Function) else None
    return _argument(call, fact.info, name) if isinstance(fact, Function) and name is not None else None


def _initialised_array(call: ast.Call, facts: Mapping[ast.AST, Fact]) -> ast.expr | None:
    """What a function of torch.nn.init fills, if it is an array; parameters of modules are another thing."""
    target = next(iter(call.args), None) or next((k.value for k in call.keywords if k.arg == "tensor"), None)
    held = behind_data(target)
    fact = facts.get(held) if held is not None else None
    return target if isinstance(fact, Tensor) and not fact.variable else None


def _of_partial(call: ast.Call, fact: Partial, info: FunctionInfo, inference: Inference) -> ast.expr | None:
    """What the partial of such a function writes into: its first argument, where the partial was given keywords."""
    first = next(iter(info.node.args.args), None)
    if fact.node is None or len(fact.node.args) > 1 or not call.args or first is None:
        return None
    return call.args[0] if filled(info, inference) == first.arg else None


def filled(info: FunctionInfo, inference: Inference) -> str | None:
    """The parameter that a function writes into and hands back, or would if it handed back anything."""
    return _filled(info, inference, ())


def stops_gradients(info: FunctionInfo, inference: Inference, seen: frozenset[FunctionInfo] = frozenset()) -> bool:
    """Whether anything in a function, or in one of those that it calls, is outside of what is differentiated."""
    home = info.home if isinstance(info.home, Inference) else inference
    for node in symbols.walk(info.node):
        fact = home.facts.get(node)
        if isinstance(fact, Qual) and fact.name in _NO_GRADIENT:
            return True
        if isinstance(node, ast.Attribute) and node.attr == "data":
            return True
        known = seen | {info}
        if isinstance(fact, Function) and fact.info not in known and stops_gradients(fact.info, home, known):
            return True
    return False


def runs_in_forward(info: FunctionInfo) -> bool:
    """Whether a method of a module is ``forward``, or what that calls on ``self``."""
    if info.owner is None or not info.owner.is_module:
        return False
    reached, waiting = set[str](), ["forward", "__call__"]
    while waiting:
        name = waiting.pop()
        method = info.owner.method(name)
        if method is not None and name not in reached:
            reached.add(name)
            waiting += method.self_calls
    return info.name in reached


def values_of(info: FunctionInfo, inference: Inference) -> Iterator[ast.Name]:
    """Where a file names a function without calling it."""
    for node in inference.source.nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id == info.node.name:
            parent, fact = inference.source.parents.get(node), inference.facts.get(node)
            called = isinstance(parent, ast.Call) and parent.func is node
            if not called and isinstance(fact, Function) and fact.info is info:
                yield node


def written_for(inference: Inference) -> dict[FunctionInfo, set[str]]:
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
    return _handed_on(written, inference)


def _handed_on(written: dict[FunctionInfo, set[str]], inference: Inference) -> dict[FunctionInfo, set[str]]:
    """With the parameters of the functions that these hand theirs on to."""
    waiting = list(written)
    while waiting:
        info = waiting.pop()
        for call in (n for n in symbols.walk(info.node) if isinstance(n, ast.Call)):
            inner = called_function(inference.fact(call.func))
            arguments = bound_arguments(call, inner) if inner is not None else ()
            handed = {p.arg for p, value in arguments if isinstance(value, ast.Name) and value.id in written[info]}
            if inner is not None and not handed <= written.setdefault(inner, set()):
                written[inner] |= handed
                waiting.append(inner)
    return written


def hands_nothing_back(info: FunctionInfo) -> bool:
    """Whether a function that fills what it is given has no ``return``: in JAX it needs one."""
    return not any(isinstance(n, ast.Return) for n in _inner(info.node))


def _filled(info: FunctionInfo, inference: Inference, around: tuple[FunctionInfo, ...]) -> str | None:
    node = info.node
    if info in around or info.settled or isinstance(node, ast.AsyncFunctionDef):
        return None
    home = info.home if isinstance(info.home, Inference) else inference
    if IN_PLACE not in home.source.words or info.owner is not None and not _is_one_of_its_kind(info, home):
        return None
    if info.home is not None:
        info.home.infer_function(info)
    if home.names_jax(info) or not all(is_without_gradient(d, home.facts) for d in node.decorator_list):
        return None
    reading = _Reading(info, home, (*around, info))
    written = reading.written()
    return written if written is not None and reading.hands_back(written) else None


def _is_one_of_its_kind(info: FunctionInfo, home: Inference) -> bool:
    """Whether a method is what runs wherever one of its name is called: no class has another, and none is called so."""
    named = [one for one in home.functions.values() if one.name == info.name]
    return len(named) == 1 and info.name != "forward" and not info.name.startswith("__")


def is_without_gradient(decorator: ast.expr, facts: Mapping[ast.AST, Fact]) -> bool:
    """Whether a decorator has a function run without gradients: ``@torch.no_grad()``."""
    fact = facts.get(symbols.called_decorator(decorator))
    return isinstance(fact, Qual) and fact.name in _NO_GRADIENT


class _Reading:
    """One function, read for what it writes into."""

    def __init__(self, info: FunctionInfo, home: Inference, around: tuple[FunctionInfo, ...]) -> None:
        self.info = info
        self.home = home
        self.around = around
        self.nodes = list(_inner(info.node))

    def written(self) -> str | None:
        """The one parameter that the function writes into, which it never binds anew or gives another name."""
        given = {a.arg for a in symbols.named_parameters(self.info.node)}
        written = {name for n in self.nodes if isinstance(n, ast.expr) and (name := self._target(n)) in given}
        if len(written) != 1:
            return None
        (name,) = written
        bound = any(isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load) for n in self.nodes)
        named = any(
            isinstance(n, ast.Assign | ast.AnnAssign | ast.NamedExpr | ast.Yield | ast.YieldFrom | ast.AugAssign)
            and n.value is not None
            and self._root(n.value) == name
            for n in self.nodes
        )
        return None if bound or named else name

    def hands_back(self, name: str) -> bool:
        """Whether it returns the parameter on every way, or nothing on any."""
        returns = [n for n in self.nodes if isinstance(n, ast.Return)]
        if any(isinstance(n, ast.Yield | ast.YieldFrom) for n in self.nodes):
            return False
        if not returns:
            return True
        return all(n.value is not None and self._root(n.value) == name for n in returns) and ends(self.info.node.body)

    def _target(self, node: ast.expr) -> str:
        """The name that an expression's own operation in place writes into."""
        if not isinstance(node, ast.Call):
            return ""
        return self._root(node) if self._writes(node) else ""

    def _writes(self, call: ast.Call) -> bool:
        """Whether a call writes into what it is given: a method in place, a function of torch, another such one."""
        func = call.func
        fact = self.home.facts.get(func)
        if isinstance(fact, Function):
            return self._argument(call, fact) is not None
        if isinstance(fact, Qual):
            return is_torch(fact.name) and in_place(fact.name.rpartition(".")[2])
        return isinstance(func, ast.Attribute) and in_place(func.attr) and self._is_tensor(func)

    def _is_tensor(self, func: ast.Attribute) -> bool:
        return isinstance(self.home.facts.get(func.value), Tensor) or func.attr in TENSOR_ONLY

    def _argument(self, call: ast.Call, fact: Function) -> ast.expr | None:
        name = _filled(fact.info, self.home, self.around)
        return _argument(call, fact.info, name) if name is not None else None

    def _root(self, node: ast.expr) -> str:
        """The name whose array an expression is, as a whole."""
        while isinstance(node, ast.Call) and self._writes(node):
            fact = self.home.facts.get(node.func)
            if isinstance(fact, Function):
                argument = self._argument(node, fact)
            elif isinstance(fact, Qual):
                argument = node.args[0] if node.args else None
            else:
                argument = node.func.value if isinstance(node.func, ast.Attribute) else None
            if argument is None:
                return ""
            node = argument
        node = behind_data(node)
        return node.id if isinstance(node, ast.Name) else ""


def _argument(call: ast.Call, info: FunctionInfo, name: str) -> ast.expr | None:
    return next((value for parameter, value in bound_arguments(call, info) if parameter.arg == name), None)


def in_place(name: str) -> bool:
    """Whether a function or method writes into what it is given, by its name."""
    return name.endswith("_") and not name.endswith("__") and name != "requires_grad_"


def _inner(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.AST]:
    """The nodes of a function's body, without those of functions and classes in it."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop(0)
        yield node
        if not isinstance(node, FunctionNode | ast.ClassDef | ast.Lambda):
            waiting += symbols.children(node)


def ends(body: list[ast.stmt]) -> bool:
    """Whether nothing comes behind statements: each way through them ends in a ``return`` or an error."""
    match body[-1]:
        case ast.Return() | ast.Raise():
            return True
        case ast.With(body=inner):
            return ends(inner)
        case ast.If(body=inner, orelse=[_, *_] as other):
            return ends(inner) and ends(other)
    return False
