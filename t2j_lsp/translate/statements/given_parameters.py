"""Functions that get what they read from outside as parameters: ``def loss_of(model, x)``; methods go static."""

from __future__ import annotations

import re

from t2j_lsp.symbols import positional_parameters
from t2j_lsp.translate.expressions.context import Edits
from t2j_lsp.translate.rule.definitions import FunctionInfo

_HEAD = re.compile(r"(?:async\s+)?def\s+\w+\s*(\(\s*)")


def give_parameters(edits: Edits, info: FunctionInfo, names: list[str], behind: list[str]) -> None:
    """Put ``names`` in front of a function's parameters, in the place of ``self``, and others ``behind`` them."""
    node, source = info.node, edits.source
    own = positional_parameters(node)
    others = any((own, node.args.vararg, node.args.kwonlyargs, node.args.kwarg))
    if behind:
        end = source.span(own[-1])[1]
        edits.add(end, end, "".join(f", {name}" for name in behind))
    if info.owner is not None and not info.static:
        start, end = source.span(own[0])
        alone = len(own) == 1 and not (node.args.vararg or node.args.kwonlyargs or node.args.kwarg)
        if not names and not alone:
            end = source.span(own[1])[0] if len(own) > 1 else source.text.index("*", end)
        edits.add(start, end, ", ".join(names))
        edits.insert_before(node, ["@staticmethod"])
    elif names:
        head = _HEAD.match(source.text, source.span(node)[0])
        assert head is not None
        broken = source.newline in head.group(1)
        between = "," + (source.newline + source.indent(source.line_of(head.end())) if broken else " ")
        last = between if others or info.takes_rngs else ""
        edits.add(head.end(), head.end(), between.join(names) + last, -1)
