"""What is offered at a difference: the edit that the check found to mend it, and an explanation of it.

The edit was worked out and tried by the check (``t2j_lsp.check.difference.causes`` has the table of causes,
``experiment`` the trial): here it only becomes an edit of the conversion's document. An edit of either text takes the
difference away, so that what is offered is about the texts as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from t2j_lsp.contract import T2JError
from t2j_lsp.files.sources import read_source
from t2j_lsp.lsp.checking.verdicts import FoundDifference
from t2j_lsp.lsp.documents import Document
from t2j_lsp.lsp.edits import text_edit
from t2j_lsp.lsp.paths import to_path

if TYPE_CHECKING:
    from t2j_lsp.lsp.server import Server

SHOW_COMMAND = "t2j.showDifference"
"""The client's own command, in clients that have a panel: it calls ``t2j.explainDifference`` and shows the answer."""


def mend(server: Server, difference: FoundDifference) -> types.CodeAction | None:
    """The quick fix that mends a difference; None where no edit is known to."""
    fix = difference.fix
    if fix is None:
        return None
    converted = difference.uri if difference.uri != difference.source_uri else difference.other_uri
    path = to_path(converted)
    document = server.store.document(converted)
    if document is None and path is not None:
        try:
            document = Document(converted, read_source(path).text, None)
        except T2JError:
            return None
    span = fix["span"]
    if document is None or path is None or str(path.resolve()) != fix["file"] or span["end_line"] > len(document.lines):
        return None
    start = server.store.position(document, span["line"] - 1, span["column"])
    end = server.store.position(document, span["end_line"] - 1, span["end_column"])
    title = fix["title"] if difference.uri == converted else f"{fix['title']} in {path.name}"
    edit = text_edit(server, document, types.TextEdit(types.Range(start, end), fix["new"]))
    return types.CodeAction(title, types.CodeActionKind.QuickFix, edit=edit)


def explain(difference: FoundDifference) -> types.CodeAction:
    """The action that shows the values of both sides, for clients that have a panel for them."""
    title = "Explain this difference"
    arguments = [difference.source_uri, difference.name]
    command = types.Command(title=title, command=SHOW_COMMAND, arguments=arguments)
    return types.CodeAction(title, types.CodeActionKind.QuickFix, command=command)
