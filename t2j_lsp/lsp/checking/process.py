"""The check process: runs one check after the other with warm workers, and stops the running one when told to.

``python -P -m t2j_lsp.lsp.checking.process``. The user's code runs in the two workers that this process starts, never
here; they end with it, and it ends with the server.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from t2j_lsp import __version__
from t2j_lsp.api import CONVERSIONS, both_sides, convert_expression, with_own_module
from t2j_lsp.check.difference.explain import HEADERS, NUMERIC, closing, table
from t2j_lsp.check.messages import Traced
from t2j_lsp.check.process.compile_cache import project_of
from t2j_lsp.check.process.containment import projects
from t2j_lsp.check.process.pool import Pool
from t2j_lsp.check.process.worker import RemoteError, WorkerError
from t2j_lsp.check.program.objects import find_objects
from t2j_lsp.check.program.slice import Slicer
from t2j_lsp.check.programs.run import RunSettings, not_converted, run_program
from t2j_lsp.check.requests import TorchRequest, TorchTraceRequest
from t2j_lsp.check.run import check_files
from t2j_lsp.check.verdict.coverage import Covered, decided_by
from t2j_lsp.child.serve import Requests, step_back
from t2j_lsp.commands.output import plain_table
from t2j_lsp.contract import (
    Coverage,
    Explanation,
    Finding,
    ObjectVerdict,
    Options,
    SourceMapEntry,
    Translation,
    VerdictKind,
    own_helpers,
)
from t2j_lsp.files.cells import Cells
from t2j_lsp.files.importers import used_elsewhere
from t2j_lsp.files.sources import neighbours
from t2j_lsp.migration.verdict_store import asked_of, digests_of, kept, record
from t2j_lsp.translate import translate

_IGNORE = re.compile(r"(#\s*)t2j:(\s*ignore)")


class RecordingPool(Pool):
    """A pool that remembers how each PyTorch object was run, so that it can be traced for its shapes."""

    def __init__(self, *settings: Any, **named: Any) -> None:
        super().__init__(*settings, **named)
        self.observed: dict[str, TorchRequest] = {}

    def request(self, kind: Any, operation: str, timeout: float, cancelled: Any = lambda: False, **message: Any) -> Any:
        answer = super().request(kind, operation, timeout, cancelled, **message)
        if kind == "torch" and operation == "observe" and message.get("wide"):
            asked = TorchRequest.from_plain(message)
            again = replace(asked, state=answer["state"], cotangents=answer["cotangents"], steps=0, seconds=None)
            self.observed[asked.slice.name] = again
        return answer


class Checker:
    """The state between checks: warm workers, and verdicts on objects that have not changed since."""

    def __init__(self, cancelled: Callable[[], bool]) -> None:
        self.cancelled = cancelled
        """Whether the running check is not wanted any more."""
        self.pool: RecordingPool | None = None
        self._made_for: tuple[Any, ...] = ()
        self._known: dict[tuple[str, str], tuple[str, ObjectVerdict, str]] = {}

    def workers(self, request: dict[str, Any]) -> RecordingPool:
        """Warm workers: those of the last check, where that was one of the same project and the same settings."""
        project, sides = project_of(Path(request["source"])), request["run_by"]
        wanted = (sides["torch_python"], sides["jax_python"], request["device"])
        own = projects(*(Path(request[side]) for side in ("source", "converted") if request[side]))
        readable = (*(os.path.expanduser(path) for path in request["readable"]), *map(str, own))
        if self.pool is None or self._made_for != (*wanted, project, readable):
            self.close()
            self._made_for = (*wanted, project, readable)
            self.pool = RecordingPool(*wanted, project=project, readable=readable)
            self.pool.start()
        return self.pool

    def run(self, request: dict[str, Any], progress: Any) -> dict[str, Any]:
        """The report on both programs as wholes. Raises T2JError where a text can't be read."""
        given = _given(request, displays=True)
        if given.is_fresh and given.gaps:
            return not_converted(given.gaps).to_json()
        report = run_program(
            given.source,
            given.converted if given.converted is not None else given.code,
            RunSettings(request["arguments"], request["steps"], request["timeout"], synthetic=request["synthetic"]),
            pool=self.workers(request),
            neighbour=_neighbour(request),
            source_map=given.source_map,
            on_progress=progress,
            cancelled=self.cancelled,
            source_text=given.text,
            converted_text=given.code if given.converted is not None else None,
        )
        return (given.cells.program(report) if given.cells is not None else report).to_json()

    def close(self) -> None:
        if self.pool is not None:
            self.pool.close()
            self.pool = None

    def check(self, request: dict[str, Any], progress: Any) -> dict[str, Any]:
        """The report on a pair of texts, and the shapes seen. Raises T2JError where a text can't be read."""
        given = _given(request)
        source, converted, code, cells = given.source, given.converted, given.code, given.cells
        sides = (
            Slicer(source, given.text),
            Slicer(converted or source, code, _neighbour(request) if converted is None else _read),
        )
        digests = self._digests(*sides, request)
        beside = digests_of(sides[0].modules.neighbours | sides[1].modules.neighbours)
        names = [name for name in request["objects"] or digests if name in digests]
        todo = names if request["explain"] else [n for n in names if self._still(source, n, digests[n]) is None]
        pool = self.workers(request)
        shapes: dict[int, list[list[Any]]] = {}
        explanations: dict[str, dict[str, Any]] = {}
        device = pool.device_name
        if todo:
            pool.observed = {}
            report = check_files(
                source,
                converted if converted is not None else code,
                todo,
                stage=request["stage"],
                device=request["device"],
                timeout=request["timeout"],
                on_progress=progress,
                source_map=given.source_map,
                neighbour=_neighbour(request),
                expression=convert_expression,
                pool=pool,
                cancelled=self.cancelled,
                explain=request["explain"],
                initial=request["init"] == "torch",
                source_text=given.text,
                converted_text=code if converted is not None else None,
            )
            device = report.device
            shown = cells.check(report) if cells is not None else report
            explanations = {v.name: _explained(v.explanation) for v in shown.objects if v.explanation is not None}
            for verdict in report.objects:
                self._known[str(source), verdict.name] = (digests[verdict.name], _bare(verdict), device)
            if request["shapes"] and not self.cancelled():
                shapes = self._shapes(pool, source, request["timeout"])
        known = [self._known[str(source), name][1] for name in names if (str(source), name) in self._known]
        verdicts = [(cells.object(one) if cells is not None else one).to_json() for one in known]
        coverage = self._coverage(request, sides, digests)
        if cells is not None:
            coverage = cells.coverage(coverage)
        elif converted is not None and not self.cancelled():
            about = {"device": device, "names": list(digests), "neighbours": beside, "coverage": coverage}
            _record(request, source, converted, verdicts, {**about, "ran": {v.name: v.ran for v in known}})
        answer: dict[str, Any] = {"shapes": _placed(shapes, cells), "explanations": explanations}
        answer["coverage"] = coverage.to_json()
        answer["containment"] = pool.containment.to_json() if pool.containment else None
        return {"device": device, "device_reason": pool.fallback, "objects": verdicts, "checked": todo, **answer}

    def _coverage(self, request: dict[str, Any], sides: tuple[Slicer, Slicer], digests: dict[str, str]) -> Coverage:
        """What all verdicts on the two texts cover, those that were kept among them."""
        source = Path(request["source"])
        known = (self._known.get((str(source), name)) for name in digests)
        decided = decided_by(one[1] for one in known if one is not None and one[0] == digests[one[1].name])
        if request["converted"] is not None and source.suffix != ".ipynb":
            before = kept(source, request["source_text"], Path(request["converted"]), request["converted_text"])
            decided = before.beside(*decided) if before is not None else decided
        return Covered(*sides).coverage(*decided)

    def _still(self, source: Path, name: str, digest: str) -> ObjectVerdict | None:
        """The verdict on an object of which nothing changed; only agreement is kept, since differences have lines."""
        known = self._known.get((str(source), name))
        if known is None or known[0] != digest or known[1].verdict is not VerdictKind.EQUIVALENT:
            return None
        return known[1]

    def _digests(self, torch_side: Slicer, jax_side: Slicer, request: dict[str, Any]) -> dict[str, str]:
        """For each object of a file, a digest of all code on both sides that its verdict depends on."""
        comments = "\n".join(line.strip() for line in torch_side.text.splitlines() if "t2j:" in line)
        options = [request[k] for k in ("stage", "device", "torch_python", "jax_python", "init")]
        digests: dict[str, str] = {}
        for item in find_objects(torch_side, None):
            parts = [json.dumps(options), comments, _statements(torch_side, item.name)]
            # Whatever the checker compares an object without a namesake with, it is in that file.
            named = jax_side.modules.defines(jax_side.main, item.name)
            parts.append(_statements(jax_side, item.name) if named else jax_side.text)
            digests[item.name] = hashlib.sha256("\0".join(parts).encode()).hexdigest()
        return digests

    def _shapes(self, pool: RecordingPool, source: Path, timeout: float) -> dict[int, list[list[Any]]]:
        """The shapes of values by line of the source, from one more run of each object that was checked."""
        by_line: dict[int, list[list[Any]]] = {}
        for observed in pool.observed.values():
            request = observed.as_a(TorchTraceRequest, mode="eval", wide=True, gradients=False, construct=False)
            with contextlib.suppress(WorkerError, RemoteError):
                answer = pool.request("torch", "trace", timeout, self.cancelled, **request.to_plain())
                trace = Traced.from_plain(answer)
                for event in trace.events:
                    site, shape = trace.sites[event.site], getattr(event.value, "shape", None)
                    if shape is None or Path(site.file).resolve() != source.resolve():
                        continue
                    shapes = by_line.setdefault(site.line, [])
                    if [site.target, [*shape]] not in shapes:
                        shapes.append([site.target, [*shape]])
        return by_line


