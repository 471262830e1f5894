"""Constructors that read what they are given from ``**kwargs``, ``self.model = kwargs["model"]``: with parameters.

What an attribute is, is read from the calls of a constructor, by its parameters. Where a file that has gaps has such a
constructor, and all its calls give what it reads, it is read as if it said so.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from t2j_lsp import symbols
from t2j_lsp.contract import Finding
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import Class, ClassInfo
from t2j_lsp.translate.source.rearranged import Edits, Fragment, RearrangedText


def with_named_keywords(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which such constructors have parameters; None if there are none, or everything converts."""
    if not any(gap.code == "training-loop" for gap in gaps):
        return None
    edits: Edits = []
    for info in inference.classes.values():
        if not info.external and "__init__" in info.methods:
            edits += _named(inference, info)
    return RearrangedText.of(inference.source.text, edits)


def _named(inference: Inference, info: ClassInfo) -> Edits:
    """The edits that give a constructor the parameters that it reads; none where its calls may give others."""
    source, init = inference.source, info.methods["__init__"].node
    given = init.args
    if given.kwarg is None or given.kwonlyargs or given.defaults or given.posonlyargs:
        return []
    taken = [n for n in symbols.walk(init) if isinstance(n, ast.Name)]
    reads = [n for n in taken if n.id == given.kwarg.arg]
    if given.vararg is not None and any(n.id == given.vararg.arg for n in taken):
        return []
    keys: dict[str, list[ast.Subscript]] = {}
    for read in reads:
        match source.parents[read]:
            case ast.Subscript(slice=ast.Constant(value=str(key)), ctx=ast.Load()) as place if key.isidentifier():
                keys.setdefault(key, []).append(place)
            case _:
                return []
    bound = {n.id for n in taken} | {a.arg for a in given.args}
    if not keys or bound & set(keys) or not _given_in_all_calls(inference, info, set(keys), len(given.args) - 1):
        return []
    last = given.args[-1]
    start, stop = source.span(last)[1], source.span(given.kwarg)[1]
    edits: Edits = [(start, stop, [Fragment(f", *, {', '.join(keys)}", start, stop)])]
    for key, places in keys.items():
        edits += [(*source.span(place), [Fragment(key, *source.span(place))]) for place in places]
    return edits


def _given_in_all_calls(inference: Inference, info: ClassInfo, keys: set[str], positional: int) -> bool:
    """Whether all calls of a class are in sight, and give its constructor these keywords and no more."""
    named = [n for n in inference.source.nodes if isinstance(n, ast.Name | ast.Attribute) and _is(inference, n, info)]
    calls = [inference.source.parents[n] for n in named]
    for name, call in zip(named, calls, strict=True):
        if not isinstance(call, ast.Call) or call.func is not name or len(call.args) != positional:
            return False
        if {k.arg for k in call.keywords} != keys or any(isinstance(a, ast.Starred) for a in call.args):
            return False
    return bool(calls)


def _is(inference: Inference, node: ast.expr, info: ClassInfo) -> bool:
    fact = inference.fact(node)
    return isinstance(fact, Class) and fact.info is info
