"""The analysis process: ``python -P -m t2j_lsp.lsp.analysis.process``.

A long translation is given up as soon as something more urgent is asked for.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from t2j_lsp.api import convert_file, with_own_module
from t2j_lsp.child.frames import PICKLE
from t2j_lsp.child.serve import Requests
from t2j_lsp.contract import HelperDoc, Options, Span, T2JError, Translation
from t2j_lsp.explain import all_docs, helper_docs, readable
from t2j_lsp.files.helper_modules import NAME, Extended, extended
from t2j_lsp.files.merge import Merged
from t2j_lsp.files.sources import merge_into
from t2j_lsp.translate import translate

from .analyst import Analyst, options
from .counterparts import counterpart
from .landmarks import landmarks
from .model import (
    REFUSALS,
    Analysis,
    ConversionRefused,
    ConversionScope,
    ConversionSettings,
    Converted,
    Landmarks,
    SyntaxProblem,
)
from .partial import convert_part, restore

YOUNG, OLDEST = 1, 2
"""Generations of the garbage collector: what was made since the last collection, and everything."""


class Jobs:
    """What the process can be asked for. Each method is one operation."""

    def __init__(self) -> None:
        self.analyst = Analyst()
        self._replaced = False
        """Whether an analysis of a whole file took the place of an older one."""

    def docs(self) -> dict[str, tuple[str, str | None, str, str | None, str]]:
        """Every rule: signature, JAX form, fidelity, what to know, subject, by qualified torch name."""
        return {
            name: (d.signature, readable(d.jax) if d.jax else None, str(d.fidelity), d.note or d.reason, d.subject)
            for name, d in all_docs().items()
        }

    def helper_docs(self) -> dict[str, HelperDoc]:
        """What there is to say of the helpers."""
        return helper_docs()

    def quick(self, key: str, text: str, settings: ConversionSettings, path: str | None) -> Analysis | None:
        return self.analyst.quick(key, text, settings, path)

    def full(self, key: str, text: str, settings: ConversionSettings, path: str | None) -> Analysis:
        self._replaced = True
        return self.analyst.full(key, text, settings, path)

    def forget(self, key: str) -> None:
        self.analyst.forget(key)

    def part(self, key: str, text: str, settings: ConversionSettings, path: str | None, scope: ConversionScope) -> Any:
        return convert_part(self.analyst, key, text, settings, path, scope)

    def convert(
        self, key: str, text: str, settings: ConversionSettings, path: str | None, target: str | None = None
    ) -> Converted:
        """What a text becomes. ``target`` is where it goes, if there may be a module of its helpers beside it."""
        state = self.analyst.state(key, text, settings, path)
        problem = state.problem or state.made.problem
        if problem is not None or state.translation is None:
            raise ConversionRefused(_placed(path, problem or "the file can't be converted"))
        # What is too large for the editor is no reason to leave it out of a conversion.
        done = translate(text, options(settings, path)) if state.made.left else state.translation
        may_be_apart = settings.helpers == "auto" and path is not None and target is not None
        if may_be_apart and done.needs.helpers and done.code.count("\n") > settings.helper_lines:
            assert path is not None and target is not None
            own, module = with_own_module(Path(path), text, _with_module(settings, path), Path(target))
            done = translate(text, own) if module is not None else done
        return _converted(done, settings)

    def convert_path(
        self, path: str, data: bytes | None, settings: ConversionSettings, target: str | None = None
    ) -> Converted:
        """A file or notebook that is not kept among the analyses; ``data`` stands for what is on disk."""
        place = Path(target) if target is not None else None
        done = convert_file(Path(path), _with_module(settings, path), data, place).translation
        return _converted(done, settings)

    def helpers(self, names: list[str], present: str) -> Extended:
        """The helper module with these, from the text that stands there."""
        try:
            return extended(present, names)
        except SyntaxError as error:
            raise ConversionRefused(
                f"{NAME}.py, which gets helpers, is not Python (line {error.lineno}: {error.msg})"
            ) from None

    def landmarks(self, source: str, code: str) -> Landmarks:
        return landmarks(source, code)

    def counterpart(self, text: str, other: str, line: int) -> Span | None:
        return counterpart(text, other, line)

    def merge(self, path: str, mine: str, theirs: str) -> Merged:
        return merge_into(Path(path), mine, theirs)

    def restore(
        self, key: str, text: str, settings: ConversionSettings, path: str | None, other: str, line: int
    ) -> Any:
        fresh = self.analyst.state(key, text, settings, path)
        problem = fresh.problem or fresh.made.problem
        if fresh.translation is None or problem is not None:
            raise ConversionRefused(_placed(path, problem or "the file can't be converted"))
        return restore(other, fresh.translation.code, line)

    def _clean_up(self) -> None:
        """Collect what the last operation left; trees that are kept are gone through only when some were replaced."""
        gc.collect(OLDEST if self._replaced else YOUNG)
        self._replaced = False


def _placed(path: str | None, problem: str) -> str:
    """A problem with the name of its file."""
    return f"{Path(path).name}, {problem}" if path is not None else problem


def _converted(done: Translation, settings: ConversionSettings) -> Converted:
    imported = done.needs.helpers if settings.helpers == "module" else ()
    own = done.helper_source if settings.helpers == "auto" else None
    return Converted(done.code, len(done.gaps), sum(n.differs for n in done.notes), imported, own)


def _with_module(settings: ConversionSettings, path: str) -> Options:
    """The options by which a file may have its helpers in a module of its own."""
    made = options(settings, path)
    return replace(made, helpers="auto", helper_lines=settings.helper_lines) if settings.helpers == "auto" else made


def answering(handler: Callable[..., Any]) -> Callable[..., Any]:
    """A handler whose refusals are those that the server knows, with the name of the file."""

    def answered(**arguments: Any) -> Any:
        try:
            return handler(**arguments)
        except SyntaxError as error:
            line = f"line {error.lineno}: " if error.lineno else ""
            raise SyntaxProblem(_placed(arguments.get("path"), f"{line}{error.msg or 'invalid syntax'}")) from None
        except T2JError as error:
            raise ConversionRefused(str(error)) from None

    return answered


def main() -> None:
    """Answer the server's requests."""
    requests = Requests(PICKLE, REFUSALS, interrupts=True)
    jobs = Jobs()
    translate("import torch\nx = torch.zeros(2)\n")
    gc.collect()
    gc.freeze()
    gc.disable()
    operations = {name: answering(getattr(jobs, name)) for name in vars(Jobs) if not name.startswith("_")}
    requests.answer(operations, jobs._clean_up)


if __name__ == "__main__":
    main()
