"""Which values that a compiled function is given have to be known when it is traced, by where they are used."""

from __future__ import annotations

import ast
from typing import TypeGuard

from t2j_lsp import symbols
from t2j_lsp.translate.inference.call_sites import bound_arguments, defaults
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.forward_pass import UnknownParameter
from t2j_lsp.translate.rule.definitions import Class, Function, FunctionInfo, Instance, is_module
from t2j_lsp.translate.rule.facts import STR, UNKNOWN, Fact, ListOf, Object, Qual, Scalar, Tensor, Tuple
from t2j_lsp.translate.rule.record import REGISTRY

from .step_calls import Refused

_ARRAYS = frozenset(
    [
        "input",
        "target",
        "other",
        "mask",
        "index",
        "tensor",
        "tensors",
        "src",
        "source",
        "mat2",
        "vec2",
        "batch2",
        "weight",
    ]
)
"""Parameters of PyTorch's functions that are tensors."""
_OF_NO_VALUE = frozenset({"len", "isinstance", "type"})
"""Functions that say of an array what its values don't decide."""


def _is_read(node: ast.AST, name: str) -> TypeGuard[ast.expr]:
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)


def must_be_static(places: list[ast.expr], inference: Inference) -> bool:
    """Whether a value is used where jit needs a Python value: in shapes, ranges, conditions, as an option."""
    return bool(static_places(places, inference))


def static_places(places: list[ast.expr], inference: Inference) -> list[ast.expr]:
    """Where a value is used so, in the code itself and in functions that are given it."""
    followed = [*places, *_reads_in_functions(places, inference, numbers=True)]
    static = [place for place in followed if _static_place(place, inference)]
    others = (place for place in _reads_in_functions(places, inference) if place not in static)
    return static + [place for place in others if _is_counted_to(place, inference)]


def items_decide(places: list[ast.expr], inference: Inference) -> bool:
    """Whether items of a dict of settings decide what is computed: ``if config["l2"] > 0:``, ``range(config["n"])``."""
    for place in [*places, *_reads_in_functions(places, inference)]:
        match parent := inference.source.parents.get(place):
            case ast.Subscript(value=held, slice=ast.Constant(value=str())) if held is place:
                item: ast.AST | None = parent
            case ast.Attribute(attr="get"):
                item = inference.source.parents.get(parent)
            case _:
                continue
        if isinstance(item, ast.expr) and not isinstance(inference.fact(item), Tensor):
            if _decides(item, inference) or _is_counted_to(item, inference):
                return True
    return False


def _decides(node: ast.expr, inference: Inference) -> bool:
    """Whether a value is asked for in a condition, which no tensor is asked for in."""
    child: ast.AST = node
    parent = inference.source.parents.get(node)
    while isinstance(parent, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.BinOp):
        if any(isinstance(inference.fact(n), Tensor) for n in ast.iter_child_nodes(parent)):
            return False
        child, parent = parent, inference.source.parents.get(parent)
    return isinstance(parent, ast.If | ast.IfExp | ast.While) and parent.test is child


def _is_counted_to(node: ast.expr, inference: Inference) -> bool:
    """Whether a value is what ``range`` takes, which no array is in a compiled function, whatever it is called."""
    parent = inference.source.parents.get(node)
    while isinstance(parent, ast.BinOp | ast.UnaryOp):
        parent = inference.source.parents.get(parent)
    return isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id == "range"


def given_as_tuple(facts: list[Fact]) -> bool:
    """Whether a value is a list of texts, for which a step is compiled: it takes a tuple of them.

    Raises:
      Refused: texts in lists that are in lists, which are neither arrays nor options.
    """
    if any(fact == ListOf(STR) for fact in facts):
        return True
    if any(_has_texts(fact) for fact in facts if isinstance(fact, ListOf | Tuple)):
        raise Refused("it is given lists with texts in them, which jit takes neither as arrays nor as options")
    return False


def _has_texts(fact: Fact) -> bool:
    match fact:
        case ListOf(item=item):
            return _has_texts(item)
        case Tuple(items=items):
            return any(map(_has_texts, items))
        case _:
            return isinstance(fact, Scalar) and fact.kind == "str"


def is_called(places: list[ast.expr], inference: Inference, is_loss: bool) -> bool:
    """Whether a value is called: a loss also in a function of the file that is given it, ``loss_of(criterion, x)``."""
    followed = [*places, *(_reads_in_functions(places, inference) if is_loss else ())]
    parents = (inference.source.parents.get(place) for place in followed)
    return any(isinstance(p, ast.Call) and p.func in followed for p in parents)


def names_loss(node: ast.expr) -> bool:
    """Whether a name says that it is a loss, of which ``loss_fn: nn.Module`` says only that it may be called."""
    name = ast.unparse(node).rpartition(".")[2].lower()
    return any(part in name for part in ("loss", "crit"))


def has_settings(places: list[ast.expr], inference: Inference) -> bool:
    """Whether functions of the file read attributes of a value that no tensor has: ``args`` of ``loss_of(x, args)``."""
    parents = inference.source.parents
    owners = [parents.get(read) for read in _reads_in_functions(places, inference)]
    read = [one for one in owners if isinstance(one, ast.Attribute) and not _is_of_tensors(one.attr)]
    return any(not isinstance(call := parents.get(one), ast.Call) or call.func is not one for one in read)


def _is_of_tensors(name: str) -> bool:
    """Whether tensors have an attribute, as far as the rules know."""
    return REGISTRY.get(f"torch.Tensor.{name}") is not None


