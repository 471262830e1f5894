"""Which values are held channels-last, so that standard nnx layers stand where PyTorch's channels-first ones stood.

Every module keeps PyTorch's axes at its border. Inside a ``forward``, a convolution that is only ever called there
becomes ``nnx.Conv``: its argument is moved to channels-last and its value back, and between neighbours the two moves
cancel. The pass marks expressions: ``natural`` ones have a channels-last value, ``wanted`` ones stand where one is
taken. Where both hold nothing is written; where one holds, ``jnp.moveaxis`` is.
"""

from __future__ import annotations

import ast

from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.gates import Gate
from t2j_lsp.translate.rule.binding import bind
from t2j_lsp.translate.rule.facts import Layer, Qual
from t2j_lsp.translate.rule.pieces import Piece
from t2j_lsp.translate.rule.record import CHANNELS_LAST, REGISTRY

from .chains import Chains, exact_constructors, is_convolution, silent_call
from .first import channels_first, is_asked, shared_base
from .marks import ClassLayout, Layout

NEEDS = Gate(facts=frozenset({Layer}))
"""Only layers have a layout."""


def plan_layout(inference: Inference) -> Layout:
    """Mark the whole file."""
    layout = _marked(inference)
    layout.channels_first = channels_first(inference) - layout.channels_last
    return layout


def _marked(inference: Inference) -> Layout:
    layout = Layout()
    convolutions = set(filter(is_convolution, inference.mentioned))
    asked = set(filter(is_convolution, inference.isinstance_classes))
    if not convolutions or inference.state.hooks_any or any(shared_base(name, inference) is None for name in asked):
        return layout
    chains, functions = Chains(inference, set(exact_constructors(inference))), function_calls(inference)
    parents = inference.source.parents
    helpers: set[str] = set()
    for _ in range(2):
        layout = Layout()
        for info in inference.classes.values():
            if info.is_module and info.node in inference.classes:
                ClassLayout(inference, info, chains, functions, parents, layout, helpers).plan()
        helpers = _helpers_needed(inference, parents, layout)
        if not helpers:
            break
    return layout


def _helpers_needed(inference: Inference, parents: dict[ast.AST, ast.AST], layout: Layout) -> set[str]:
    """The convolutions that stand outside the layout as well, and need their channels-first classes there."""
    helpers: set[str] = set()
    for node, fact in inference.facts.items():
        if isinstance(fact, Qual) and is_convolution(fact.name):
            call = parents.get(node)
            built = isinstance(call, ast.Call) and call.func is node
            if built and call not in layout.channels_last or not built and not is_asked(node, parents):
                helpers.add(fact.name)
    return helpers


def function_calls(inference: Inference) -> dict[ast.Call, int]:
    """Calls of functions whose channels-last form is exact, by trying it, and how many spatial axes they have."""
    calls: dict[ast.Call, int] = {}
    for node, fact in inference.facts.items():
        call = inference.source.parents.get(node)
        if isinstance(fact, Qual) and fact.name in CHANNELS_LAST and isinstance(call, ast.Call) and call.func is node:
            rule, (spatial_axes, form) = REGISTRY.get(fact.name), CHANNELS_LAST[fact.name]
            bound = bind(rule.signatures[0], call, None) if rule is not None and call.args else None
            if rule is not None and bound is not None:
                if isinstance(form(silent_call(inference, rule.signatures[0], bound, call)), Piece):
                    calls[call] = spatial_axes
    return calls
