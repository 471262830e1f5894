"""The request ``t2j/workspace``: how far the migration of the workspace's folders is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from t2j_lsp.contract import T2JError

from .actions import RequestFailed

if TYPE_CHECKING:
    from t2j_lsp.lsp.server import Server

WORKSPACE = "t2j/workspace"


def register(server: Server) -> None:
    @server.feature(WORKSPACE)
    async def workspace(params: Any) -> dict[str, Any]:
        """``{refresh?}``: the PyTorch files with their classes and functions, and the state of each."""
        try:
            return await server.survey.answer(bool(getattr(params, "refresh", False)))
        except T2JError as error:
            raise RequestFailed(message=str(error)) from None
