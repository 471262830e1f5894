"""Training code: what it says of the file's variables, and what becomes of it as a whole.

Optimizers, schedulers, data pipelines and training loops are planned before anything is written, and each plan puts
handlers on the statements and expressions it is about. What isn't surely understood is left whole, with the reason.
"""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import StatementRewriter
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.unit_tests import with_fixture_facts
from t2j_lsp.translate.source.positions import header_end
from t2j_lsp.translate.training.data.batches import Batches
from t2j_lsp.translate.training.data.data_seeds import plan_seeds
from t2j_lsp.translate.training.data.pipelines import Data
from t2j_lsp.translate.training.data.roles import with_training_facts
from t2j_lsp.translate.training.optimizers.counted_schedules import CountedSchedules
from t2j_lsp.translate.training.optimizers.frozen import Frozen
from t2j_lsp.translate.training.optimizers.lost_parameters import LostParameters
from t2j_lsp.translate.training.optimizers.made_optimizers import Optimizers
from t2j_lsp.translate.training.optimizers.parts_of_one import plan_parts
from t2j_lsp.translate.training.program.objects import Objects
from t2j_lsp.translate.training.steps.handed_batches import HandedBatches
from t2j_lsp.translate.training.steps.kept_uses import KeptUses
from t2j_lsp.translate.training.steps.outside_updates import OutsideUpdates
from t2j_lsp.translate.training.steps.training_steps import Steps
from t2j_lsp.translate.training.steps.undifferentiated import Undifferentiated
from t2j_lsp.translate.training.steps.unit_test_gradients import plan_gradients
from t2j_lsp.translate.training.steps.written_prints import plan_prints

from .gate import LOSSES


def refine(inference: Inference) -> Inference:
    """The inference with what training code tells of parameters and batches."""

    if inference.holds_tests:
        inference = with_fixture_facts(inference)
    if not inference.has(LOSSES):
        return inference

    return with_training_facts(inference)


def plan_training(context: Context) -> None:
    """Put handlers on the training code of the file."""
    objects = Objects(context)
    optimizers = Optimizers(context, objects)
    optimizers.plan()
    data = Data(context, objects)
    data.plan()
    KeptUses(data).plan()
    plan_seeds(context)
    batches = Batches(context, objects)
    batches.plan()
    left = Frozen(context, objects).plan() or LostParameters(context, objects).reason()
    if not left:
        plan_parts(context, objects)
    steps = Steps(context, objects, left, plan_gradients(context))
    steps.plan()
    if not left and not steps.refused:
        CountedSchedules(context, objects, optimizers, {n for s in steps.used for n in symbols.walk(s)}).plan()
    Undifferentiated(context, objects, steps).plan()
    outside = OutsideUpdates(context, objects, optimizers, steps, batches)
    outside.plan()
    if steps.converted:
        plan_prints(context)
    handed = HandedBatches(context, steps, outside.compiled, outside.passed)
    batches.handed, batches.unpacked, batches.part = handed.is_handed, handed.is_unpacked, handed.is_part
    _convert_batches(context, batches, {n for s in steps.refused for n in symbols.walk(s)})


def _convert_batches(context: Context, batches: Batches, left: set[ast.AST]) -> None:
    """The first line of a loop converts what its loader yields, where nothing else does."""
    for loop in [n for n in context.source.nodes if isinstance(n, ast.For)]:
        if loop.body[0] in batches.inserted and loop not in left:
            inner = context.plan.statement_handlers.get(loop)

            def handler(statements: StatementRewriter, loop: ast.For = loop, inner: object = inner) -> None:
                if callable(inner):
                    inner(statements)
                else:
                    statements.dispatch(loop)
                lines = batches.lines(loop.body[0], statements.renderer)
                line = header_end(loop)
                indent = context.edits.indent(loop.body[0].lineno)
                text = "".join(f"{indent}{one}{context.source.newline}" for one in lines)
                context.edits.add(context.source.starts[line], context.source.starts[line], text, -3)

            context.plan.on_statement(loop, handler)
