"""What a train step does that compiled code would do once, when it is traced; and what it may do if it isn't compiled.

A step that isn't compiled runs as Python for each update, like PyTorch's: JAX traces gradients through arrays that have
their values, and what no gradient flows through is an array like any other. So a loss may hold a whole episode of a
game, and read numbers of it.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterable

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.fillers import runs_in_forward
from t2j_lsp.translate.inference.forward_pass import CONTAINERS
from t2j_lsp.translate.rule.definitions import ClassInfo, Function, FunctionInfo, Instance, is_module
from t2j_lsp.translate.rule.facts import Fact, Layer, ListOf, Scalar, Tensor, Tuple
from t2j_lsp.translate.rule.join import element, holds

from .cut_values import GROWING, is_cut
from .flow import DataFlow
from .step_calls import Item, Refused

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
LEFT_EARLY = "What the loss is computed with leaves the loop that the update stands in."
FILLED_ELSEWHERE = "values of earlier calls, which carry no gradient in JAX"


class Once(str):
    """What compiled code would do once, and code that is traced at each call does each time."""


class KnownPrint(Once):
    """Prints of what is known when code is traced, which compiled code makes, too: its callers wait for them."""


class Drawn(Once):
    """A draw, or an array's value: it may decide which way code goes, and so which parameters get a gradient."""


class Acting(Once):
    """What acts outside of JAX: it keeps its place among what else the program does."""


class ActingByChance(Acting, Drawn):
    """Both."""


def holds_arrays(fact: Fact) -> bool:
    """Whether a value is a tensor or module, or has some in it."""
    return holds(fact, lambda one: isinstance(one, Tensor) or is_module(one))


def holds_arrays_alone(module: Fact) -> bool:
    """Whether a module of the file is known to hold parts and arrays, and settings that never change: no lists."""
    waiting, seen = [module], set[ClassInfo]()
    while waiting:
        match waiting.pop():
            case Layer(name=name, items=items):
                if items is None and name in CONTAINERS:
                    return False
                waiting += items or ()
            case Instance(cls=cls):
                for info in (one for one in cls.info.ancestry() if one not in seen):
                    seen.add(info)
                    held = list(info.attributes.values())
                    plain = all(is_module(fact) or isinstance(fact, Tensor | Scalar) for fact in held)
                    if not plain or _changes_itself(info):
                        return False
                    waiting += [fact for fact in held if is_module(fact)]
            case _:
                return False
    return True


def _changes_itself(info: ClassInfo) -> bool:
    """Whether a method gives an attribute a new value, of which a compiled function would be compiled anew."""
    later = [method.node for name, method in info.methods.items() if name != "__init__"]
    return any(
        isinstance(n, ast.Attribute) and not isinstance(n.ctx, ast.Load) for node in later for n in symbols.walk(node)
    )


def takes_arrays(inference: Inference, call: ast.Call) -> bool:
    """Whether code of which nothing is known is given arrays, which it can't read where gradients are traced."""
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return any(holds_arrays(inference.fact(n.value if isinstance(n, ast.Starred) else n)) for n in given)


def given_arrays(inference: Inference, node: ast.AST) -> str | None:
    """The variable of a list that a call adds arrays to: ``kept.append(x)``."""
    match node:
        case ast.Call(func=ast.Attribute(attr=attr, value=ast.Name(id=name))) if attr in GROWING:
            return name if takes_arrays(inference, node) else None
    return None


def stores_array(inference: Inference, target: ast.Attribute) -> bool:
    """Whether an attribute is given an array, or nothing says what it is given."""
    match inference.source.parents.get(target):
        case ast.Assign(value=value) | ast.AugAssign(value=value):
            return holds_arrays(inference.fact(value))
    return True


def grows(inference: Inference, attribute: str) -> list[ast.Attribute]:
    """Where values are added to what an attribute holds: ``policy.saved.append``."""
    nodes = (n for n in inference.source.nodes if isinstance(n, ast.Attribute) and n.attr in GROWING)
    named = (n for n in nodes if isinstance(n.value, ast.Attribute) and n.value.attr == attribute)
    return [n for n in named if not _builds_anew(inference, n)]


def _builds_anew(inference: Inference, method: ast.Attribute) -> bool:
    """Whether a list doesn't grow from call to call: a method that no forward pass calls gives a new one, and fills it.

    ``self.state = []; self.state.append(torch.zeros(size))``: of values through which no gradient flows.
    """
    parents = inference.source.parents
    call, function = (
        parents.get(method),
        next((a for a in ancestors(method, parents) if isinstance(a, ast.FunctionDef)), None),
    )
    info = inference.functions.get(function) if function is not None else None
    if function is None or info is None or not isinstance(call, ast.Call) or runs_in_forward(info):
        return False
    held, parameters = ast.unparse(method.value), set[str]()
    made = (s for s in function.body if isinstance(s, ast.Assign) and s.lineno < method.lineno)
    if not any(held in map(ast.unparse, s.targets) for s in made) or call.keywords:
        return False
    return all(is_cut(inference, function, value, set(), parameters) for value in call.args) and not parameters


