"""``t2j.ask`` and ``t2j.askPreview``: a model is asked for what rules refused, or for what a check found to differ.

Nothing is sent before a model is set in the editor, the workspace is trusted, and the user has agreed to the host. What
the check did not call equivalent is written only if the user wants it, and then as a marked draft.
"""

from __future__ import annotations

import contextlib
from collections.abc import Coroutine
from dataclasses import asdict, dataclass, replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from t2j_lsp.child.process import ChildFailed
from t2j_lsp.contract import T2JError, VerdictKind
from t2j_lsp.files.merge import Merged
from t2j_lsp.lsp.analysis.model import ConversionRefused, SyntaxProblem
from t2j_lsp.lsp.asking import consent
from t2j_lsp.lsp.asking.service import missing
from t2j_lsp.lsp.checking.wording import counted, verdict_line
from t2j_lsp.lsp.convert import OfferedConversion, convert_file
from t2j_lsp.lsp.paths import to_path
from t2j_lsp.lsp.progress import Progress
from t2j_lsp.lsp.protocol import progress_token
from t2j_lsp.lsp.settings import Settings

from .actions import RequestFailed
from .ask_offers import ASK_COMMAND, DIFFERENT, GAPS, UNSET, why_not
from .conversions import write_conversion
from .lenses import verdict_of

if TYPE_CHECKING:
    from t2j_lsp.lsp.server import Server

PREVIEW_COMMAND = "t2j.askPreview"
KEY = "t2j/modelKey"
SEND, CANCEL = "Send", "Cancel"
WRITE, DISCARD = "Write Draft", "Discard"


def register(server: Server) -> None:
    @server.command(PREVIEW_COMMAND)
    async def preview(*arguments: Any) -> dict[str, Any]:
        """``[uri, name?, mode?]``: what ``t2j.ask`` would send first, and to which host. Nothing is sent."""
        question = _question(server, arguments)
        _, request = await _request(server, question)
        try:
            answer = await server.asking.run("preview", request)
        except T2JError as error:
            raise RequestFailed(message=str(error)) from None
        if answer is None:
            raise RequestFailed(message="it was cancelled")
        return {**answer, "host": question.host, "models": list(question.settings.model_names)}

    @server.command(ASK_COMMAND)
    async def ask(*arguments: Any) -> dict[str, Any]:
        """``[uri, name?, mode?, host?, background?]``: ask, check the answer, and write it into the conversion.

        ``host`` is the one that the user agreed to, from a client that says ``asksBeforeSending``. ``background``
        answers at once, for clients that wait for the end of a command before anything else.
        """
        question = _question(server, arguments)
        agreed, background = (*arguments[3:5], None, None)[:2]
        work = _ask(server, question, str(agreed) if agreed else None)
        if background is not True:
            return await work
        server.spawn(_saying_why_not(server, work))
        return {"started": True}

    @server.feature(KEY)
    def take_key(params: Any) -> None:
        """``{host, key}``: the key for a host, kept in memory until the server ends; an empty one is forgotten."""
        host, key = getattr(params, "host", None), getattr(params, "key", None)
        if isinstance(host, str) and isinstance(key, str):
            server.model_keys[host] = key


@dataclass(frozen=True)
class Question:
    """What is asked for: a definition of a source file (empty name: what stands outside of any), and why."""

    uri: str
    path: Path
    name: str
    mode: str
    settings: Settings

    @property
    def host(self) -> str:
        return host_of(self.settings)


def host_of(settings: Settings) -> str:
    """Where the models of these settings are."""
    from t2j_lsp.assist.model import Endpoint  # the server starts without the model lane

    return Endpoint("", settings.model_url or None).host


