"""Code lenses in every state: where they stand, what they say, and what a click on them does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from t2j_lsp.contract import Coverage, Uncovered
from t2j_lsp.lsp.checking.wording import clipped, coverage_details, coverage_line, verdict_line

from .client import Client, Json
from .pairs import TIMEOUT
from .programs import LOOP, NET, line_of
from .test_conversions import Editor

HOOK = """import torch


# A comment.
@torch.no_grad()
@torch.jit.ignore(
    drop=True
)
def hook(x):
    x.register_hook(print)
    return torch.relu(x)


def stays(x):
    return torch.jit.trace(x, 3)
"""
PREVIEWS = {"previews": True, "asksBeforeChecks": True}


def lenses(client: Client, uri: str) -> list[tuple[int, str, str]]:
    """Line, title and command of the lenses of a text that is analysed as a whole."""
    client.state(uri, complete=True)
    result: list[Json] = client.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
    return [(one["range"]["start"]["line"], one["command"]["title"], one["command"]["command"]) for one in result]


def titles(client: Client, uri: str, line: int | None = None) -> list[str]:
    return [title for at, title, _ in lenses(client, uri) if line is None or at == line]


@pytest.fixture
def client(lent: Callable[..., Client]) -> Client:
    """A server of VS Code's, which shows previews."""
    return lent(options=PREVIEWS)


def test_a_click_on_convert_opens_a_preview_and_rewrites_nothing(client: Client, tmp_path: Path) -> None:
    uri = (tmp_path / "net.py").as_uri()
    client.open(uri, NET)
    client.state(uri, complete=True)
    result: list[Json] = client.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
    converting = [one for one in result if one["command"]["title"].startswith("Convert")]
    assert [(one["command"]["title"], one["command"]["arguments"]) for one in converting] == [
        ("Convert file to JAX…", [uri]),
        ("Convert to JAX…", [uri, "Net"]),
        ("Convert to JAX…", [uri, "watch"]),
        ("Convert to JAX…", [uri, "order"]),
    ]
    assert {one["command"]["command"] for one in converting} == {"t2j.previewConversion"}
    assert not [one for one in result if one["command"]["command"] == "t2j.convert"]
    assert titles(client, uri, line_of(NET, "def watch")) == ["Convert to JAX…", "1 place left as PyTorch", "Check"]


def test_without_previews_the_title_names_the_new_file(start: Callable[..., Client], tmp_path: Path) -> None:
    client = start()
    uri = (tmp_path / "net.py").as_uri()
    client.open(uri, NET)
    result = lenses(client, uri)
    converting = {(title, command) for _, title, command in result if title.startswith("Convert")}
    assert converting == {("Convert file to JAX (new file net_jax.py)", "t2j.convertFile")}
    # And one that is no file is said to be rewritten.
    client.open("untitled:a.py", NET)
    assert ("Rewrite in place as JAX…", "t2j.convertFile") in {(t, c) for _, t, c in lenses(client, "untitled:a.py")}


def test_lenses_stand_above_decorators(client: Client, tmp_path: Path) -> None:
    uri = (tmp_path / "hook.py").as_uri()
    client.open(uri, HOOK)
    result = lenses(client, uri)
    assert {line for line, _, _ in result} == {0, line_of(HOOK, "@torch.no_grad"), line_of(HOOK, "def stays")}


def test_what_cant_be_converted_says_why_and_does_nothing(client: Client, tmp_path: Path) -> None:
    uri = (tmp_path / "hook.py").as_uri()
    client.open(uri, HOOK)
    (lens,) = [one for one in lenses(client, uri) if one[0] == line_of(HOOK, "def stays")]
    assert lens[1].startswith("Stays PyTorch: torch.jit.trace: JAX compiles with jax.jit")
    assert lens[2] == "" and client.command("") is None
    client.open("untitled:loop.py", LOOP)
    (loop,) = [one for one in lenses(client, "untitled:loop.py") if one[0] == line_of(LOOP, "for step")]
    assert loop[1].startswith("Stays PyTorch: ") and "training code" not in loop[1] and loop[2] == ""
    alone = (tmp_path / "alone.py").as_uri()
    client.open(alone, "import torch\n\n\ndef stays(x):\n    return torch.jit.trace(x, 3)\n")
    (title, command), *others = [(title, command) for _, title, command in lenses(client, alone)]
    assert title.startswith("Not converted: torch.jit.trace: JAX compiles with jax.jit") and command == ""
    assert {command for _, command in others} <= {""}


