"""The server: a session with its services, which hear of each text and of each other's results from here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lsprotocol import types

from t2j_lsp.lsp.asking.service import AskingProcess
from t2j_lsp.lsp.checking.service import CheckService
from t2j_lsp.lsp.similar.captures import Captures
from t2j_lsp.lsp.similar.service import SimilarService
from t2j_lsp.lsp.survey.service import SurveyService

from .diagnostics import Diagnostics
from .documents import Program
from .project_file import NAME as PROJECT_FILE
from .project_file import ProjectFiles
from .session import Session


class Server(Session):
    """What features are registered with."""

    def __init__(self) -> None:
        super().__init__()
        self.checks = CheckService(self)
        self.survey = SurveyService(self)
        self.asking = AskingProcess()
        self.model_keys: dict[str, str] = {}
        """Keys that the client handed over, by host; in memory alone."""
        self.similar = SimilarService(self, self.checks)
        self.captures = Captures(self, self.similar)
        self.diagnostics = Diagnostics(self, self.checks, ProjectFiles(self))
        self.checks.on_ran = self.captures.checked
        self.checks.on_known = self._checked
        self.checks.on_differences = self.diagnostics.checked
        self.service.on_analysis = self._analysed
        self.on_initialize: list[Callable[[], None]] = []
        """Called once the client's abilities are known, and before it is answered."""
        self.on_analysis: list[Callable[[Program], None]] = []
        """Called with each program that was analysed as a whole."""
        self._register()

    def _register(self) -> None:
        @self.feature(types.INITIALIZE)
        def initialize(params: types.InitializeParams) -> None:
            self.begin(params)
            for prepare in self.on_initialize:
                prepare()
            self.service.start()
            self.checks.start()

        @self.feature(types.SHUTDOWN)
        async def shutdown(_: Any) -> None:
            await self.stop()

    async def stop(self) -> None:
        """End the processes."""
        self.asking.cancel()
        await self.checks.close()
        await self.survey.close()
        await self.similar.close()
        await self.service.close()

    # --- texts ----------------------------------------------------------------------------------------------------

    def opened(self, program: Program) -> None:
        """A document or notebook was opened."""
        self.forget_settings(program.uri)
        self.survey.touch()
        self._analyse(program)
        if not program.is_notebook:
            self.diagnostics.look_at_project_files()
        self.diagnostics.opened_or_closed(program.uri)
        self.checks.opened(program.uri)

    def changed(self, changed: Program) -> None:
        """A document or notebook has a new text."""
        self._analyse(changed)
        self.survey.touch()
        if changed.uri.endswith(f"/{PROJECT_FILE}"):
            self.diagnostics.look_at_project_files()
        self.checks.edited(changed.uri)

    def _analyse(self, changed: Program) -> None:
        program = self.store.program(changed.uri)
        if program is None:
            return
        if program is not changed and program.is_notebook:
            program.touch(program.version)  # type: ignore[union-attr]
        # Some clients name no language where none was detected.
        if program.is_notebook or getattr(program, "language", "") in ("python", "") or program.uri.endswith(".py"):
            self.service.update(program)

    def closed(self, uri: str) -> None:
        """A document or notebook was closed."""
        self.service.drop(uri)
        self.diagnostics.clear(uri)
        self.diagnostics.look_at_project_files()
        self.diagnostics.opened_or_closed(uri)
        self.survey.touch()
        self.forget_settings(uri)

    def cell_closed(self, uri: str) -> None:
        """A cell of a notebook is gone."""
        self.diagnostics.clear(uri)

    # --- results --------------------------------------------------------------------------------------------------

    def _analysed(self, uri: str) -> None:
        program = self.store.program(uri)
        known = self.service.known.get(uri)
        if program is None:
            return
        self.diagnostics.analysed(program)
        self.similar.analysed(program)
        if known is not None and known.analysis.complete:
            for listener in self.on_analysis:
                listener(program)
            self.refresh_views()

    def _checked(self, source: str, verdicts: list[dict[str, Any]]) -> None:
        self.similar.checked(source, verdicts)
        self.survey.touch()

    def reconfigured(self) -> None:
        """Settings have changed: everything that depends on them is worked out again."""
        for program in self.store.programs():
            self._analyse(program)
            self.diagnostics.publish(program)
        self.diagnostics.look_at_project_files()
        self.checks.reconsider()
        self.survey.touch(walk=True)
        self.refresh_views()
