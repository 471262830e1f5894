"""What becomes of stacks: ``nnx.vmap`` makes the layers, ``nnx.scan`` runs them.

JAX compiles a scan's layer once, and a loop's for each time (https://flax.readthedocs.io/en/stable/guides/transforms.html).
"""

from __future__ import annotations

import ast
from functools import partial

from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import ExpressionRenderer, StatementRewriter
from t2j_lsp.translate.inference.gates import Gate
from t2j_lsp.translate.rule.facts import Layer
from t2j_lsp.translate.rule.pieces import Piece, assigned

from .stacks import COUNT, NotAStack, Stack, Stacks

NEEDS = Gate(facts=frozenset({Layer}))
_AXES = "in_axes=({nnx}.Carry, 0), out_axes={nnx}.Carry"


def plan_scans(context: Context) -> None:
    """Put handlers on the lists that are stacks, and on what runs them. Others are noted with the reason."""
    stacks = Stacks(context.inference)
    for info, made in stacks.candidates():
        if context.plan.keeps(made, context.source.parents) or not context.source.starts_line(made):
            continue
        try:
            stack = stacks.stack(info, made)
        except NotAStack as reason:
            fact = context.fact(made.value)
            assert isinstance(fact, Layer)
            context.report.note(made, fact.name, "note", f"these layers are not scanned: {reason}")
            continue
        context.plan.on_statement(stack.made, partial(_make, context, stack))
        for loop in stack.loops:
            context.plan.on_statement(loop, partial(_run, context, stack, loop))
        for call in stack.calls:
            context.plan.on_expression(call, partial(_call, context, stack, call))


def _make(context: Context, stack: Stack, statements: StatementRewriter) -> None:
    """``self.blocks = create_block(rngs)``."""
    renderer = statements.renderer
    nnx, layer = renderer.need("nnx"), renderer.argument(stack.layer).text
    count = assigned(renderer.render(stack.count))
    create = _name(context, "create_layer")
    context.edits.insert_before(
        stack.made,
        [
            *_blank(context, stack.made),
            f"@{nnx}.split_rngs(splits={count})",
            f"@{nnx}.vmap",
            f"def {create}(rngs: {nnx}.Rngs):",
            f"    return {layer}",
            "",
        ],
        priority=3,
    )
    target = f"self.{stack.name}"
    context.edits.replace(stack.made.value, f"{create}(rngs)")
    context.edits.insert_after(stack.made, [f"{target}.{COUNT} = {count}  # index i of each array is that of layer i"])
    context.report.count_converted()


def _run(context: Context, stack: Stack, loop: ast.For, statements: StatementRewriter) -> None:
    """``x = forward(x, self.blocks)``."""
    renderer = statements.renderer
    (step,) = loop.body
    assert isinstance(step, ast.Assign) and isinstance(step.targets[0], ast.Name) and isinstance(loop.target, ast.Name)
    nnx, name, carried = renderer.need("nnx"), _name(context, "run_layers"), step.targets[0].id
    lines = [
        f"@{nnx}.scan({_AXES.format(nnx=nnx)})",
        f"def {name}({carried}, {loop.target.id}):",
        f"    return {assigned(renderer.render(step.value))}",
        "",
        f"{carried} = {name}({carried}, self.{stack.name})",
    ]
    indent = context.edits.indent(loop.lineno)
    text = context.source.newline.join(f"{indent if line and at else ''}{line}" for at, line in enumerate(lines))
    context.edits.insert_before(loop, _blank(context, loop))
    context.edits.replace(loop, text)
    context.report.count_converted()


def _name(context: Context, name: str) -> str:
    """A name for a function inside a method: the same in each, where the file has none such."""
    return context.names.fresh(name) if name in context.names.of_source | context.names.reserved else name


def _blank(context: Context, node: ast.stmt) -> list[str]:
    """The empty line that stands in front of a function, but not at the start of a block."""
    block = context.source.block_of(node) or [node]
    return [""] if any(one not in context.edits.deleted for one in block[: block.index(node)]) else []


def _call(context: Context, stack: Stack, call: ast.Call, renderer: ExpressionRenderer) -> Piece:
    """A call of a sequence of layers; the function that runs them stands in front of the statement, where it can."""
    nnx, given = renderer.need("nnx"), renderer.argument(call.args[0]).text
    axes, statement = _AXES.format(nnx=nnx), context.scope.statement
    if statement is None or not statement.hoistable:
        return Piece(f"{nnx}.scan(lambda x, layer: layer(x), {axes})({given}, self.{stack.name})")
    name = _name(context, "run_layers")
    lines = [f"@{nnx}.scan({axes})", f"def {name}(x, layer):", "    return layer(x)", ""]
    if lines[1] not in statement.before:
        statement.before += [*_blank(context, statement.node), *lines]
    return Piece(f"{name}({given}, self.{stack.name})")
