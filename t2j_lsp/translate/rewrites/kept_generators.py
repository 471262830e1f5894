"""The generator that a seed gives, kept where nothing reads it: ``self.seed = torch.manual_seed(seed)``.

JAX has no global generator to keep. Where a file that has gaps keeps PyTorch's and reads it nowhere, it is read as if
it set the seed alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from t2j_lsp import symbols
from t2j_lsp.contract import Finding, Severity
from t2j_lsp.symbols import FunctionNode
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import Instance
from t2j_lsp.translate.rule.facts import Qual
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.source.rearranged import Edits, Rearranged, RearrangedText

_SEEDS = names_with(Trait.SEED)
_WHOLE = frozenset({"vars", "__dict__", "globals", "locals"})
"""What gives all values by their names."""
UNREAD = "nothing in this file reads the generator that {name} keeps, and it isn't kept"


def with_seeds_as_statements(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which such seeds are set by statements; None if there are none, or everything converts."""
    source = inference.source
    lines = {gap.span.line for gap in gaps}
    edits: Edits = []
    notes: list[Finding] = []
    for node in source.nodes:
        match node:
            case ast.Assign(targets=[ast.Attribute() | ast.Name() as kept], value=ast.Call() as call):
                pass
            case _:
                continue
        fact = inference.fact(call.func)
        if call.lineno not in lines or not isinstance(fact, Qual) or fact.name not in _SEEDS:
            continue
        if _is_read(inference, kept):
            continue
        edits.append((source.span(node)[0], source.span(call)[0], []))
        if isinstance(kept, ast.Attribute) or kept.id != "_" and _function_of(inference, kept) is None:
            reason = UNREAD.format(name=source.segment(kept))
            notes.append(Finding(source.contract_span(node), fact.name, "note", Severity.NOTE, reason))
    return RearrangedText((Rearranged.of(source.text, edits),), tuple(notes)) if edits else None


def _is_read(inference: Inference, kept: ast.Name | ast.Attribute) -> bool:
    """Whether something in the file may read what an attribute or a variable keeps."""
    source = inference.source
    name = kept.attr if isinstance(kept, ast.Attribute) else kept.id
    if not source.words.isdisjoint(_WHOLE) or any(_is_by_text(n, name) for n in source.nodes):
        return True
    if isinstance(kept, ast.Name):
        local = _function_of(inference, kept)
        reads = [n for n in (symbols.walk(local) if local else source.nodes) if isinstance(n, ast.Name)]
        return any(n.id == name and not isinstance(n.ctx, ast.Store) for n in reads)
    reads_of = source.attributes.get(name, [])
    return any(not isinstance(n.ctx, ast.Store) and _may_be(inference, n, kept) for n in reads_of)


def _is_by_text(node: ast.AST, name: str) -> bool:
    """Whether it may read a name that is written as a text: ``getattr(net, "seed")``, ``__all__ = ["seed"]``."""
    match node:
        case ast.Call(func=ast.Name(id="getattr" | "hasattr" | "delattr"), args=[_, asked, *_]):
            return not isinstance(asked, ast.Constant) or asked.value == name
        case ast.List() | ast.Tuple():
            return any(isinstance(one, ast.Constant) and one.value == name for one in node.elts)
        case ast.Call(func=ast.Attribute(attr="attrgetter") | ast.Name(id="attrgetter")):
            return True
    return False


def _function_of(inference: Inference, name: ast.Name) -> FunctionNode | None:
    """The function of which a variable is a local one."""
    home = inference.source.home(name)
    return home if isinstance(home, FunctionNode) else None


def _may_be(inference: Inference, read: ast.Attribute, kept: ast.Attribute) -> bool:
    """Whether an attribute that is read may be the one that keeps a generator, which nobody calls."""
    parent = inference.source.parents.get(read)
    if isinstance(parent, ast.Call) and parent.func is read:
        return False
    one, other = inference.fact(read.value), inference.fact(kept.value)
    if not isinstance(one, Instance) or not isinstance(other, Instance):
        return True
    return one.cls.info in other.cls.info.ancestry() or other.cls.info in one.cls.info.ancestry()
