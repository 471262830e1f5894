"""``self.conv = weight_norm(self.conv)``: where a file has gaps, the layer is built in the call that wraps it.

PyTorch changes the layer itself; in Flax a module stands around it, which is sure where nothing else has the layer: the
statement that builds it stands in front in the same block, and nothing in between asks for it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from t2j_lsp import symbols
from t2j_lsp.contract import Finding
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.facts import Layer
from t2j_lsp.translate.source.rearranged import Edits, Fragment, RearrangedText
from t2j_lsp.translate.source.text import Source

_WRAPPERS = ("weight_norm", "spectral_norm")


def with_layers_built_where_wrapped(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which they are; None where they are, or no such call is a gap."""
    source = inference.source
    lines = {gap.span.line for gap in gaps if gap.name.endswith(_WRAPPERS)}
    edits: Edits = []
    for node in source.nodes if lines else ():
        match node:
            case ast.Assign(
                targets=[ast.Name() | ast.Attribute(value=ast.Name()) as target],
                value=ast.Call(args=[ast.Name() | ast.Attribute() as wrapped, *_]),
            ) if node.lineno in lines and ast.unparse(target) == ast.unparse(wrapped):
                built = _built_in_front(source, node, ast.unparse(target))
                if built is not None and isinstance(inference.fact(built.value), Layer):
                    value = source.segment(built.value)
                    start, end = source.starts[built.lineno - 1], source.line_end(built.end_lineno or 0)
                    edits.append((start, end, []))
                    edits.append((*source.span(wrapped), [Fragment(value, *source.span(built.value))]))
    return RearrangedText.of(source.text, edits)


def _built_in_front(source: Source, wrapping: ast.Assign, text: str) -> ast.Assign | None:
    """The statement that gives ``text`` its value, the last in front that has to do with it, on lines of its own."""
    block = source.block_of(wrapping) or []
    for statement in reversed(block[: block.index(wrapping)]):
        if not any(ast.unparse(n) == text for n in symbols.walk(statement) if isinstance(n, ast.Name | ast.Attribute)):
            continue
        match statement:
            case ast.Assign(targets=[target], value=ast.Call()) if ast.unparse(target) == text:
                pass
            case _:
                return None
        start, end = source.span(statement)
        behind = source.text[end : source.line_end(statement.end_lineno or 0)].strip()
        alone = source.starts_line(statement) and not behind
        return statement if alone and not [*source.comments_between(start, end)] else None
    return None
