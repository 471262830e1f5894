"""Which values are held channels-last, so that standard nnx layers stand where PyTorch's channels-first ones stood.

A convolution that is only ever called becomes ``nnx.Conv``: its argument is moved to channels-last and its value back,
and between neighbours the two moves cancel. Modules that only other modules of the file call take and give what is
held so; the others keep PyTorch's axes at their border. The pass marks expressions: ``natural`` ones have a
channels-last value, ``wanted`` ones stand where one is taken. Where both hold nothing is written; where one holds,
``jnp.moveaxis`` is.
"""

from __future__ import annotations

import ast
from collections.abc import Collection

from t2j_lsp import symbols
from t2j_lsp.contract import Options
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.gates import Gate
from t2j_lsp.translate.rule.binding import bind
from t2j_lsp.translate.rule.definitions import FunctionInfo
from t2j_lsp.translate.rule.facts import Layer, Qual
from t2j_lsp.translate.rule.pieces import Piece
from t2j_lsp.translate.rule.record import CHANNELS_LAST, REGISTRY

from .chains import Interface, exact_constructors, is_convolution, silent_call, spatial
from .closed import ClosedFunctions
from .first import channels_first, shared_base
from .handed import HandedOn
from .marks import Layout
from .regions import Regions
from .uses import is_asked

NEEDS = Gate(facts=frozenset({Layer}))
"""Only layers have a layout."""


def plan_layout(inference: Inference, options: Options, named: Collection[str] = ()) -> Layout:
    """Mark the whole file. The options say which classes keep PyTorch's axes at their border.

    ``named`` are kinds of layers that keep the names of their classes, and with these PyTorch's axes: so all do then.
    """
    layout = Layout() if named else _marked(inference, options)
    layout.channels_first = {
        call
        for call in channels_first(inference) - layout.channels_last
        if isinstance(fact := inference.facts[call], Layer) and fact.name not in named
    }
    return layout


def _marked(inference: Inference, options: Options) -> Layout:
    layout = Layout()
    if options.taken_apart:
        return layout
    convolutions = set(filter(is_convolution, inference.mentioned))
    asked = set(filter(is_convolution, inference.isinstance_classes))
    if (
        not convolutions
        or inference.state.uses.hooks_any
        or any(shared_base(name, inference) is None for name in asked)
    ):
        return layout
    buildable = set(exact_constructors(inference))
    used = frozenset[str]()
    if options.used_elsewhere is not None:
        makers = _makers(inference, buildable)
        modules = {info.name for info in inference.classes.values() if info.is_module}
        used = frozenset(options.used_elsewhere(modules | makers.keys()))
        buildable -= {call for name in used & makers.keys() for call in makers[name]}
    handed = HandedOn(inference, used)
    closed = {} if options.in_parts else dict(ClosedFunctions(inference, handed, options.layout == "nhwc").all())
    closed = {info: one for info, one in closed.items() if info.owner is None or info.owner.name not in used}
    ranks = {spatial(name) for name in convolutions}
    rank = max(ranks) if len(ranks) == 1 else 0
    functions = function_calls(inference, rank)
    helpers: set[str] = set()
    for _ in range(2):
        interfaces = {info: _widest(info, rank) for info in closed} if rank else {}
        layout = Regions(inference, buildable, functions, interfaces, closed, handed, helpers, rank).plan()
        helpers = _helpers_needed(inference, inference.source.parents, layout)
        if not helpers:
            break
    return layout


def _makers(inference: Inference, buildable: set[ast.Call]) -> dict[str, set[ast.Call]]:
    """The functions of the module level that make such layers, by name: whoever else calls one takes PyTorch's axes."""
    own = [info for info in inference.functions.values() if not (info.owner or info.outer or info.external)]
    made = {info.name: buildable.intersection(symbols.walk(info.node)) for info in own}
    return {name: calls for name, calls in made.items() if calls}


def _widest(info: FunctionInfo, rank: int) -> Interface:
    """All that a function may take and give."""
    arguments = info.node.args
    needed = arguments.args[1 : len(arguments.args) - len(arguments.defaults)]
    return Interface(dict.fromkeys(needed, rank), rank)


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


def function_calls(inference: Inference, rank: int) -> dict[ast.Call, int]:
    """Calls of functions whose channels-last form is exact, by trying it, and how many spatial axes they have.

    Functions of any number of axes have ``rank``, if that is known.
    """
    calls: dict[ast.Call, int] = {}
    for node, fact in inference.facts.items():
        call = inference.source.parents.get(node)
        if isinstance(fact, Qual) and fact.name in CHANNELS_LAST and isinstance(call, ast.Call) and call.func is node:
            rule, (spatial_axes, form) = REGISTRY.get(fact.name), CHANNELS_LAST[fact.name]
            bound = bind(rule.signatures[0], call, None) if rule is not None and call.args else None
            if rule is not None and bound is not None:
                if isinstance(form(silent_call(inference, rule.signatures[0], bound, call)), Piece):
                    calls[call] = spatial_axes or rank
    return calls
