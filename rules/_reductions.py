"""What a loss does with its elements: ``reduction``, and the two switches that said it before."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable
from dataclasses import replace
from typing import cast

from t2j_lsp.translate.rule.facts import STR
from t2j_lsp.translate.rule.pieces import Piece
from t2j_lsp.translate.rule.record import Argument, Call, Refusal
from t2j_lsp.translate.rule.reductions import SWITCHES, is_said, reduction_said

FORMER_MEAN = "elementwise_mean"
"""What `mean` was called until PyTorch 1.0, which is still taken."""
OLD = "size_average=None, reduce=None, reduction='mean'"
"""The parameters of a loss that takes the old switches, too."""


def with_reduction(call: Call) -> Call | Refusal:
    """The call as if its ``size_average`` and ``reduce`` had been said as ``reduction``, which they overrule."""
    switches = {name: call.literal(name) for name in SWITCHES if name in call.arguments and call.given(name)}
    if not any(value is not None for value in switches.values()):
        former = "reduction" in call.arguments and call.literal("reduction") == FORMER_MEAN
        return _said(call, "mean", ()) if former else call
    if not is_said(switches):
        return call.refuse("size_average and reduce are deprecated: say reduction='mean', 'sum' or 'none'")
    return _said(call, reduction_said(switches), switches)


def _said(call: Call, reduction: str, switches: Iterable[str]) -> Call:
    """The call with this reduction, and without the switches that say it."""
    text = "'mean'" if reduction == "mean" else f'"{reduction}"'
    arguments = copy.copy(cast("dict[str, Argument]", call.arguments))
    for name in switches:
        arguments[name] = replace(call[name], piece=Piece("None"), node=None, given=False)
    call.given("reduction")
    arguments["reduction"] = Argument("reduction", Piece(text), STR, ast.Constant(reduction))
    return replace(call, arguments=arguments)
