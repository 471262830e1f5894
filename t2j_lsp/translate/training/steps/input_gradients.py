"""Gradients by an input: ``torch.autograd.grad`` of what was computed from a variable, as in a gradient penalty.

PyTorch follows the graph from the value back to the variable. In JAX the expression that the value was assigned is
differentiated as a function of the variable.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import partial

from t2j_lsp import symbols
from t2j_lsp.symbols import nearest
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import ExpressionRenderer, StatementRewriter
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.gates import Gate
from t2j_lsp.translate.rule.binding import argument
from t2j_lsp.translate.rule.facts import Qual
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.names import is_torch
from t2j_lsp.translate.rule.pieces import ATOM, Piece, bracket

NEEDS = Gate(names=(names_with(Trait.INPUT_GRADIENT),))


@dataclass(frozen=True)
class InputGradient:
    """A call that differentiates a value by one variable."""

    call: ast.Call
    variable: ast.Name
    value: ast.expr
    """The expression that is differentiated, of the variable."""
    summed: bool
    """Whether the sum of the value is differentiated; the value is a number where it isn't."""
    through: bool
    """Whether the gradient is itself differentiated."""
    parts: tuple[ast.Assign, ...] = ()
    """The statements that name the value and the weights."""


def input_gradient(inference: Inference, call: ast.Call) -> InputGradient | None:
    """What a call of ``torch.autograd.grad`` differentiates; None where that isn't sure."""
    fact = inference.fact(call.func)
    if not isinstance(fact, Qual) or fact.name not in names_with(Trait.INPUT_GRADIENT):
        return None
    outputs, inputs = argument(call, 0, "outputs"), argument(call, 1, "inputs")
    if isinstance(inputs, ast.List | ast.Tuple) and len(inputs.elts) == 1:
        inputs = inputs.elts[0]
    weights, graph = argument(call, 2, "grad_outputs"), argument(call, 4, "create_graph")
    unused = argument(call, 6, "allow_unused")
    summed = False
    match outputs:
        case ast.Call(func=ast.Attribute(value=ast.Name() as held, attr="sum"), args=[], keywords=[]):
            outputs, summed = held, True
    if not isinstance(outputs, ast.Name) or not isinstance(inputs, ast.Name):
        return None
    if any(not _says_default(keyword) for keyword in call.keywords):
        return None
    if not (unused is None or isinstance(unused, ast.Constant) and unused.value in (None, False)):
        if not (_is_constant(unused, True) and _is_used(inference, call)):
            return None
    made = _assigned_before(inference, call, outputs.id)
    if made is None or not _depends_directly(inference, made, inputs.id):
        return None
    if weights is not None and not (isinstance(weights, ast.Constant) and weights.value is None):
        if summed or not are_ones(inference, call, weights):
            return None
        summed = True
    through = isinstance(graph, ast.Constant) and graph.value is True
    if graph is not None and not isinstance(graph, ast.Constant):
        return None
    named = _assigned_before(inference, call, weights.id) if isinstance(weights, ast.Name) else None
    return InputGradient(call, inputs, made.value, summed, through, tuple(one for one in (made, named) if one))


def _says_default(keyword: ast.keyword) -> bool:
    """Whether a keyword is one that is read, or says what PyTorch does without it."""
    default = {"only_inputs": True, "is_grads_batched": False, "materialize_grads": False}
    known = "outputs", "inputs", "grad_outputs", "retain_graph", "create_graph", "allow_unused"
    return keyword.arg in known or keyword.arg in default and _is_constant(keyword.value, default[keyword.arg])


def _is_constant(node: ast.expr, value: bool) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def _is_used(inference: Inference, call: ast.Call) -> bool:
    """Whether all that is done with the only gradient would fail in PyTorch if it were None: it is computed with."""
    parents = inference.source.parents
    first = parents.get(call)
    statement = parents.get(first) if first is not None else None
    match first, statement:
        case ast.Subscript(), ast.Assign(targets=[ast.Name(id=name)], value=value) if value is first:
            around = nearest(ast.FunctionDef, call, parents) or inference.source.tree
            reads = [n for n in symbols.walk(around) if isinstance(n, ast.Name) and n.id == name]
            return all(_fails_with_none(inference, n) for n in reads if isinstance(n.ctx, ast.Load))
        case ast.Subscript(), _:
            return _fails_with_none(inference, first)
    return False


def _fails_with_none(inference: Inference, node: ast.expr) -> bool:
    match inference.source.parents.get(node):
        case ast.Subscript(value=value) | ast.Attribute(value=value):
            return value is node
        case ast.BinOp() | ast.UnaryOp(op=ast.USub()):
            return True
        case ast.Call(func=func) if func is not node:
            fact = inference.fact(func)
            return isinstance(fact, Qual) and is_torch(fact.name)
    return False


def plan_input_gradients(context: Context) -> None:
    """Put handlers on the calls, or on the subscripts that take their only gradient."""
    for node in context.source.nodes:
        if isinstance(node, ast.Call) and (gradient := input_gradient(context.inference, node)) is not None:
            _plan(context, gradient)