def test_lenses_go_when_what_they_offer_is_done_and_come_back_when_it_is_not(client: Client, tmp_path: Path) -> None:
    Editor(client)
    source, target = tmp_path / "net.py", tmp_path / "net_jax.py"
    source.write_text(NET)
    uri = source.as_uri()
    client.open(uri, NET)
    client.command("t2j.convertFile", uri)
    converted = titles(client, uri)
    assert titles(client, uri, line_of(NET, "def watch")) == ["1 place left as PyTorch", "Check"]
    assert not [title for title in converted if "onvert" in title or "Update" in title]
    assert titles(client, uri, 0) == ["1 place left as PyTorch"]
    # Edited by hand, it is still what the source becomes.
    target.write_text('"""Mine."""\n' + target.read_text())
    assert titles(client, uri) == converted
    # The source goes on: the file is outdated, and what it lacks is offered.
    text = NET + "\n\ndef more(x: torch.Tensor):\n    return torch.relu(x)\n"
    client.change(uri, 2, {"text": text})
    assert titles(client, uri, 0) == ["Update net_jax.py…", "1 place left as PyTorch"]
    offered = [line for line, title, _ in lenses(client, uri) if title == "Convert to JAX…"]
    assert offered == [line_of(text, "def more")]
    # The conversion itself is offered nothing.
    client.open(target.as_uri(), target.read_text())
    assert not [c for _, _, c in lenses(client, target.as_uri()) if c == "t2j.previewConversion"]


def test_a_file_in_the_way_is_named(client: Client, tmp_path: Path) -> None:
    (tmp_path / "net_jax.py").write_text("mine\n")
    uri = (tmp_path / "net.py").as_uri()
    client.open(uri, NET)
    first = lenses(client, uri)[0]
    assert first[1].startswith("Not converted: net_jax.py exists and t2j does not know it") and first[2] == ""
    assert not [title for title in titles(client, uri) if title.startswith("Convert")]


NEEDS = """import torch


@torch.no_grad()
def needs(x: torch.Tensor, parts):
    return torch.relu(x) @ parts.secret.value
"""


def test_a_check_without_inputs_is_told_them_by_a_click(start: Callable[..., Client], tmp_path: Path) -> None:
    settings = {"check": {"stage": "spec"}}
    client = start(options={"trusted": True, "settings": settings})
    client.settings = settings
    path = tmp_path / "needs.py"
    path.write_text(NEEDS)
    editor = Editor(client)
    client.open(path.as_uri(), NEEDS)
    client.state(path.as_uri(), complete=True)
    client.command("t2j.check", path.as_uri(), "needs", timeout=TIMEOUT)
    (lens,) = [one for one in lenses(client, path.as_uri()) if one[2] == "t2j.tellInputs"]
    assert lens == (line_of(NEEDS, "@torch.no_grad"), "? not checked: no inputs (tell them)", "t2j.tellInputs")
    assert client.command("t2j.tellInputs", path.as_uri(), "needs") == {"applied": True}
    assert len(editor.edits) == 1
    (comment,) = [line for line in path.read_text().splitlines() if line.startswith("# t2j: ")]
    assert comment.startswith("# t2j: x=f32[") and "parts=" in comment
    assert path.read_text() == NEEDS.replace("@torch.no_grad", f"{comment}\n@torch.no_grad")


# --- verdicts in words ------------------------------------------------------------------------------------------------


