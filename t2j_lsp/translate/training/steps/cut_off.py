"""Functions through which no gradient flows to the modules that they call: attacks and samplers, which detach."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.inference.call_sites import called_function
from t2j_lsp.translate.rule.definitions import is_module
from t2j_lsp.translate.training.program.cut_values import CUTS, is_made_of_sizes, returned_from, sets_state
from t2j_lsp.translate.training.program.once import filled, gives_number


def carrying_gradients(context: Context, call: ast.Call) -> Sequence[ast.expr] | None:
    """The arguments by which what a call gives carries gradients, if it carries none of a module; None if it may.

    A function of the file may give a number, or what was detached: ``return x_adv.detach()``.
    """
    inference = context.inference
    if gives_number(inference, call) or _copies_state(context, call) or is_made_of_sizes(inference, call):
        return ()
    info = called_function(context.fact(call.func))
    if info is None and (arrays := _without_devices(call)) is not None:
        return arrays
    if info is None:
        return None
    state = sets_state(inference, info, call)
    if state is not None or filled(inference, info):
        return state
    return returned_from(inference, info, call)


def is_detached(context: Context, call: ast.Call) -> bool:
    """``generator(z).detach()``."""
    match call.func:
        case ast.Attribute(attr=attr, value=value) if attr in CUTS:
            return called_function(context.fact(call.func)) is None and not is_module(context.fact(value))
    return False


def _without_devices(call: ast.Call) -> Sequence[ast.expr] | None:
    """What ``x.to(net.device)`` is given besides a device; None if no module is asked for one."""
    given = [*call.args, *(k.value for k in call.keywords)]
    others = [one for one in given if not (isinstance(one, ast.Attribute) and one.attr in ("device", "dtype"))]
    return [call.func, *others] if len(others) < len(given) else None


def _copies_state(context: Context, call: ast.Call) -> bool:
    """``target.load_state_dict(net.state_dict())``: the values are copied, behind the gradients' back."""
    match call.func:
        case ast.Attribute(attr="load_state_dict" | "state_dict", value=module):
            return is_module(context.fact(module)) and called_function(context.fact(call.func)) is None
    return False