def _record(
    request: dict[str, Any], source: Path, converted: Path, verdicts: list[dict[str, Any]], about: dict[str, Any]
) -> None:
    texts = request["source_text"], request["converted_text"]
    asked = asked_of(*(request[name] for name in ("stage", "device", "torch_python", "jax_python", "init")))
    record(source, texts[0], converted, texts[1], verdicts, version=__version__, asked=asked, **about)


def _bare(verdict: ObjectVerdict) -> ObjectVerdict:
    """The verdict without what is only shown once."""
    return replace(verdict, explanation=None)


def _explained(explanation: Explanation) -> dict[str, Any]:
    """The steps, and the same as a table in plain text."""
    text = [*plain_table(HEADERS, list(table(explanation)), NUMERIC), "", *closing(explanation)]
    return {**explanation.to_json(), "text": "\n".join(text)}


def _plain(text: str) -> str:
    """The text with comments that the editor alone reads hidden from the checker, which has ``# t2j:`` comments too."""
    return _IGNORE.sub(r"\1t2j \2", text.removeprefix("\ufeff"))


def _statements(side: Slicer, name: str) -> str:
    part = side.cut(name)
    texts: list[str] = []
    for module in part.modules:
        lines = module.text.splitlines()
        scope = side.modules.load(module.name)
        for index, names in module.keep:
            node = scope[0].body[index] if scope is not None else None
            if node is not None:
                texts.append(f"{sorted(names) if names else ''}" + "\n".join(lines[node.lineno - 1 : node.end_lineno]))
    return "\0".join(texts)


