"""``__prepare_scriptable__``, which PyTorch calls as it compiles a module to TorchScript: it goes where it is a gap.

What it gives takes the module's place in the compiled program. JAX compiles functions, and asks modules for nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from t2j_lsp import symbols
from t2j_lsp.contract import Finding, Severity
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.source.rearranged import Edits, Rearranged, RearrangedText

_HOOK = "__prepare_scriptable__"
_GOES = "PyTorch calls it only as torch.jit.script compiles the module; jax.jit asks for nothing of the kind"


def with_script_hooks_left_out(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text without such methods; None where none of them is a gap, or somebody else calls it."""
    source = inference.source
    lines = {gap.span.line for gap in gaps} if _HOOK in source.text else set()
    if not lines or source.attributes.get(_HOOK):
        return None
    edits: Edits = []
    findings: list[Finding] = []
    for node in source.nodes:
        match node:
            case ast.FunctionDef(name=name, decorator_list=[]) if name == _HOOK:
                block = source.block_of(node) or []
                touched = lines & {n.lineno for n in symbols.walk(node) if isinstance(n, ast.stmt | ast.expr)}
                if touched and len(block) > 1 and source.starts_line(node):
                    start, end = source.starts[node.lineno - 1], source.line_end(node.end_lineno or 0)
                    edits.append((start, end, []))
                    findings.append(Finding(source.contract_span(node), name, "note", Severity.NOTE, _GOES))
    return RearrangedText((Rearranged.of(source.text, edits),), tuple(findings)) if edits else None