def _reads_in_functions(places: list[ast.expr], inference: Inference, numbers: bool = False) -> list[ast.expr]:
    """Where functions and modules of the file read what they are given at these places, and pass it on.

    Or only ``numbers``: values that are one, and those of parameters that are one by default.
    """
    all_reads: list[ast.expr] = []
    queue, seen = list(places), set(places)
    while queue:
        place = queue.pop()
        given_as, parent = place, inference.source.parents.get(place)
        while (
            numbers and isinstance(parent, ast.BinOp | ast.UnaryOp) and not isinstance(inference.fact(parent), Tensor)
        ):
            given_as, parent = parent, inference.source.parents.get(parent)
        call = inference.source.parents.get(parent) if isinstance(parent, ast.keyword) else parent
        info = run_by(inference.fact(call.func)) if isinstance(call, ast.Call) else None
        if not isinstance(call, ast.Call) or info is None or info.external:
            continue
        given = [parameter for parameter, value in bound_arguments(call, info) if value is given_as]
        if numbers and not isinstance(inference.fact(place), Scalar) and place in places:
            options = dict(defaults(info))
            given = [one for one in given if _is_number(options.get(one))]
        names = {parameter.arg for parameter in given}
        reads = [n for n in symbols.walk(info.node) for name in names if _is_read(n, name) and n not in seen]
        seen.update(reads)
        all_reads += reads
        queue += reads
    return all_reads


def run_by(called: Fact) -> FunctionInfo | None:
    """The function of the file that a call runs: itself, or the forward pass of a module."""
    if isinstance(called, Instance) and called.cls.info.acts_as_module:
        return called.cls.info.method("forward")
    return called.info if isinstance(called, Function) else None


def _is_number(default: ast.expr | None) -> bool:
    """Whether a parameter's default says that it is a number or a switch."""
    return isinstance(default, ast.Constant) and isinstance(default.value, bool | int | float | str)


def _static_place(node: ast.expr, inference: Inference) -> bool:
    child: ast.AST = node
    parent = inference.source.parents.get(node)
    while isinstance(parent, ast.BinOp | ast.UnaryOp | ast.Tuple | ast.List | ast.Starred | ast.Attribute):
        if isinstance(parent, ast.BinOp):
            other = parent.right if parent.left is child else parent.left
            if isinstance(inference.fact(other), Tensor) or isinstance(inference.fact(parent), Tensor):
                return False
        child, parent = parent, inference.source.parents.get(parent)
    match parent:
        case ast.If() | ast.IfExp() | ast.While():
            return parent.test is child
        case ast.Compare():
            compared = (parent, parent.left, *parent.comparators)
            return not any(isinstance(inference.fact(c), Tensor) for c in compared)
        case ast.For(target=ast.Name(id=name)) if parent.iter is child:
            return must_be_static([n for s in parent.body for n in symbols.walk(s) if _is_read(n, name)], inference)
        case ast.BoolOp() | ast.Slice() | ast.comprehension() | ast.For():
            return True
        case ast.keyword():
            call = inference.source.parents.get(parent)
            return isinstance(call, ast.Call) and not _takes_array(call, parent, inference)
        case ast.Call(func=ast.Name(id=name)) if name in _OF_NO_VALUE:
            return False
        case ast.Call() if parent.func is not child:
            return not _takes_array(parent, child, inference)
    return False


def is_held_function(func: ast.expr, inference: Inference) -> bool:
    """Whether what is called is something that an object was given and holds, as a loss: ``self.criterion``."""
    owner = inference.fact(func.value) if isinstance(func, ast.Attribute) else UNKNOWN
    if not isinstance(func, ast.Attribute) or not isinstance(owner, Instance):
        return False
    info, held = owner.cls.info, inference.fact(func)
    is_set = any(func.attr in one.attributes for one in info.ancestry())
    return is_set and info.method(func.attr) is None and not isinstance(held, Instance | Object | Class | Qual)


def _takes_array(call: ast.Call, given: ast.AST, inference: Inference) -> bool:
    """Whether what is given to a call, of which nothing else is known, is surely no setting of it.

    A module and a function of the file compute with what they are given, and so does what the program was given
    itself, which is a loss function. PyTorch's functions say by a parameter's name that it is a tensor.
    """
    fact, keyword = inference.fact(call.func), given.arg if isinstance(given, ast.keyword) else None
    if is_module(fact):
        return True
    if keyword is not None and keyword not in _ARRAYS:
        return False
    if isinstance(fact, Function):
        return keyword is None
    shown = given.value if isinstance(given, ast.keyword) else given
    value = inference.fact(shown)
    listed = isinstance(shown, ast.List | ast.Tuple)
    if not listed and value != UNKNOWN and not isinstance(value, UnknownParameter):
        return False
    if isinstance(fact, UnknownParameter) or is_held_function(call.func, inference):
        return True
    owner = inference.fact(call.func.value) if isinstance(call.func, ast.Attribute) else UNKNOWN
    if isinstance(owner, Tensor) and isinstance(call.func, ast.Attribute):
        rule = REGISTRY.get(f"torch.Tensor.{call.func.attr}") or REGISTRY.get(f"torch.{call.func.attr}")
    else:
        rule = REGISTRY.get(fact.name) if isinstance(fact, Qual) else None
    if rule is None or keyword is not None:
        return rule is not None
    place = call.args.index(given) if given in call.args else len(call.args)
    place += isinstance(owner, Tensor)
    return any(p.name in _ARRAYS for p in (rule.signatures[0].parameters or ())[place : place + 1])
