"""Helpers that are copied into the file: cut to what it uses of them, and put where nothing runs them before."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import takewhile

from t2j_lsp.translate.expressions.context import Context, Edits
from t2j_lsp.translate.expressions.needs import NeededNames, bound_by, has_import
from t2j_lsp.translate.inference.class_labels import class_labels
from t2j_lsp.translate.inference.containers import asked_elsewhere, asked_of_containers, read_by_importers
from t2j_lsp.translate.rule.facts import PACKED
from t2j_lsp.translate.source.folding.agreements import Cut, agreements, hold, may_agree, with_agreement
from t2j_lsp.translate.source.folding.annotations import (
    is_annotated,
    without_annotations,
    without_idle_annotations,
)
from t2j_lsp.translate.source.folding.specialise import specialised
from t2j_lsp.translate.source.folding.uses import NOTHING_AGREED
from t2j_lsp.translate.source.helpers import HEADER, Helper, renamed
from t2j_lsp.translate.source.text import Source

from .compiled_losses import with_compiled_losses
from .helper_place import WrittenCode, first_user


def cut_to_uses(
    ctx: Context, whole: list[Helper], wanted: set[str], needs: NeededNames, user: ast.Module
) -> list[Helper]:
    """The helpers, cut to what the output, ``user``, asks of those that it names."""
    records = {h.name for h in whole if h.name not in wanted and _is_asked_for(h.name, whole)}
    if records and _is_given_packed(ctx):
        wanted = wanted | records
    asked, elsewhere = asked_of_containers(ctx.inference), asked_elsewhere(ctx.inference)
    asked |= read_by_importers(ctx.inference, ctx.options.used_elsewhere)
    cut = partial(specialised, whole, user, needs.renames, wanted, asked, elsewhere)
    cut = partial(cut, width=ctx.source.line_limit, labels=class_labels(ctx.inference, wanted))
    copied = _agreed(whole, cut, user, wanted, needs)
    copied = [replace(h, text=_asking_for_tuples(h.text, copied)) for h in copied]
    return _annotated_like(with_compiled_losses(copied, user) if ctx.plan.train_steps else copied, ctx.source)


_RECORD = re.compile(r"class (\w+)\(NamedTuple\):")
_PACKED_BY_NAME = re.compile(r"(?<![a-zA-Z])pack(s|ed|ing)?(?![a-zA-Z])", re.IGNORECASE)


def _is_asked_for(name: str, helpers: list[Helper]) -> bool:
    """Whether helpers do something else for instances of a helper that is a named tuple."""
    return any(h.text.startswith(f"class {name}(NamedTuple)") for h in helpers) and any(
        f", {name})" in h.text and "isinstance(" in h.text for h in helpers
    )


def _is_given_packed(ctx: Context) -> bool:
    """Whether what runs a recurrent layer may be a packed sequence that another file has made."""
    return _PACKED_BY_NAME.search(ctx.source.text) is not None or PACKED in ctx.inference.facts.values()


def _asking_for_tuples(text: str, helpers: list[Helper]) -> str:
    """A text that asks for a tuple, not for the file's own copy of the class: another file may have made the value."""
    for helper in helpers:
        if "isinstance(" in text and (record := _RECORD.match(helper.text)):
            text = re.sub(rf"(isinstance\(\w+, ){record[1]}\)", r"\1tuple)", text)
    return text


def _agreed(whole: list[Helper], cut: Cut, user: ast.Module, wanted: set[str], needs: NeededNames) -> list[Helper]:
    """The helpers, cut to what all calls agree on too; where that only shows here, the calls are written anew."""
    known, written = needs.known, {name: needs.renames.get(name, name) for name in wanted}
    if known.agreed is None:
        known.agreed = agreements(cut, user, written) if may_agree(whole, user, written) else NOTHING_AGREED
        known.agreements += bool(known.agreed)
        return cut(known.agreed)
    copied = cut(known.agreed)
    if known.agreed and not hold(known.agreed, copied, user, written):
        known.agreed = NOTHING_AGREED
        known.agreements += 1
    return [
        replace(h, text=with_agreement(h.text, known.agreed[h.name])) if h.name in known.agreed else h for h in copied
    ]


def _annotated_like(copied: list[Helper], source: Source) -> list[Helper]:
    """The helpers with the annotations that the file has a use for: none in a file that has none."""
    if not is_annotated(source):
        return without_annotations(copied)
    present = {bound_by(line) for h in copied for line in h.imports if has_import(line, source)}
    return without_idle_annotations(copied, present)


def insert_helpers(ctx: Context, copied: list[Helper], needs: NeededNames, output: WrittenCode | None) -> None:
    """Put helpers in front of the first statement that may run one."""
    text = _text_of(copied, needs.renames, ctx.source.newline)
    names = {needs.renames.get(h.name, h.name) for h in copied}
    if output is None or not _insert_below(ctx.edits, text, output, names):
        _insert_behind_imports(ctx.edits, text)


def _text_of(copied: list[Helper], renames: Mapping[str, str], newline: str) -> str:
    """The copied helpers as one block."""
    blocks = [HEADER, *(renamed(helper.text, renames).rstrip() for helper in copied)]
    joined = "\n\n\n".join([f"{blocks[0]}\n\n\n{blocks[1]}", *blocks[2:]]) if len(blocks) > 1 else ""
    return joined.replace("\n", newline)


def _insert_below(edits: Edits, text: str, output: WrittenCode, names: set[str]) -> bool:
    """Put helpers behind the definitions that don't run them; whether there are any behind the imports."""
    source, newline = edits.source, edits.source.newline
    stop = first_user(output.tree, names)
    node = output.source_of(stop, edits) if stop is not None else None
    below = [n for n in source.tree.body if n.lineno > source.import_block_end and n not in edits.deleted]
    if not below or node is not None and node.lineno <= below[0].lineno:
        return False
    if node is None:
        _insert_block(edits, len(source.text), text, 1000)
    else:
        at, above = edits.in_front_of(node)
        edits.add(at, at, newline * max(0, 2 - above) + text + newline * 3, -2000)
    return True


def _insert_behind_imports(edits: Edits, text: str) -> None:
    source = edits.source
    line = source.import_block_end or source.head_end
    _insert_block(edits, source.line_end(line), text, 3)


def _insert_block(edits: Edits, at: int, text: str, priority: int) -> None:
    """Put text two empty lines below what ends at a place, and as many above what follows."""
    source, newline = edits.source, edits.source.newline
    lead = newline if at and not source.text[:at].endswith(("\n", "\r")) else ""
    empty = len(list(takewhile(lambda line: not line.strip(), behind := source.text[at:].splitlines())))
    below = newline * max(0, 2 - empty) if empty < len(behind) else ""
    edits.add(at, at, f"{lead}{newline}{newline}{text}{newline}{below}", priority)