class Episode:
    """The statements of a block from the first that a loss is computed with to its backward pass, as a whole.

    What acts outside of JAX keeps its place among the others then.
    """

    def __init__(self, inference: Inference, flow: DataFlow, items: list[Item], path: list[int], call: int) -> None:
        self.inference = inference
        self.flow = flow
        self.items = items
        self.call = call
        self.path = path

    def moved(self, earlier: int) -> list[int]:
        """The items of the episode. Raises Refused."""
        first = self._first(earlier)
        indices = [i for i in range(first, self.call) if self.items[i].step_call is None]
        for index in indices:
            item = self.items[index]
            if item.inside or item.condition is not None:
                raise Refused("What the loss is computed with acts outside of JAX, in a with statement or a condition.")
            if leaves(item.node):
                raise Refused(LEFT_EARLY)
        self._check_kept([self.items[i].node for i in indices])
        return indices

    def _first(self, earlier: int) -> int:
        """The first item: a list that is filled begins with the episode."""
        first = min(self.path)
        filled = {n for i in range(first, self.call) for n in _filled(self.items[i].node)}
        for index in range(earlier, first):
            match self.items[index].node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.List(elts=[])) if name in filled:
                    if all(self.items[i].step_call is None for i in range(index, first)):
                        return index
        return first

    def _check_kept(self, code: list[ast.stmt]) -> None:
        """Raises Refused if a list that a module holds is filled by code that isn't part of the episode."""
        inside = dict.fromkeys(n for statement in code for n in symbols.walk(statement))
        for node in inside:
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and keeps(self.inference, node):
                for place in grows(self.inference, node.attr):
                    if place not in inside and not self._is_called_in(place, inside):
                        raise Refused(f"It reads {ast.unparse(node)}, {FILLED_ELSEWHERE}.")

    def _is_called_in(self, place: ast.AST, inside: Container[ast.AST]) -> bool:
        """Whether a place stands in a function that only the episode calls."""
        source = self.inference.source
        around = next((a for a in ancestors(place, source.parents) if isinstance(a, ast.FunctionDef)), None)
        if around is None:
            return False
        named = [n for n in source.nodes if isinstance(n, ast.Name | ast.Attribute) and isinstance(n.ctx, ast.Load)]
        uses = [n for n in named if (n.id if isinstance(n, ast.Name) else n.attr) == around.name]
        return all(use in inside for use in uses)

    def bound(self, moved: Iterable[int]) -> set[str]:
        """The variables that the episode gives a value, and doesn't only add to. Raises Refused."""
        out: set[str] = set()
        for node in (n for i in moved for n in symbols.walk(self.items[i].node)):
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                root = self.flow.root(node)
                if root is not None and holds_arrays(self.inference.fact(node.value)):
                    out.add(root)
            elif isinstance(getattr(node, "ctx", None), ast.Store) and (name := self.flow.variable(node)) is not None:
                out.add(name)
        return out

    def check_added(self, moved: Iterable[int], names: set[str]) -> None:
        """Raises Refused if arrays that gradients are traced through stay in lists that are read behind the update."""
        for node in (n for i in moved for n in symbols.walk(self.items[i].node)):
            match node:
                case ast.Call(func=ast.Attribute(attr=attr, value=held)) if attr in GROWING:
                    if self.flow.root(held) in names and takes_arrays(self.inference, node):
                        raise Refused(f"{ast.unparse(held)} keeps arrays of the loss, and is read behind the update.")


def keeps(inference: Inference, node: ast.Attribute) -> bool:
    """Whether a module has a list under a name that is filled as it is called: ``policy.saved_log_probs``."""
    fact = inference.fact(node.value)
    held = fact.cls.info.attribute(node.attr) if isinstance(fact, Instance) and is_module(fact) else None
    if not isinstance(held, ListOf | Tuple) or is_module(element(held)):
        return False
    return bool(grows(inference, node.attr))


def filled(inference: Inference, info: FunctionInfo) -> set[str]:
    """What a function of the file adds to that a module keeps, whatever it gives itself."""
    added = (_adds_to_kept(inference, node) for node in symbols.walk(info.node)) if not info.external else ()
    return {ast.unparse(held) for held in added if held is not None}


def _adds_to_kept(inference: Inference, node: ast.AST) -> ast.Attribute | None:
    """What is added to by ``policy.saved.append(x)``, if a module keeps it."""
    match node:
        case ast.Call(func=ast.Attribute(attr=attr, value=ast.Attribute() as held)) if attr in GROWING:
            return held if keeps(inference, held) else None
    return None


def only_fills(inference: Inference, flow: DataFlow, info: FunctionInfo, name: str) -> bool:
    """Whether all that a function does to a variable from outside is to add to what it keeps."""
    nodes = [node for statement in info.node.body for node in symbols.walk(statement) if isinstance(node, ast.stmt)]
    plain = [node for node in nodes if not isinstance(node, ast.For | ast.While | ast.If | ast.With | ast.Try)]
    changing = [node for node in plain if name in flow.writes(node)]
    added = [held for node in changing for n in symbols.walk(node) if (held := _adds_to_kept(inference, n)) is not None]
    return bool(changing) and len(added) == len(changing) and all(flow.root(held) == name for held in added)


def gives_number(inference: Inference, call: ast.Call) -> bool:
    """Whether no gradient flows through a call: it gives a number, and adds to nothing."""
    called, given = inference.fact(call.func), inference.fact(call)
    if not isinstance(given, Scalar) or given.kind == "none":
        return False
    return not isinstance(called, Function) or not filled(inference, called.info)


def _filled(node: ast.AST) -> set[str]:
    """The names of lists that a statement adds to."""
    out: set[str] = set()
    for inner in symbols.walk(node):
        match inner:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr)) if attr in GROWING:
                out.add(name)
            case ast.AugAssign(target=ast.Name(id=name)):
                out.add(name)
    return out


def leaves(node: ast.AST, in_loop: bool = False) -> bool:
    """Whether a statement leaves the block that it stands in: by a return, by a break of a loop around it."""
    match node:
        case ast.Return() | ast.Yield() | ast.YieldFrom():
            return True
        case ast.Break() | ast.Continue():
            return not in_loop
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda() | ast.ClassDef():
            return False
    inner = in_loop or isinstance(node, _LOOPS)
    return any(leaves(child, inner) for child in ast.iter_child_nodes(node))