def _question(server: Server, arguments: tuple[Any, ...]) -> Question:
    uri, name, mode = (*arguments, None, None, None)[:3]
    source = server.pairs.source_of(str(uri)) or str(uri)
    path = to_path(source)
    reason = why_not(server, source) or missing()
    if reason is None and server.asking.busy:
        reason = "a model is being asked already: wait for its answer, or cancel it"
    if reason is not None or path is None:
        raise RequestFailed(message=reason or UNSET)
    mode = DIFFERENT if mode == DIFFERENT else GAPS
    return Question(source, path, str(name or ""), mode, server.settings_for(source))


async def _request(server: Server, question: Question) -> tuple[OfferedConversion, dict[str, Any]]:
    """What the process needs to know, but for the key; and the conversion that the answer goes into."""
    try:
        conversion = await convert_file(server, question.uri)
        text, _ = server.pairs.text(question.uri, question.path)
    except (ConversionRefused, SyntaxProblem, ChildFailed, T2JError) as error:
        raise RequestFailed(message=str(error)) from None
    if conversion.conflicts:
        raise RequestFailed(message="the conversion was edited where a new one differs: convert the file first")
    settings = question.settings
    options, _ = server.conversion_settings(question.uri)
    return conversion, {
        "path": str(question.path),
        "source": text,
        "text": conversion.code,
        "name": question.name,
        "mode": question.mode,
        "reason": _reason(server, question),
        "options": asdict(options),
        "models": list(settings.model_names),
        "base_url": settings.model_url,
        "rounds": settings.model_rounds,
        "tokens": settings.model_tokens,
        "torch_python": settings.torch_python or None,
        "jax_python": settings.jax_python or None,
        "timeout": settings.check_timeout,
    }


def _reason(server: Server, question: Question) -> str:
    """What the check said of a definition, for the model."""
    verdict = verdict_of(server, question.uri, question.name) or {}
    divergence = verdict.get("divergence") or {}
    said = [verdict.get("reason"), divergence.get("what"), divergence.get("cause")]
    return "; ".join(dict.fromkeys(one for one in said if one)) or "a check found it to differ from PyTorch"


# --- the user's word --------------------------------------------------------------------------------------------------


async def _may_send(server: Server, question: Question, agreed: str | None) -> bool:
    """Whether the user agreed that this workspace's code goes to the host; asks where nobody else did."""
    if server.client.asks_before_sending:
        return agreed == question.host
    folder = _folder(server, question.path)
    if consent.is_agreed(folder, question.host):
        return True
    text = (
        f"Send {question.path.name}, its conversion and similar fixed bugs to {question.host} "
        f"({', '.join(question.settings.model_names)})? `t2j prompt {question.path.name}` prints what goes there. "
        "This is asked once for this folder and host."
    )
    if await _chosen(server, types.MessageType.Warning, text, SEND, CANCEL) != SEND:
        return False
    with contextlib.suppress(OSError):
        consent.agree(folder, question.host)
    return True


def _folder(server: Server, path: Path) -> Path:
    """The workspace folder that holds a file; the file's own outside of any."""
    inside = [folder for folder in server.folders if folder in path.parents]
    return max(inside, key=lambda folder: len(folder.parts), default=path.parent)


async def _chosen(server: Server, kind: types.MessageType, text: str, *answers: str) -> str | None:
    """The user's answer to a message; None without one, also where the client can't show such a message."""
    params = types.ShowMessageRequestParams(kind, text, [types.MessageActionItem(one) for one in answers])
    answer = await server.protocol.ask(types.WINDOW_SHOW_MESSAGE_REQUEST, params)
    return getattr(answer, "title", None)


async def _saying_why_not(server: Server, work: Coroutine[Any, Any, dict[str, Any]]) -> None:
    try:
        await work
    except RequestFailed as error:
        _say(server, types.MessageType.Warning, error.message)


async def _ask(server: Server, question: Question, agreed: str | None) -> dict[str, Any]:
    if not await _may_send(server, question, agreed):
        return {"applied": False, "reason": "nothing was sent"}
    return await _asked(server, question)


# --- asking -----------------------------------------------------------------------------------------------------------


