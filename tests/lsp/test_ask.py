"""Asking a model from an editor, over a real server, with a scripted endpoint and real workers: what is sent and when,
what is written, and where the key is not.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from benchmarks.scripted_endpoint import Script, Silence, Status, serve

from .client import FULL, Client, Json, ServerError, applied, capabilities, span
from .programs import line_of

if find_spec("openai") is None:
    pytest.skip("the extra llm is not installed", allow_module_level=True)

SOURCE = """\
import torch
import torch.nn as nn


# t2j: args=(4, 6), x=f32[3, 4]
class Slope(nn.Module):
    def __init__(self, features, out):
        super().__init__()
        self.fc = nn.Linear(features, out)

    def forward(self, x):
        y = torch.tanh(self.fc(x))
        dy = torch.ops.aten.cumsum(y, dim=1)
        return y + dy
"""


def answer(code: str) -> str:
    return f"### SPAN 1\n```python\n{code}\n```\n\nCLAIM: equivalent\n"


RIGHT, WRONG = answer("dy = jnp.cumsum(y, axis=1)"), answer("dy = -jnp.cumsum(y, axis=1)")
KEY = "sk-secret-of-the-editor"
TIMEOUT = 300.0
Start = Callable[..., "Editor"]


class Editor:
    """A client with ``slope.py`` open, which applies edits to files and answers questions."""

    def __init__(self, client: Client, folder: Path, says: dict[str, str | None]) -> None:
        self.client, self.folder, self.says = client, folder, says
        self.path, self.target = folder / "slope.py", folder / "slope_jax.py"
        self.uri, self.target_uri = self.path.as_uri(), self.target.as_uri()
        self.asked: list[str] = []
        self.edits: list[Json] = []
        client.answers["window/showMessageRequest"] = self._answer
        client.answers["workspace/applyEdit"] = self._apply

    def open(self, text: str = SOURCE) -> None:
        self.path.write_text(text)
        self.client.open(self.uri, text)
        self.client.state(self.uri, complete=True)

    def ask(self, *arguments: Any) -> Json:
        return self.client.command("t2j.ask", self.uri, *arguments, timeout=TIMEOUT)  # type: ignore[no-any-return]

    def actions(self) -> list[Json]:
        line = line_of(SOURCE, "torch.ops.aten.cumsum")
        result = self.client.actions(self.uri, span(line, 20))
        return [a for a in result if (a.get("command") or {}).get("command") == "t2j.ask"]

    def messages(self) -> list[str]:
        return [m["params"]["message"] for m in self.client.messages if m.get("method") == "window/showMessage"]

    def _answer(self, params: Json) -> Json | None:
        self.asked.append(params["message"])
        wanted = next((title for start, title in self.says.items() if params["message"].startswith(start)), None)
        return {"title": wanted} if wanted else None

    def _apply(self, params: Json) -> Json:
        self.edits.append(params["edit"])
        for change in params["edit"]["documentChanges"]:
            if change.get("kind") == "create":
                self.target.write_text("")
                continue
            assert change["textDocument"]["uri"] == self.target_uri
            self.target.write_text(applied(self.target.read_text(), change["edits"]))
        return {"applied": True}


@pytest.fixture
def editor(tmp_path: Path, start: Callable[..., Client]) -> Start:
    """``editor(script, ...)``: a server that may ask this endpoint, in a trusted folder."""

    def begin(
        script: Script | None, trusted: bool = True, agrees: bool = True, caps: Json = FULL, **options: Any
    ) -> Editor:
        folder = tmp_path / "project"
        folder.mkdir(exist_ok=True)
        settings: Json = {"check": {"enable": False}}
        if script is not None:
            settings["model"] = {"names": ["small"], "baseUrl": script.url, **options.pop("model", {})}
        env = {"T2J_STATE": str(tmp_path / "state"), "OPENAI_API_KEY": "", **options.pop("env", {"T2J_LLM_KEY": KEY})}
        client = start(caps, {"trusted": trusted, "settings": settings, **options}, folder, (folder,), env)
        client.settings = settings
        return Editor(client, folder, {"Send slope.py": "Send" if agrees else "Cancel", "Slope: not": "Write Draft"})

    return begin


@pytest.fixture
def endpoint() -> Iterator[Callable[..., Script]]:
    with contextlib.ExitStack() as stack:
        yield lambda *steps: stack.enter_context(serve(list(steps)))


Endpoint = Callable[..., Script]


def holds_nothing_of(key: str, *folders: Path) -> None:
    """No file below the folders has the key in it."""
    files = [file for folder in folders for file in folder.rglob("*") if file.is_file()]
    assert files
    assert not [file for file in files if key.encode() in file.read_bytes()]


def test_nothing_is_offered_or_asked_before_a_model_is_set(editor: Start) -> None:
    one = editor(None)
    one.open()
    assert one.actions() == []
    with pytest.raises(ServerError, match="no model is set"):
        one.ask("Slope")


def test_nothing_is_sent_from_a_workspace_that_is_not_trusted(editor: Start, endpoint: Endpoint) -> None:
    script = endpoint(RIGHT)
    one = editor(script, trusted=False)
    one.open()
    assert one.actions() == []
    with pytest.raises(ServerError, match="not trusted"):
        one.ask("Slope")
    assert script.requests == [] and one.asked == []


def test_nothing_is_sent_before_the_user_agreed_to_the_host(editor: Start, endpoint: Endpoint) -> None:
    script = endpoint(RIGHT)
    one = editor(script, agrees=False)
    one.open()
    answered = one.ask("Slope")
    assert answered["applied"] is False and answered["reason"] == "nothing was sent"
    (question,) = one.asked
    host = script.url.removeprefix("http://").removesuffix("/v1")
    assert question.startswith("Send slope.py") and f"to {host} (small)?" in question
    assert script.requests == [] and not one.target.exists()


def test_a_client_that_asks_itself_has_to_name_the_host(editor: Start, endpoint: Endpoint) -> None:
    script = endpoint(RIGHT)
    one = editor(script, asksBeforeSending=True)
    one.open()
    for host in ([], ["elsewhere.example"]):
        assert one.ask("Slope", "gaps", *host)["reason"] == "nothing was sent"
    assert script.requests == [] and one.asked == []


def test_the_preview_is_what_is_sent_then(editor: Start, endpoint: Endpoint) -> None:
    script = endpoint(Status(401))
    one = editor(script)
    one.open()
    shown = one.client.command("t2j.askPreview", one.uri, "Slope", timeout=TIMEOUT)
    assert script.requests == [] and one.asked == []
    assert shown["host"] in script.url and shown["models"] == ["small"] and shown["spans"] == 1
    assert "torch.ops.aten.cumsum(y, dim=1)" in shown["text"] and len(shown["fixes"]) == shown["text"].count(
        '"Error_Code"'
    )
    one.ask("Slope")
    for message in script.requests[0]["messages"]:
        assert message["content"] in shown["text"]


def test_a_verified_answer_is_one_edit_and_the_key_is_nowhere(
    editor: Start, endpoint: Endpoint, tmp_path: Path
) -> None:
    script = endpoint(WRONG, RIGHT)
    one = editor(script, env={})
    one.open()
    (action,) = one.actions()
    assert action["title"] == "Ask the model…", "no fixed bug is about torch.ops.aten.cumsum"
    assert action["command"]["arguments"] == [one.uri, "Slope", "gaps", None, True]
    host = script.url.removeprefix("http://").removesuffix("/v1")
    one.client.notify("t2j/modelKey", {"host": host, "key": KEY})
    answered = one.ask("Slope", "gaps")
    assert answered["applied"] and (answered["verified"], answered["left"], answered["rounds"]) == (1, 0, 2)
    assert answered["verdicts"]["Slope"]["verdict"] == "equivalent"
    assert len(one.edits) == 1 and "dy = jnp.cumsum(y, axis=1)" in one.target.read_text()
    assert "TODO(t2j)" not in one.target.read_text()
    shown = one.client.wait(lambda m: m.get("method") == "window/showDocument")["params"]
    at = shown["selection"]["start"]["line"]
    assert shown["uri"] == one.target_uri and "jnp.cumsum" in one.target.read_text().splitlines()[at]
    (said,) = one.messages()
    assert said.startswith("Slope: ✓ checked: outputs, gradients") and "small, 2 rounds" in said and "undo" in said
    steps = [m["params"]["value"].get("message") or "" for m in one.client.messages if m.get("method") == "$/progress"]
    assert any(step.startswith("small: round 2, about ") for step in steps) and "checking Slope" in " ".join(steps)
    assert script.keys == [f"Bearer {KEY}"] * 2
    # Agreed once: the next time is not asked about.
    assert len(one.asked) == 1
    with pytest.raises(ServerError, match="nothing in Slope that is still in the conversion"):
        one.ask("Slope", "gaps")
    assert "openai" not in one.client.command("t2j.debugInfo")["loaded"]
    one.client.shutdown()
    holds_nothing_of(KEY, tmp_path)


def test_an_answer_survives_the_next_conversion_and_the_next_question(editor: Start, endpoint: Endpoint) -> None:
    second = SOURCE.split("class Slope")[1].replace(
        "torch.ops.aten.cumsum(y, dim=1)", "torch.ops.aten.cumsum(y, dim=0)"
    )
    script = endpoint(RIGHT, answer("dy = jnp.cumsum(y, axis=0)"))
    one = editor(script)
    one.open(f"{SOURCE}\n\n# t2j: args=(4, 6), x=f32[3, 4]\nclass Other{second}")
    assert one.ask("Slope")["verified"] == 1
    assert one.ask("Other")["verified"] == 1
    text = one.target.read_text()
    assert "jnp.cumsum(y, axis=1)" in text and "jnp.cumsum(y, axis=0)" in text and "TODO" not in text
    again = one.client.command("t2j.previewFile", one.uri)
    assert again["code"] == text and again["conflicts"] == 0


@pytest.mark.parametrize("wanted", [True, False])
def test_what_is_not_verified_is_offered_as_a_draft_and_marked(editor: Start, endpoint: Endpoint, wanted: bool) -> None:
    script = endpoint(WRONG)
    one = editor(script, model={"rounds": 1})
    one.says["Slope: not"] = "Write Draft" if wanted else "Discard"
    one.open()
    answered = one.ask("Slope")
    assert answered["applied"] is wanted and answered["verified"] == 0
    assert "not verified by the check: different: " in one.asked[-1]
    assert one.messages() == []
    assert one.target.exists() is wanted
    if not wanted:
        return
    text = one.target.read_text()
    mark = line_of(text, "# TODO(t2j): unverified draft by small: different: ")
    assert "dy = -jnp.cumsum(y, axis=1)" in text.splitlines()[mark + 1]
    since = one.client.now
    one.client.open(one.target_uri, text)
    marked = [d for d in one.client.diagnostics(one.target_uri, since=since) if d["code"] == "t2j-todo"]
    assert "unverified draft by small" in marked[0]["message"]
    # And the model can be asked again for it, from there.
    result = one.client.actions(one.target_uri, span(mark + 1, 8))
    (again,) = [a for a in result if (a.get("command") or {}).get("command") == "t2j.ask"]
    assert again["command"]["arguments"][:3] == [one.uri, "Slope", "gaps"]
    preview = one.client.command("t2j.askPreview", one.uri, "Slope", timeout=TIMEOUT)
    assert "unverified draft by small" in preview["text"]


def test_an_endpoint_that_refuses_is_said_in_a_line_without_the_key(
    editor: Start, endpoint: Endpoint, tmp_path: Path
) -> None:
    one = editor(endpoint(Status(401)))
    one.open()
    answered = one.ask("Slope")
    assert answered["applied"] is False and "answered 401" in answered["reason"]
    assert "answered 401" in one.messages()[0] and not one.target.exists()
    one.client.shutdown()
    holds_nothing_of(KEY, tmp_path)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="only Linux tells when a process that is no child has ended")
@pytest.mark.parametrize("own_token", [False, True])
def test_cancelling_leaves_no_process_and_typing_stays_possible(
    editor: Start, endpoint: Endpoint, own_token: bool
) -> None:
    script = endpoint(Silence())
    one = editor(script)
    one.open()
    command: Json = {"command": "t2j.ask", "arguments": [one.uri, "Slope"]}
    request = one.client.start("workspace/executeCommand", {**command, **({"workDoneToken": 7} if own_token else {})})
    assert script.asked.wait(TIMEOUT)
    assert one.client.hover(one.uri, line_of(SOURCE, "torch.tanh"), 20)["contents"]
    with pytest.raises(ServerError, match="being asked already"):
        one.ask("Slope")
    pid = one.client.command("t2j.debugInfo")["processes"]["asking"]
    assert pid in processes(one.client.process.pid)
    watched = [os.pidfd_open(one) for one in processes(pid)]
    began = one.client.wait_notification("$/progress", lambda p: p["value"]["title"].endswith("Slope"))
    if own_token:
        assert began["token"] == 7
        one.client.notify("$/cancelRequest", {"id": request})
        with pytest.raises(ServerError, match="cancelled"):
            one.client.result(request)
    else:
        one.client.notify("window/workDoneProgress/cancel", {"token": began["token"]})
        assert one.client.result(request)["reason"] == "it was cancelled"
    assert all(select.select([one], [], [], TIMEOUT)[0] for one in watched)
    assert not one.target.exists()


def test_a_definition_that_differs_is_repaired(editor: Start, endpoint: Endpoint) -> None:
    plain = SOURCE.replace("        dy = torch.ops.aten.cumsum(y, dim=1)\n", "").replace("y + dy", "torch.relu(y)")
    right: list[str] = []
    with serve(lambda request: right[0]) as script:
        one = editor(script)
        one.open(plain)
        assert one.client.command("t2j.convertFile", one.uri)["applied"]
        text = one.target.read_text()
        right.append(answer("class Slope" + text.split("class Slope")[1]))
        one.target.write_text(text.replace("jax.nn.relu(y)", "jax.nn.gelu(y)"))
        _repaired(one, script)


def _repaired(one: Editor, script: Script) -> None:
    assert one.client.command("t2j.check", one.uri, "Slope", timeout=TIMEOUT)["verdict"] == "different"
    result = one.client.request("textDocument/codeLens", {"textDocument": {"uri": one.uri}})
    (lens,) = [one["command"] for one in result if one["command"]["command"] == "t2j.ask"]
    assert lens["title"] == "Repair with the model…" and lens["arguments"][:3] == [one.uri, "Slope", "different"]
    answered = one.ask("Slope", "different")
    assert answered["applied"] and answered["verdicts"]["Slope"]["verdict"] == "equivalent"
    assert "differs" in script.requests[0]["messages"][-1]["content"]
    assert "jax.nn.gelu" not in one.target.read_text()
    assert one.client.command("t2j.check", one.uri, "Slope", timeout=TIMEOUT)["verdict"] == "equivalent"


def test_a_client_that_can_do_little_gets_a_file_and_the_same_questions(editor: Start, endpoint: Endpoint) -> None:
    """As Eglot: no files made by edits, no progress, no lazy actions."""
    caps = capabilities(workspace__workspaceEdit={}, window={}, textDocument__codeAction=None)
    one = editor(endpoint(RIGHT), caps=caps)
    one.open()
    result = one.client.actions(one.uri, span(line_of(SOURCE, "torch.ops.aten.cumsum"), 20))
    (action,) = [a for a in result if a["command"] == "t2j.ask"]
    # It is answered at once, since Eglot waits for ten seconds, and does nothing else meanwhile.
    assert one.client.command("t2j.ask", *action["arguments"]) == {"started": True}
    said = one.client.wait_notification("window/showMessage", timeout=TIMEOUT)["message"]
    assert said.startswith("Slope: ✓ checked") and "jnp.cumsum(y, axis=1)" in one.target.read_text()
    assert one.edits == [] and len(one.asked) == 1


def processes(root: int) -> list[int]:
    """A process and all its descendants that are there now."""
    rows = subprocess.run(["ps", "-eo", "pid,ppid,stat"], capture_output=True, text=True, check=True).stdout
    parents: dict[int, int] = {}
    for row in rows.splitlines()[1:]:
        pid, parent, state = row.split()
        if not state.startswith("Z"):
            parents[int(pid)] = int(parent)
    texts = [root] if root in parents else []
    for one in texts:
        texts += [pid for pid, parent in parents.items() if parent == one and pid != os.getpid()]
    return texts
