"""``torch.autograd.grad(u, self.x)``: a gradient by what the object keeps.

JAX differentiates a function by its argument, which has a name. Where a file has a gap there, a method is read as if a
variable held the attribute from its start on: nothing but constructors gives the attribute another tensor.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from t2j_lsp import symbols
from t2j_lsp.contract import Finding
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.binding import argument
from t2j_lsp.translate.rule.definitions import FunctionInfo
from t2j_lsp.translate.rule.facts import Qual, Tensor
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.source.rearranged import Edits, Fragment, RearrangedText

from .steady_arguments import is_made_once

_FLAGS = frozenset({"requires_grad_"})
"""Methods that write nothing into a tensor, though they end so."""


def with_inputs_as_variables(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which methods name what they differentiate by; None where none has to."""
    if not any(name in gap.reason or gap.name == name for gap in gaps for name in names_with(Trait.INPUT_GRADIENT)):
        return None
    edits: Edits = []
    for info in inference.functions.values():
        if not info.external and info.outer is None and info.owner is not None and not info.static:
            edits += _edits(inference, info)
    return RearrangedText.of(inference.source.text, edits)


def _edits(inference: Inference, info: FunctionInfo) -> Edits:
    source, nodes = inference.source, list(symbols.walk(info.node))
    parameters = info.node.args.args
    if info.name == "__init__" or not parameters or not source.starts_line(first := _first(info)):
        return []
    own = parameters[0].arg
    if sum(isinstance(n, ast.arg) and n.arg == own for n in nodes) > 1:
        return []
    taken = {n.id for n in nodes if isinstance(n, ast.Name)} | {n.arg for n in nodes if isinstance(n, ast.arg)}
    edits: Edits = []
    lines: list[str] = []
    for name in dict.fromkeys(_inputs(inference, nodes, own)):
        reads = [n for n in nodes if isinstance(n, ast.Attribute) and ast.unparse(n) == f"{own}.{name}"]
        arrays = all(isinstance(fact := inference.fact(n), Tensor) and not fact.variable for n in reads)
        if not arrays or not is_made_once(inference, f"{own}.{name}") or any(_is_written(inference, n) for n in reads):
            continue
        variable = f"{name}_" if name in taken else name
        taken.add(variable)
        lines.append(f"{variable} = {own}.{name}")
        edits += [(*source.span(n), [Fragment(variable, *source.span(n))]) for n in reads]
    at, indent = source.span(first)[0], source.indent(first.lineno)
    text = "".join(f"{line}{source.newline}{indent}" for line in lines)
    return [(at, at, [Fragment(text, at, at)]), *edits] if lines else []


def _first(info: FunctionInfo) -> ast.stmt:
    """The first statement behind the docstring."""
    body = info.node.body
    return body[1] if len(body) > 1 and ast.get_docstring(info.node) is not None else body[0]


def _inputs(inference: Inference, nodes: Iterable[ast.AST], own: str) -> Iterator[str]:
    """The attributes by which calls in a method differentiate."""
    for node in nodes:
        fact = inference.fact(node.func) if isinstance(node, ast.Call) else None
        if isinstance(node, ast.Call) and isinstance(fact, Qual) and fact.name in names_with(Trait.INPUT_GRADIENT):
            match argument(node, 1, "inputs"):
                case (
                    ast.Attribute(value=ast.Name(id=owner), attr=name)
                    | ast.List(elts=[ast.Attribute(value=ast.Name(id=owner), attr=name)])
                    | ast.Tuple(elts=[ast.Attribute(value=ast.Name(id=owner), attr=name)])
                ) if owner == own:
                    yield name


def _is_written(inference: Inference, read: ast.Attribute) -> bool:
    """Whether a method gives a tensor other numbers, which a variable in JAX would not hand on."""
    match inference.source.parents.get(read):
        case ast.Attribute(attr=name, ctx=context):
            return not isinstance(context, ast.Load) or name.endswith("_") and name not in _FLAGS
        case ast.Subscript(ctx=context):
            return not isinstance(context, ast.Load)
        case ast.AugAssign():
            return True
    return not isinstance(read.ctx, ast.Load)
