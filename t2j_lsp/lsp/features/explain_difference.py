"""``t2j.explainDifference``: the values of a file and of its conversion side by side, statement by statement."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2j_lsp.contract import T2JError, VerdictKind
from t2j_lsp.fixes.offers import counted, row_text
from t2j_lsp.lsp.paths import to_path, to_uri

from .actions import RequestFailed

if TYPE_CHECKING:
    from t2j_lsp.lsp.server import Server

COMMAND = "t2j.explainDifference"


def register(server: Server) -> None:
    @server.command(COMMAND)
    async def explain_difference(*arguments: Any) -> dict[str, Any]:
        """``[uri, name?]``: compare the values of a class or function; without a name, of the first that differs."""
        uri, name = (*arguments, None, None)[:2]
        source = server.pairs.source_of(str(uri))
        name = str(name) if name else _first_different(server, source)
        if source is None or name is None:
            raise RequestFailed(message="no difference is known here: run a check first")
        try:
            answer = await server.checks.explain(str(uri), name)
        except T2JError as error:
            raise RequestFailed(message=str(error)) from None
        values = _values_of(server, source, name, answer)
        verdict = next(v for v in answer["objects"] if v["name"] == name)
        similar = await server.similar.like_difference(source, verdict)
        if similar:
            values["text"] += "\n\n" + "\n\n".join([f"{counted(len(similar))}:", *map(row_text, similar)])
        return {**values, "similar": similar}


def _first_different(server: Server, source: str | None) -> str | None:
    state = server.checks.states.get(source or "")
    different = [v["name"] for v in state.verdicts if v["verdict"] == VerdictKind.DIFFERENT] if state else []
    return different[0] if different else None


def _values_of(server: Server, source: str, name: str, answer: dict[str, Any]) -> dict[str, Any]:
    """The answer to the client. Lines count from 0, and files are URIs as the client spells them."""
    verdict = next((v for v in answer["objects"] if v["name"] == name), None)
    if verdict is None:
        raise RequestFailed(message=f"the file has no class or function {name} that can be checked")
    explanation = answer["explanations"].get(name)
    if explanation is None and verdict["verdict"] != VerdictKind.DIFFERENT:
        raise RequestFailed(message=f"{name} was not compared: {verdict['reason']}")
    pair = server.pairs.converted_of(source)
    converted = pair[0] if pair is not None else None
    divergence = verdict["divergence"] or {}
    what = divergence.get("what") or verdict["reason"] or "every value agrees"
    explanation = explanation or {
        "steps": [],
        "first": None,
        "precision": None,
        "mode": None,
        "left_out": 0,
        "cut": False,
        "text": what,
    }
    lines = [f"{name}: {verdict['verdict']}", what, *([divergence["cause"]] if divergence.get("cause") else []), ""]
    return {
        "name": name,
        "verdict": verdict["verdict"],
        "what": what,
        "cause": divergence.get("cause"),
        "device": answer["device"],
        "torch": {"uri": source},
        "jax": {"uri": converted},
        **explanation,
        "steps": [_step(step, _uris(source, converted), server.pairs.cell) for step in explanation["steps"]],
        "text": "\n".join(lines) + explanation["text"],
    }


def _uris(source: str, converted: str | None) -> dict[str, tuple[str, str | None]]:
    """The path of each side's file, and its URI. A conversion that is no file has none, and goes by its source's."""
    return {
        "torch": (str(to_path(source)), source),
        "jax": (str(to_path(converted or source)), converted),
    }


def _step(
    step: dict[str, Any], uris: dict[str, tuple[str, str | None]], cell: Callable[[str, int], str | None]
) -> dict[str, Any]:
    return {**step, **{side: _value(step[side], *uris[side], cell) for side in uris}}


def _value(
    value: dict[str, Any] | None, path: str, uri: str | None, cell: Callable[[str, int], str | None]
) -> dict[str, Any] | None:
    if value is None:
        return None
    file, line, number = value.pop("file", path), value.pop("line", 1), value.pop("cell", None)
    own = Path(file) == Path(path).resolve() or file == path
    if own and uri is not None and number is not None:
        uri = cell(uri, number)
    return {"uri": uri if own else to_uri(Path(file)), "line": line - 1, **value}