def _read(path: Path) -> str:
    from t2j_lsp.check.program.workspace import read_text

    return read_text(path)


@dataclass(frozen=True)
class _Given:
    """The two programs of a request. ``converted`` None: the conversion was made here, and is no file."""

    source: Path
    text: str
    converted: Path | None
    code: str
    is_fresh: bool
    """Whether the conversion is what the source becomes now."""
    gaps: Sequence[Finding]
    """The gaps of what the source becomes now."""
    source_map: tuple[SourceMapEntry, ...] | None
    cells: Cells | None
    """Where the lines stand, in cells of notebooks."""


def _given(request: dict[str, Any], displays: bool = False) -> _Given:
    """The programs of a request. Raises SourceError.

    ``displays``: the cells of notebooks show the value of their last expression.
    """
    source = Path(request["source"])
    converted = Path(request["converted"]) if request["converted"] else None
    if source.suffix == ".ipynb":
        return _given_cells(source, converted, request, displays)
    text = _plain(request["source_text"])
    fresh = _converted(text, source, request)
    code = fresh.code if converted is None else _plain(request["converted_text"])
    module = own_helpers(converted) if converted is not None and code != fresh.code else None
    if converted is not None and module is not None and f"{module.stem} import " in code:
        fresh = _with_own_helpers(text, source, converted, request) or fresh
    same = code == fresh.code
    return _Given(source, text, converted, code, same, fresh.gaps, fresh.source_map if same else None, None)


