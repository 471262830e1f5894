"""``t2j.explainDifference``: the values of a file and of its conversion side by side, statement by statement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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
    sides = {
        "torch": _Side(str(to_path(source)), source, server.pairs.cells(source)),
        # A conversion that is no file has no URI, and goes by its source's path.
        "jax": _Side(str(to_path(converted or source)), converted, server.pairs.cells(converted or source)),
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
        "steps": [_step(step, sides) for step in explanation["steps"]],
        "text": "\n".join(lines) + explanation["text"],
    }


@dataclass(frozen=True)
class _Side:
    """The file of one side, and the documents of its cells where it is a notebook."""

    path: str
    uri: str | None
    cells: Mapping[int, str]


def _step(step: dict[str, Any], sides: Mapping[str, _Side]) -> dict[str, Any]:
    return {**step, **{name: _value(step[name], side) for name, side in sides.items()}}


def _value(value: dict[str, Any] | None, side: _Side) -> dict[str, Any] | None:
    if value is None:
        return None
    file, line, cell = value.pop("file", side.path), value.pop("line", 1), value.pop("cell", None)
    own = Path(file) == Path(side.path).resolve() or file == side.path
    uri = side.cells.get(cell) if cell is not None and side.uri is not None else side.uri
    return {"uri": uri if own else to_uri(Path(file)), "line": line - 1, **value}
