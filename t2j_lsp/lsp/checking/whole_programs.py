"""What is known of whole programs that were run beside their conversions: the report, and where the two part.

A report is about two texts. An edit of either makes it stale, and its diagnostics go.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from t2j_lsp.contract import T2JError
from t2j_lsp.lsp.paths import to_path
from t2j_lsp.lsp.progress import Progress, StatusProgress
from t2j_lsp.lsp.session import Session

from .places import PairPlaces
from .requests import CheckRequest
from .runner import CheckProcess
from .verdicts import FoundDifference, differences_of
from .wording import program_line

NAME = "the program"
"""What a difference between whole programs is about."""


@dataclass
class ProgramVerdict:
    """The report on two programs, as `ProgramReport` has it in JSON."""

    report: dict[str, Any]
    differences: list[FoundDifference] = field(default_factory=list)
    stale: bool = False


class WholePrograms:
    """The reports, by source."""

    def __init__(self, session: Session, process: CheckProcess) -> None:
        self._session = session
        self._process = process
        self.states: dict[str, ProgramVerdict] = {}

    def make_stale(self, source: str) -> bool:
        """A text of a pair was edited. Answers whether that is news."""
        state = self.states.get(source)
        if state is None or state.stale:
            return False
        state.stale, state.differences = True, []
        return True

    async def ask(self, request: CheckRequest, progress: Progress | StatusProgress) -> ProgramVerdict | None:
        """Run both programs; None where that was stopped or one was edited meanwhile. Raises T2JError."""
        source = request.uri
        path = to_path(source)
        if path is None:
            raise T2JError("only files are run")
        settings = self._session.settings_for(source)
        texts = self._texts(source, path)
        pair = self._session.pairs.converted_of(source)
        answer = await self._process.run(
            {
                "source": str(path),
                "source_text": texts[0],
                "converted": str(pair[1]) if pair is not None else None,
                "converted_text": texts[1],
                "arguments": settings.run_arguments,
                "steps": settings.run_steps,
                "timeout": settings.run_timeout,
                "synthetic": settings.run_data == "synthetic",
                "device": settings.check_device,
                "target": settings.target,
                "init": settings.initial_values,
                "scan": settings.scan,
                "layout": settings.layout,
                "torch_python": settings.torch_python,
                "jax_python": settings.jax_python,
                "readable": settings.readable,
            },
            progress.report,
            "run",
        )
        if answer is None or self._texts(source, path) != texts:
            return None
        about = {"name": NAME, **answer, "divergence": answer["divergence"] and {**answer["divergence"], "cause": None}}
        places = PairPlaces(self._session.pairs, source, pair[0] if pair is not None else None)
        state = self.states[source] = ProgramVerdict(answer, differences_of(about, places))
        if request.ran is not None and not request.ran.done():
            request.ran.set_result(answer)
        return state

    def _texts(self, source: str, path: Path) -> tuple[str, str | None]:
        pairs = self._session.pairs
        pair = pairs.converted_of(source)
        return pairs.text(source, path)[0], pairs.text(*pair)[0] if pair is not None else None

    def summary(self, source: str) -> dict[str, Any] | None:
        """What is known of a program, for the client; None where it was not run."""
        state = self.states.get(source)
        if state is None:
            return None
        pair = self._session.pairs.converted_of(source)
        line = program_line(state.report, state.stale, pair[1].name if pair is not None else None)
        name = Path(to_path(source) or source).name
        return {"uri": source, "message": f"{name}: {line}", "stale": state.stale, **state.report}