def verdict(kind: str, reason: str | None = None, what: str = "", **stages: Json) -> Json:
    nothing = {"result": "not run", "reason": None, "max_abs_err": None, "max_rel_err": None, "observed": []}
    places = {"torch": {"file": "/w/net.py", "line": 9}, "jax": {"file": "/w/net_jax.py", "line": 12}, "what": what}
    return {
        "name": "Net",
        "verdict": kind,
        "reason": reason,
        "stages": {name: nothing | stages.get(name, {}) for name in ("spec", "numeric", "behavioral")},
        "divergence": places if what else None,
    }


PASSED = {
    "spec": {"result": "pass", "observed": ["construction"]},
    "numeric": {
        "result": "pass",
        "max_rel_err": 2e-15,
        "observed": ["eval output", "gradient of parameter (6)", "buffer after eval (4)"],
    },
    "behavioral": {"result": "pass", "max_rel_err": 1e-15, "observed": ["step 1 (2)", "after 3 steps (10)"]},
}
OWN = {"observed": [*PASSED["behavioral"]["observed"], "after 8 steps with the file's own optimizer: parameter (4)"]}


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (verdict("equivalent", **PASSED), "✓ checked: outputs, gradients, 3 training steps · worst error 2e-15 · CPU"),
        (
            verdict("equivalent", **{**PASSED, "behavioral": {**PASSED["behavioral"], **OWN}}),
            "✓ checked: outputs, gradients, 11 training steps · worst error 2e-15 · CPU",
        ),
        (verdict("equivalent", spec=PASSED["spec"]), "✓ checked: names and shapes · CPU"),
        (
            verdict("different", what="gradient of parameter: fc1.weight differs by 3e-2 in 4 of 9 elements: 1 and 2"),
            "≠ differs: gradient of fc1.weight · net_jax.py:12 · CPU",
        ),
        (
            verdict("different", what="in float32, eval output is float32 in torch and float16 in JAX"),
            "≠ differs: outputs in evaluation mode · net_jax.py:12 · CPU",
        ),
        (
            verdict("different", what="after 3 steps: parameter fc.bias differs by 2 in 1 of 1 elements: 1 and 3"),
            "≠ differs: fc.bias after 3 training steps · net_jax.py:12 · CPU",
        ),
        (
            verdict("unchecked", "no working inputs were found; write above it: # t2j: x=f32[2, 3]"),
            "? not checked: no inputs (tell them)",
        ),
    ],
)
def test_a_verdict_is_said_plainly(given: Json, line: str) -> None:
    assert verdict_line(given, "cpu") == line
    assert verdict_line(given, "cpu", stale=True) == f"{line} · edited since"


def test_a_file_says_what_its_verdict_covers() -> None:
    left_out = (Uncovered("main", "function", 9, 12),)
    coverage = Coverage({"equivalent": 2}, {}, left_out, gaps=(4, 30))
    line = "? 2 of 2 classes equivalent; 1 function not run; 2 places left as PyTorch"
    assert coverage_line("unchecked", coverage) == line
    assert coverage_line("unchecked", coverage, stale=True) == f"{line} · edited since"
    details = ["not run: main (lines 9-12)", "left as PyTorch in the conversion: line 4, 30"]
    assert coverage_details(coverage) == details


def test_a_line_is_named_with_its_file() -> None:
    left = verdict("unchecked", "the conversion is not complete: line 41: there is no rule for this")
    named = "? not checked: the conversion is not complete: net_jax.py:41: there is no rule for this"
    assert verdict_line(left, "cpu", converted="net_jax.py") == named


def test_no_word_is_cut() -> None:
    text = "the PyTorch code fails in float64: RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)"
    for longest in range(10, len(text)):
        short = clipped(text, longest)
        assert len(short) <= longest + 1 and short.endswith("…")
        assert text.startswith(short[:-1]) and not text[len(short) - 1].isalnum()
    assert clipped(text, len(text)) == text
