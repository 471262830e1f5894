"""Hover: what this call becomes in JAX, what to know about it, and where to read more.

Answered from the last analysis, without parsing. On lines that were edited since, the name under the cursor is looked
up in the imports of the last analysis and in the table of rules.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from lsprotocol import types

from ...contract import FIDELITY_TEXT, Finding, Severity, Span
from ..analysis.model import Scope, stands_alone
from ..convert import scope_data
from ..documents import Program
from ..links import jax_page, rule_page, torch_page

if TYPE_CHECKING:
    from ..server import Server

_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\s*\.\s*[A-Za-z_]\w*)*")
MAX_CODE = 1200
"""Characters of code shown in a hover."""


def register(server: Server) -> None:
    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None:
        uri = params.text_document.uri
        program = server.store.program(uri)
        if program is None or not server.settings_for(uri).hover:
            return None
        line = program.line_of(uri, params.position.line)
        if line is None:
            return None
        column = server.store.column(program.lines[line], params.position.character)
        found = _exact(server, program, uri, line, column) or _by_name(server, program, line, column)
        if found is None:
            return None
        text, span = found
        kind = types.MarkupKind.Markdown if server.client.markdown else types.MarkupKind.PlainText
        place = types.Range(
            server.store.position(program, span.line - 1, span.column),
            server.store.position(program, span.end_line - 1, span.end_column),
        )
        return types.Hover(types.MarkupContent(kind, text), place)


def _exact(server: Server, program: Program, uri: str, line: int, column: int) -> tuple[str, Span] | None:
    """The hover from the analysis of the line, if it is as it was then."""
    current = server.service.current(program)
    if current is None:
        return None
    analysis, lines = current
    old = lines.to_old(line)
    rewrite = analysis.at(old + 1, column) if old is not None else None
    if rewrite is None:
        return None
    span = lines.span(rewrite.span)
    if span is None:
        return None
    findings = [f for f in analysis.findings if f.span == rewrite.span]
    before = "\n".join(_segment(program, span))
    command = None
    if rewrite.jax is not None and stands_alone(rewrite.jax):
        command = command_link("t2j.convert", [uri, scope_data(Scope("expression", span))])
    return _render(server, rewrite.name, before, rewrite.jax, findings, command), span


def _by_name(server: Server, program: Program, line: int, column: int) -> tuple[str, Span] | None:
    """The hover of a dotted name, from the rule alone."""
    current = server.service.current(program)
    aliases = current[0].aliases if current is not None else {}
    text = program.lines[line]
    for match in _DOTTED.finditer(text):
        if match.start() <= column <= match.end():
            # The name up to the part under the cursor: in `nn.functional.gelu`, `nn` is not gelu.
            dot = text.find(".", column)
            end = match.end() if dot < 0 or dot >= match.end() else len(text[:dot].rstrip())
            name = re.sub(r"\s", "", text[match.start() : end])
            root, _, rest = name.partition(".")
            qualified = f"{aliases.get(root, root)}.{rest}".rstrip(".")
            if qualified.startswith("torch.") and doc_of(server, qualified) is not None:
                span = Span(line + 1, match.start(), line + 1, end)
                return _render(server, qualified, None, None, []), span
            return None
    return None


def doc_of(server: Server, name: str) -> tuple[str, str | None, str, str | None, str] | None:
    """The record of a torch name: the name itself, an in-place spelling of it, or its whole package."""
    docs = server.service.docs
    found = docs.get(name) or (docs.get(name[:-1]) if name.endswith("_") else None)
    package = name
    while found is None and "." in package:
        package = package.rpartition(".")[0]
        found = docs.get(f"{package}.*")
    return found


def _segment(program: Program, span: Span) -> list[str]:
    lines = program.lines[span.line - 1 : span.end_line]
    texts = [line.rstrip("\r\n") for line in lines]
    texts[-1] = texts[-1][: span.end_column]
    texts[0] = texts[0][span.column :]
    return texts


def _render(
    server: Server,
    name: str,
    before: str | None,
    after: str | None,
    findings: list[Finding],
    convert: str | None = None,
) -> str:
    doc = doc_of(server, name)
    gaps = [f for f in findings if f.severity is Severity.GAP]
    fidelity = "manual" if gaps else doc[2] if doc is not None else "exact" if after else "manual"
    meaning = next((text for kind, text in FIDELITY_TEXT.items() if kind == fidelity), "")
    reasons = list(dict.fromkeys(f.reason for f in findings))
    if doc is not None and doc[3] and doc[3] not in reasons:
        reasons.append(doc[3])
    form = after or (doc[1] if doc else None)
    pages: dict[str, str | None] = {"PyTorch": torch_page(name), "JAX": jax_page(form), "rule": rule_page(server, doc)}
    if server.client.command_links:
        pages = {
            "Convert here": convert,
            **pages,
            "rule": command_link("t2j.explainName", [name]) if doc is not None else None,
        }
    links = [(text, page) for text, page in pages.items() if page]
    shown = form if after is not None or not (gaps or before is not None) else None
    if server.client.markdown:
        return _markdown(name, fidelity, meaning, shown, reasons, links)
    return _plain(name, fidelity, meaning, shown, reasons, links)


def _markdown(name: str, fidelity: str, meaning: str, after: str | None, reasons: list[str], links: list[Any]) -> str:
    parts = [f"**{escape(name)}** · {fidelity}: {meaning}"]
    if after is not None:
        parts.append(fenced(_short(after)))
    parts += [escape(reason) for reason in reasons]
    if links:
        parts.append(" · ".join(f"[{text}]({page})" for text, page in links))
    return "\n\n".join(parts)


def _plain(name: str, fidelity: str, meaning: str, after: str | None, reasons: list[str], links: list[Any]) -> str:
    parts = [f"{name} ({fidelity}: {meaning})"]
    if after is not None:
        parts.append(_short(after))
    parts += reasons
    parts += [f"{text}: {page}" for text, page in links]
    return "\n\n".join(parts)


def command_link(command: str, arguments: list[Any]) -> str:
    """The address of a command with its arguments, as VS Code reads it."""
    return f"command:{command}?{quote(json.dumps(arguments), safe='')}"


def _short(code: str) -> str:
    return code if len(code) <= MAX_CODE else code[:MAX_CODE] + "\n..."


def fenced(code: str) -> str:
    """A Markdown code block that the code can't end."""
    longest = max((len(run) for run in re.findall(r"`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}python\n{code}\n{fence}"


def escape(text: str) -> str:
    """Text with nothing left in it that Markdown or HTML would read."""
    return re.sub(r"([\\`*_\[\]<>#|~])", r"\\\1", text)