async def _asked(server: Server, question: Question) -> dict[str, Any]:
    from t2j_lsp.assist.model import key_from_environment

    conversion, request = await _request(server, question)
    key = server.model_keys.get(question.host) or key_from_environment()
    what = question.name or question.path.name
    title = f"Asking {question.host} about {what}"
    progress = Progress(server, title, server.asking.cancel, progress_token.get())
    try:
        answer = await server.asking.run(
            "ask",
            {**request, "key": key},
            lambda step, tokens: progress.report(f"{step}, about {tokens:,} tokens" if tokens else step),
        )
    except T2JError as error:
        raise RequestFailed(message=str(error)) from None
    finally:
        progress.end()
    if answer is None:
        return {"applied": False, "reason": "it was cancelled"}
    return await _taken(server, question, conversion, answer)


async def _taken(
    server: Server, question: Question, conversion: OfferedConversion, answer: dict[str, Any]
) -> dict[str, Any]:
    """Write a verified answer, offer one that is not, and say which it is."""
    verified = [draft for draft in answer["drafts"] if draft["verified"]]
    ran = [draft for draft in answer["drafts"] if draft["ran"] and not draft["verified"]]
    spent = f"{counted(answer['rounds'], 'round')}, {answer['tokens']:,} tokens"
    what = question.name or question.path.name
    summary = {key: answer[key] for key in ("left", "rounds", "tokens", "verdicts")} | {"verified": len(verified)}
    if not verified and not ran:
        reason = next((draft["reason"] for draft in answer["drafts"] if draft["reason"]), answer["said"])
        text = f"{what}: the model gave no answer that could be run: {reason} ({spent})"
        _say(server, types.MessageType.Warning, text)
        return {"applied": False, "reason": reason, **summary}
    if ran:
        text = f"{what}: not verified by the check: {ran[-1]['reason']} ({spent}). Write the draft, with a mark?"
        if await _chosen(server, types.MessageType.Warning, text, WRITE, DISCARD) != WRITE:
            return {"applied": False, "reason": "the draft was not wanted", **summary}
    written = await _written(server, conversion, answer["code"])
    if written["applied"] and not ran:
        lines = [verdict_line(v, "") for v in answer["verdicts"].values() if v["verdict"] == VerdictKind.EQUIVALENT]
        text = f"{what}: {'; '.join(lines)}. Answer by {verified[-1]['model']}, {spent}; undo takes it back."
        _say(server, types.MessageType.Info, text)
    return {**written, "uri": conversion.target_uri, **summary}


async def _written(server: Server, conversion: OfferedConversion, code: str) -> dict[str, Any]:
    """Write the conversion with its answers as one edit, and show it.

    The base of the next merge stays what the rules made: an answer is kept as an edit of the user's is.
    """
    if "\r\n" in conversion.code:
        code = code.replace("\n", "\r\n")
    try:
        written = await write_conversion(server, replace(conversion, merged=Merged(code)))
    except (ConversionRefused, SyntaxProblem, ChildFailed) as error:
        raise RequestFailed(message=str(error)) from None
    if written["applied"] and server.client.show_document:
        params = types.ShowDocumentParams(conversion.target_uri, selection=_answered_at(conversion.code, code))
        server.spawn(server.protocol.ask(types.WINDOW_SHOW_DOCUMENT, params))
    return written


def _answered_at(before: str, after: str) -> types.Range:
    """Where lines of a text begin to be other ones; what was only added or taken away, as imports are, comes second."""
    blocks = SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False).get_opcodes()
    ranked = sorted((("replace", "insert", "delete", "equal").index(tag), line) for tag, _, _, line, _ in blocks)
    start = types.Position(ranked[0][1] if ranked else 0, 0)
    return types.Range(start, start)


def _say(server: Server, kind: types.MessageType, text: str) -> None:
    server.protocol.notify(types.WINDOW_SHOW_MESSAGE, types.ShowMessageParams(kind, text))
