"""Values of parameters that a program keeps while it trains: in PyTorch they are the parameters' own memory.

``before = net.weight.data`` or ``.detach().numpy()`` shows the weights of behind the training, a clone those of before;
what JAX reads is an array that stays as it is.
"""

from __future__ import annotations

import ast

from t2j_lsp.symbols import own_nodes, walk
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.walk_order import reads_of
from t2j_lsp.translate.inference.call_sites import function_run_by, reached_functions
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.gates import Gate
from t2j_lsp.translate.rule.facts import Tensor
from t2j_lsp.translate.rule.library import Trait, names_with

REASON = "this follows the parameters as they are trained, and JAX's arrays don't: keep a clone of it"
RETURNED = (
    "PyTorch gives the parameters' own memory here (of .cpu() on a CPU), which follows their training where it is kept;"
    " this is an array of its own"
)
_TRAINS = frozenset({"backward", "step"})
NEEDS = Gate(words=frozenset({"backward"}))
_SHARING = (names_with(Trait.VIEW), names_with(Trait.SAME_TENSOR), names_with(Trait.TO_NUMPY))
_WALKS = frozenset({"parameters", "values"})
_PAIRS = frozenset({"named_parameters", "items"})


def report_live_views(context: Context) -> None:
    """Report what is kept of parameters, and read behind their training; note what functions give of them."""
    inference = context.inference
    for node in context.source.nodes:
        match node:
            case ast.Assign(targets=[ast.Name()], value=value) if _shows(inference, value):
                if _is_late(inference, node):
                    context.report.gap(value, "parameters", "unsure", REASON)
            case ast.Return(value=ast.expr() as value) if _shows(inference, value):
                context.report.note(value, "parameters", "note", RETURNED)


def _shows(inference: Inference, value: ast.expr, walked: frozenset[str] = frozenset(), depth: int = 0) -> bool:
    """Whether a value is the memory of parameters, or holds it."""
    match value:
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return any(_shows(inference, part, walked, depth) for part in parts)
        case ast.Dict(values=parts):
            return any(_shows(inference, part, walked, depth) for part in parts)
        case ast.ListComp(elt=part, generators=[over]) | ast.DictComp(value=part, generators=[over]):
            return _shows(inference, part, walked | _walked(over), depth)
        case ast.Call() if depth < 2 and (info := function_run_by(inference, value)) is not None:
            returned = [n.value for n in own_nodes(info.node) if isinstance(n, ast.Return) and n.value is not None]
            return not info.external and any(_shows(inference, one, frozenset(), depth + 1) for one in returned)
    return _is_view(inference, value, walked)


def _is_view(inference: Inference, value: ast.expr, walked: frozenset[str]) -> bool:
    """Whether it is ``p.data``, or ``p.detach()``, as an array of NumPy's or as it is."""
    seen, at = False, value
    while True:
        match at:
            case ast.Call(func=ast.Attribute(attr=attr, value=inner)) if any(attr in one for one in _SHARING):
                seen |= attr == "detach"
            case ast.Attribute(attr="data", value=inner):
                seen = True
            case ast.Name(id=name):
                return name in walked and at is not value
            case ast.Subscript(value=ast.Call(func=ast.Attribute(attr="state_dict"))):
                return at is not value
            case ast.Attribute():
                fact = inference.fact(at)
                return seen and isinstance(fact, Tensor) and fact.variable
            case _:
                return False
        at = inner


def _walked(over: ast.comprehension) -> frozenset[str]:
    """The variable that a comprehension gives each parameter to."""
    match over:
        case ast.comprehension(target=ast.Name(id=name), iter=ast.Call(func=ast.Attribute(attr=attr), args=[])):
            return frozenset({name} if attr in _WALKS and _is_of_module(over.iter) else ())
        case ast.comprehension(
            target=ast.Tuple(elts=[_, ast.Name(id=name)]), iter=ast.Call(func=ast.Attribute(attr=attr), args=[])
        ):
            return frozenset({name} if attr in _PAIRS and _is_of_module(over.iter) else ())
    return frozenset()


def _is_of_module(walk: ast.expr) -> bool:
    """Whether it is ``net.parameters()`` or ``net.state_dict().items()``."""
    match walk:
        case ast.Call(func=ast.Attribute(attr="parameters" | "named_parameters")):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Attribute(attr="state_dict")))):
            return True
    return False


def _is_late(inference: Inference, given: ast.Assign) -> bool:
    """Whether a variable is read behind a training that comes after it was given its value."""
    reads, block = reads_of(inference, given), inference.source.block_of(given)
    if not reads or block is None:
        return False
    trained = False
    for statement in block[block.index(given) + 1 :]:
        inside = list(walk(statement))
        if trained and any(read in inside for read in reads):
            return True
        trained = trained or _trains(inference, statement)
    return False


def _trains(inference: Inference, statement: ast.stmt) -> bool:
    """Whether a statement, or a function that it runs, makes a step."""
    run = [statement, *(info.node for info in reached_functions(inference, [statement]))]
    named = {n.attr for code in run for n in walk(code) if isinstance(n, ast.Attribute)}
    return named >= _TRAINS