def _given_cells(source: Path, converted: Path | None, request: dict[str, Any], displays: bool) -> _Given:
    """The programs of two notebooks, whose texts a request has as JSON."""
    options = _options(request)
    texts = (request["source_text"], request["converted_text"])
    data = [None if text is None else text.encode("utf-8", "surrogatepass") for text in texts]
    fresh = both_sides(source, None, options, displays, data[0])
    sides = both_sides(source, converted, options, displays, *data) if converted is not None else fresh
    assert fresh.conversion is not None and sides.source_text is not None
    code = sides.converted_text if converted is not None else sides.converted
    assert isinstance(code, str)
    same, gaps = code == fresh.converted, fresh.conversion.translation.gaps
    source_map = fresh.source_map if same else None
    return _Given(source, _plain(sides.source_text), converted, _plain(code), same, gaps, source_map, sides.cells)


def _placed(shapes: dict[int, list[list[Any]]], cells: Cells | None) -> list[list[Any]]:
    """Shapes with the places of their lines: the cell, or none in a file, the line from 1, and the shapes."""
    lines = cells.torch if cells is not None else None
    if lines is None:
        return [[None, line, seen] for line, seen in shapes.items()]
    return [[*place, seen] for line, seen in shapes.items() if (place := lines.place(line)) is not None]


def _options(request: dict[str, Any]) -> Options:
    """What a request says of conversions."""
    return Options(**{name: request[name] for name in ("target", "init", "scan", "layout")})


def _with_own_helpers(text: str, source: Path, converted: Path, request: dict[str, Any]) -> Translation | None:
    """What a text becomes, its helpers in a module of its own; None where there can be none."""
    asked = replace(_options_of(source, request), helpers="auto", helper_lines=0)
    options, module = with_own_module(source, text, asked, converted)
    return translate(text, options) if module is not None else None


def _converted(text: str, source: Path, request: dict[str, Any]) -> Translation:
    """What a text becomes with the settings of a request."""
    return translate(text, _options_of(source, request))


def _options_of(source: Path, request: dict[str, Any]) -> Options:
    """What a request says of the conversion of a file."""
    options = replace(_options(request), path=str(source), resolve=neighbours(source))
    return replace(options, used_elsewhere=used_elsewhere(source))


def _neighbour(request: dict[str, Any]) -> Callable[[Path], str]:
    """What files that a converted text imports become with the settings of a request."""
    options = _options(request)
    return lambda path: CONVERSIONS.of(path, options).code


def main() -> None:
    """Answer the server's requests, until it is gone."""
    requests = Requests(finishes=True)
    step_back()
    checker = Checker(requests.is_cancelled)

    def check(request: dict[str, Any]) -> dict[str, Any]:
        return checker.check(request, requests.progress)

    def run(request: dict[str, Any]) -> dict[str, Any]:
        return checker.run(request, requests.progress)

    try:
        requests.answer({"check": check, "run": run})
    finally:
        checker.close()


if __name__ == "__main__":
    main()
