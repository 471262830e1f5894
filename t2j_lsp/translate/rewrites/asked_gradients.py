"""Gradients by one tensor that are asked for: ``g = torch.autograd.grad(loss, x)[0]``, as attacks and samplers do.

A gradient of an expression of ``x`` is written where it stands. Where more than one statement leads from ``x`` to the
loss, a file with gaps is read as if the backward pass left the gradient in ``x.grad``, which has its own form.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from contextlib import suppress

from t2j_lsp import symbols
from t2j_lsp.contract import Finding
from t2j_lsp.symbols import nearest
from t2j_lsp.translate.expressions.backward import differentiates
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.binding import argument
from t2j_lsp.translate.rule.facts import Qual
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.source.own_lines import units
from t2j_lsp.translate.source.rearranged import Edits, RearrangedText
from t2j_lsp.translate.training.steps.input_gradients import are_ones

from .left_out import ObjectLeftOut, Stays
from .weighted_backward import operand


def with_asked_gradients_stored(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which such gradients are stored; None if there are none, or everything converts."""
    source, names = inference.source, names_with(Trait.INPUT_GRADIENT)
    if not any(gap.name in names or any(name in gap.reason for name in names) for gap in gaps):
        return None
    by_function: dict[ast.AST | None, list[tuple[ast.Assign, str]]] = {}
    for node in source.nodes:
        if isinstance(node, ast.Assign) and (text := _stored(inference, node)) is not None:
            by_function.setdefault(nearest(ast.FunctionDef, node, source.parents), []).append((node, text))
    edits: Edits = []
    for function, (first, *others) in by_function.items():
        inside = symbols.walk(function) if function is not None else source.nodes
        if others or any(differentiates(inference, n) for n in inside):
            continue  # its gradients would add up with these
        edits += _edits(inference, function, *first)
    return RearrangedText.of(source.text, edits)


def _edits(inference: Inference, function: ast.AST | None, node: ast.Assign, text: str) -> Edits:
    """Such lines instead of a statement, and instead of a context around it in which gradients are taken anyway."""
    left_out = ObjectLeftOut(inference)
    left_out.instead[inference.source.span(node)] = text
    around = inference.source.parents.get(node)
    if isinstance(around, ast.With) and isinstance(function, ast.FunctionDef) and not function.decorator_list:
        gradients = names_with(Trait.FORWARD) & names_with(Trait.TRANSPARENT)
        names = [
            inference.fact(one.context_expr.func) for one in around.items if isinstance(one.context_expr, ast.Call)
        ]
        plain = all(isinstance(fact, Qual) and fact.name in gradients for fact in names)
        outer = any(isinstance(one, ast.With) for one in symbols.ancestors(around, inference.source.parents))
        if plain and len(names) == len(around.items) and not outer:
            with suppress(Stays):
                left_out.open(around)
    return left_out.made_edits()


def _stored(inference: Inference, node: ast.Assign) -> str | None:
    """The lines that store a gradient and read it; None for other statements."""
    read = _first_gradient(node.value)
    match node:
        case ast.Assign(targets=[ast.Name() as held]) if read is not None and isinstance(read.value, ast.Call):
            call = read.value
        case ast.Assign(targets=[ast.Tuple(elts=[ast.Name() as held])], value=ast.Call() as call):
            pass
        case _:
            return None
    fact, source = inference.fact(call.func), inference.source
    if not isinstance(fact, Qual) or fact.name not in names_with(Trait.INPUT_GRADIENT):
        return None
    loss, inputs = argument(call, 0, "outputs"), argument(call, 1, "inputs")
    weights, graph = argument(call, 2, "grad_outputs"), argument(call, 4, "create_graph")
    if isinstance(inputs, ast.List | ast.Tuple) and len(inputs.elts) == 1:
        inputs = inputs.elts[0]
    known = {"outputs", "inputs", "grad_outputs", "retain_graph", "create_graph", "only_inputs"}
    if loss is None or not isinstance(inputs, ast.Name) or len(call.args) > 5:
        return None
    if any(k.arg not in known for k in call.keywords) or not _is_constant(graph, (None, False)):
        return None
    text = operand(source, loss)
    if not _is_constant(weights, (None,)):
        if weights is None or not are_ones(inference, call, weights):
            return None
        text = f"{text}.sum()"
    block = source.block_of(node) or []
    alone = next((len(unit) == 1 for unit in units(block) if node in unit), False)
    if not alone or not source.starts_line(node) or "\n" in text:
        return None
    name = inputs.id
    value = f"{name}.grad"
    if read is not None:
        (first, last), (start, end) = source.span(node.value), source.span(read)
        value = f"{source.text[first:start]}{value}{source.text[end:last]}"
    lines = [f"{name}.grad = None", f"{text}.backward()", f"{held.id} = {value}"]
    return f"{source.newline}{source.indent(node.lineno)}".join(lines)


def _first_gradient(node: ast.expr) -> ast.Subscript | None:
    """``grad(...)[0]``, which may be scaled or negated by names and numbers."""
    match node:
        case ast.Subscript(value=ast.Call(), slice=ast.Constant(value=0)):
            return node
        case ast.BinOp(left=left, right=ast.Name() | ast.Constant()):
            return _first_gradient(left)
        case ast.BinOp(left=ast.Name() | ast.Constant(), right=inner) | ast.UnaryOp(operand=inner):
            return _first_gradient(inner)
        case _:
            return None


def _is_constant(node: ast.expr | None, values: tuple[object, ...]) -> bool:
    """Whether an argument is one of some constants, or isn't given."""
    return node is None or isinstance(node, ast.Constant) and node.value in values