def _plan(context: Context, gradient: InputGradient) -> None:
    inside = set(symbols.walk(gradient.call))
    for part in gradient.parts:
        if _is_read_only_in(context, part, inside):
            context.plan.on_statement(part, partial(_gone, context, part))
    match context.source.parents.get(gradient.call):
        case ast.Subscript(slice=ast.Constant(value=0), ctx=ast.Load()) as first:
            context.plan.on_expression(first, lambda renderer: _gradient(context, renderer, gradient))
        case _:
            context.plan.on_expression(
                gradient.call, lambda renderer: Piece(f"({_gradient(context, renderer, gradient).text},)")
            )


def _is_read_only_in(context: Context, made: ast.Assign, inside: set[ast.AST]) -> bool:
    """Whether a call alone reads what a statement of its function assigns, once."""
    assert isinstance(made.targets[0], ast.Name)
    function = nearest(ast.FunctionDef, made, context.source.parents)
    named = [n for n in symbols.walk(function or made) if isinstance(n, ast.Name) and n.id == made.targets[0].id]
    return function is not None and all(n is made.targets[0] or n in inside for n in named)


def _gone(context: Context, made: ast.Assign, statements: StatementRewriter) -> None:
    """The statement goes: the function that is differentiated says what it said."""
    context.edits.drop(*context.source.span(made))
    context.edits.delete(made)


def _gradient(context: Context, renderer: ExpressionRenderer, gradient: InputGradient) -> Piece:
    """``jax.grad(lambda x: jnp.sum(critic(x)))(x)``."""
    context.report.count_converted()
    value = renderer.argument(gradient.value)
    body = f"{renderer.need('jnp')}.sum({value.text})" if gradient.summed else bracket(value, 1)
    name = gradient.variable.id
    text = f"{renderer.need('jax')}.grad(lambda {name}: {body})({name})"
    return Piece(text if gradient.through else f"{renderer.need('jax')}.lax.stop_gradient({text})", ATOM)


def _assigned_before(inference: Inference, call: ast.Call, name: str) -> ast.Assign | None:
    """The last statement that assigns a name, in front of the call and in its block.

    None where something that it is computed from is bound anew in between.
    """
    statement: ast.AST = call
    while not isinstance(statement, ast.stmt):
        statement = inference.source.parents[statement]
    block = inference.source.block_of(statement) or []
    front = block[: block.index(statement)] if statement in block else []
    assignments = [s for s in front if any(_binds(n, name) for n in symbols.walk(s))]
    match assignments:
        case [*_, ast.Assign(targets=[ast.Name()]) as made]:
            read = {n.id for n in symbols.walk(made.value) if isinstance(n, ast.Name)}
            between = front[front.index(made) + 1 :]
            fresh = name not in read and not any(
                _binds(n, one) for s in between for n in symbols.walk(s) for one in read
            )
            return made if len(assignments) == 1 or fresh else None
    return None


def _binds(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)


def _depends_directly(inference: Inference, made: ast.Assign, name: str) -> bool:
    """Whether a value is computed from a variable, and from nothing else that was."""
    whole = {
        n for call in symbols.walk(made.value) if _is_gradient_by(inference, call, name) for n in symbols.walk(call)
    }
    read = {n.id for n in symbols.walk(made.value) if isinstance(n, ast.Name) and n not in whole}
    if whole:
        read.add(name)
    block = inference.source.block_of(made) or []
    front = block[: block.index(made)]
    last = max((i for i, s in enumerate(front) if any(_binds(n, name) for n in symbols.walk(s))), default=-1)
    for statement in front[last + 1 :]:
        names = [n for n in symbols.walk(statement) if isinstance(n, ast.Name)]
        if any(n.id == name for n in names) and any(_binds(n, n.id) and n.id in read for n in names):
            return False
    behind = block[block.index(made) + 1 :]
    return name in read and not any(_binds(n, name) for s in behind for n in symbols.walk(s))


def _is_gradient_by(inference: Inference, node: ast.AST, name: str) -> bool:
    """Whether it is a gradient by the variable, which is written as a function of it alone."""
    gradient = input_gradient(inference, node) if isinstance(node, ast.Call) else None
    return gradient is not None and gradient.variable.id == name and gradient.through


def are_ones(inference: Inference, call: ast.Call, weights: ast.expr) -> bool:
    """Whether all elements count once: ``torch.ones_like(y)``, ``Tensor(n, 1).fill_(1.0)``, or a name for it.

    PyTorch raises where they have another shape than what is differentiated.
    """
    match weights:
        case ast.Name(id=name):
            made = _assigned_before(inference, call, name)
            return made is not None and are_ones(inference, call, made.value)
        case ast.IfExp(body=body, orelse=orelse):
            return are_ones(inference, call, body) and are_ones(inference, call, orelse)
        case ast.Call(func=ast.Attribute(attr="fill_"), args=[ast.Constant(value=1)], keywords=[]):
            return True
        case ast.Call(func=ast.Attribute(value=inner, attr=method)) if method in _MOVES or method in _SAME:
            return are_ones(inference, call, inner)
        case ast.Call(func=function, args=args):
            fact = inference.fact(function)
            if isinstance(fact, Qual) and fact.name in names_with(Trait.VARIABLE):
                return len(args) == 1 and are_ones(inference, call, args[0])
            return isinstance(fact, Qual) and fact.name in names_with(Trait.ONES)
    return False


_MOVES, _SAME = frozenset({"to", "requires_grad_"}), names_with(Trait.SAME_VALUES)
