"""What calls give parameters, also those that spread a value over several: ``train(net, *data, epochs)``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from t2j_lsp.translate.inference.call_sites import bound_arguments, own_parameters
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import FunctionInfo
from t2j_lsp.translate.rule.facts import Fact, Tuple
from t2j_lsp.translate.rule.join import element


@dataclass(frozen=True)
class GivenArgument:
    """What a parameter is given: ``value``, or one of its items where it is spread over several parameters."""

    parameter: str
    value: ast.expr
    fact: Fact
    spread: bool = False


def given_arguments(inference: Inference, call: ast.Call, info: FunctionInfo) -> Iterator[GivenArgument]:
    """What a call gives the parameters of a function of the file, as far as one value at most is spread."""
    stars = [one for one in call.args if isinstance(one, ast.Starred)]
    if not stars:
        for parameter, value in bound_arguments(call, info):
            yield GivenArgument(parameter.arg, value, inference.fact(value))
    if len(stars) != 1:
        return
    (star,) = stars
    at, held = call.args.index(star), inference.fact(star.value)
    names = [one.arg for one in own_parameters(info)]
    facts = held.items if isinstance(held, Tuple) else ()
    behind = len(call.args) - at - 1
    count = len(facts) or max(len(names) - at - behind, 0)
    plain = [*zip(names, call.args[:at], strict=False), *zip(names[at + count :], call.args[at + 1 :], strict=False)]
    plain += [(one.arg, one.value) for one in call.keywords if one.arg in names]
    for name, value in plain:
        yield GivenArgument(name, value, inference.fact(value))
    for index, name in enumerate(names[at : at + count]):
        yield GivenArgument(name, star.value, facts[index] if facts else element(held), spread=True)
