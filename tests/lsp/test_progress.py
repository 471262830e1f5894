"""How a running check is shown, and what is said of its containment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from t2j_lsp.check.process.containment import probe

from .client import Client
from .pairs import TIMEOUT

FUNCTION = "import torch\n\n\ndef scale(x: torch.Tensor):\n    return x * 3\n"
STATUS, PROGRESS = "t2j/status", "window/workDoneProgress/create"


@pytest.mark.parametrize("shows", [True, False])
def test_checks_are_shown_in_one_place(start: Callable[..., Client], tmp_path: Path, shows: bool) -> None:
    settings = {"check": {"stage": "spec"}}
    client = start(options={"trusted": True, "showsChecks": shows, "settings": settings})
    client.settings = settings
    uris = []
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text(FUNCTION)
        uris.append((tmp_path / f"{name}.py").as_uri())
    requests = [
        client.start("workspace/executeCommand", {"command": "t2j.check", "arguments": [uri, "scale"]}) for uri in uris
    ]
    for request in requests:
        assert client.result(request, TIMEOUT)["problem"] is None
    # The last word is that nothing runs.
    client.wait_notification(STATUS, lambda p: p["state"] == "idle", client.messages.index(_last_checking(client)))
    said = [m["params"] for m in client.messages if m.get("method") == STATUS and m["params"]["state"] == "checking"]
    assert {one["uri"] for one in said} == set(uris)
    # Several are one line: which runs, and how many wait behind it.
    assert max(one.get("waiting", 0) for one in said) == 1
    assert any(m.get("method") == PROGRESS for m in client.messages) is not shows
    assert any(one.get("message") == "checking scale" for one in said) is shows


def _last_checking(client: Client) -> dict[str, object]:
    statuses = [m for m in client.messages if m.get("method") == STATUS]
    return next(m for m in reversed(statuses) if m["params"]["state"] == "checking")


def test_what_is_not_held_is_known_before_a_check(shared: Client) -> None:
    assert shared.command("t2j.containment") == probe().to_json()
    info = shared.command("t2j.debugInfo")
    assert info["processes"]["check"] is None and "numpy" not in info["loaded"]
