"""Rewriting a document in place: the user is asked before, in the way that the client can.

A client that says ``asksBeforeRewriting`` gets the question as the command's answer, and sends the command once more,
confirmed. One that knows change annotations gets an edit that needs confirmation. Others are sent a message with two
answers, and where they know no such message, the title of what the user chose has told what it does. One expression
is rewritten without a question.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lsprotocol import types

from t2j_lsp.lsp.analysis.model import Analysis, ConversionScope, LineMap

from .documents import Program
from .paths import to_path
from .session import Session
from .targets import target_of

REWRITE, CANCEL = "Rewrite", "Cancel"


def is_asked_about(scope: ConversionScope) -> bool:
    """Whether rewriting this needs a question."""
    return scope.kind != "expression"


def what_is(session: Session, program: Program, scope: ConversionScope | None) -> str:
    """What a scope is, in words; None is the whole document."""
    if scope is None:
        return "all of it"
    if scope.kind == "exact":
        return "all that is exact"
    current = session.service.current(program)
    analysis, lines = current if current is not None else (Analysis(), LineMap(()))
    for definition in analysis.definitions:
        place = lines.to_new(definition.line - 1), lines.to_new(definition.end_line - 1)
        if place == (scope.first - 1, scope.last - 1):
            return "the loop" if definition.kind == "loop" else f"{definition.kind} {definition.name}"
    return f"lines {scope.first} to {scope.last}" if scope.last > scope.first else f"line {scope.first}"


def question(session: Session, program: Program, scope: ConversionScope | None) -> str:
    """``Rewrite class Net of net.py in place as JAX?``"""
    path = to_path(program.uri)
    name = f" of {path.name}" if path is not None else ""
    return f"Rewrite {what_is(session, program, scope)}{name} in place as JAX?"


def consequence(session: Session, program: Program) -> str:
    """What rewriting does to the file, and what leaves it as it is."""
    path, target = to_path(program.uri), target_of(session, program.uri)
    if path is None or target is None:
        return "This changes what you have open; one undo takes it back."
    return f"This changes {path.name} itself; one undo takes it back. Converting the file makes {target.name} instead."


def as_answer(
    session: Session, program: Program, scope: ConversionScope | None, caveats: Sequence[str]
) -> dict[str, Any]:
    """The question as a command's answer, for a client that asks it."""
    detail = "\n\n".join([consequence(session, program), *caveats])
    asked = {"text": question(session, program, scope), "detail": detail, "confirm": REWRITE}
    return {"applied": False, "question": asked}


async def allowed(session: Session, program: Program, scope: ConversionScope | None, caveats: Sequence[str]) -> bool:
    """Ask by a message. True also where the client can't show one that has answers."""
    text = "\n".join([question(session, program, scope), consequence(session, program), *caveats])
    actions = [types.MessageActionItem(REWRITE), types.MessageActionItem(CANCEL)]
    params = types.ShowMessageRequestParams(types.MessageType.Warning, text, actions)
    unknown = object()
    answer = await session.protocol.ask(types.WINDOW_SHOW_MESSAGE_REQUEST, params, refused=unknown)
    return answer is unknown or getattr(answer, "title", None) == REWRITE
