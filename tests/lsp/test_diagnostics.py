"""Diagnostics over a real server: pushed or pulled and never both, with versions, pages and the right places."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest

from .client import Client, Json, capabilities, span
from .programs import LOOP, NET, place_of

PULL = capabilities(
    textDocument__diagnostic={"dynamicRegistration": False}, workspace__diagnostics={"refreshSupport": True}
)


def pull(client: Client, uri: str) -> list[Json]:
    report = client.request("textDocument/diagnostic", {"textDocument": {"uri": uri}})
    assert report["kind"] == "full"
    return report["items"]  # type: ignore[no-any-return]


def test_gaps_and_caveats_are_pushed_with_their_version_code_and_page(shared: Client, uri: str) -> None:
    shared.open(uri, NET, version=7)
    result = {d["code"]: d for d in shared.diagnostics(uri, 7)}
    assert set(result) == {"t2j-refused", "t2j-note"}
    line, column = place_of(NET, "x.register_hook(print)")
    assert result["t2j-refused"]["range"] == span(line, column, line, column + 22)
    assert (result["t2j-refused"]["severity"], result["t2j-note"]["severity"]) == (2, 3)
    assert "custom_vjp" in result["t2j-refused"]["message"]
    assert result["t2j-refused"]["codeDescription"]["href"].endswith("docs/findings.md#t2j-refused")


def test_an_edit_gives_diagnostics_of_its_version_and_a_close_takes_them_away(shared: Client, uri: str) -> None:
    shared.open(uri, NET)
    shared.diagnostics(uri, 1)
    line, _ = place_of(NET, "    x.register_hook(print)")
    since = shared.now
    shared.change(uri, 2, {"range": span(line, 0, line + 1, 0), "text": ""})
    assert [d["code"] for d in shared.diagnostics(uri, 2, since)] == ["t2j-note"]
    since = shared.now
    shared.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    assert shared.diagnostics(uri, since=since) == []


def test_while_a_text_is_broken_diagnostics_stay_at_their_lines(lent: Callable[..., Client], uri: str) -> None:
    client = lent(PULL)
    client.open(uri, NET)
    before = pull(client, uri)
    client.change(uri, 2, {"range": span(3, 0), "text": "def broken(:\n"})
    after = pull(client, uri)
    assert [d["message"] for d in after] == [d["message"] for d in before]
    assert [d["range"]["start"]["line"] for d in after] == [d["range"]["start"]["line"] + 1 for d in before]


def test_a_client_that_pulls_is_pushed_nothing(lent: Callable[..., Client], uri: str) -> None:
    client = lent(PULL)
    client.open(uri, NET)
    assert {d["code"] for d in pull(client, uri)} == {"t2j-refused", "t2j-note"}
    client.change(uri, 2, {"text": NET.replace("    x.register_hook(print)\n", "")})
    assert {d["code"] for d in pull(client, uri)} == {"t2j-note"}
    client.state(uri, complete=True)
    assert not [m for m in client.messages if m.get("method") == "textDocument/publishDiagnostics"]


def test_a_client_that_was_told_less_is_asked_to_pull_again(lent: Callable[..., Client], uri: str) -> None:
    client = lent(PULL)
    # What `x` is, the caller alone tells: the function is edited, and analysed without its caller first.
    source = "import torch\n\n\ndef f(x):\n    return x.max(1)\n\n\ndef g():\n    return f(torch.zeros(2, 3))\n"
    client.open(uri, source)
    client.state(uri, complete=True)
    since = client.now
    client.change(uri, 2, {"range": span(4, 19), "text": ".foo()"})
    partial = pull(client, uri)
    client.state(uri, complete=True)
    complete = pull(client, uri)
    if partial != complete:
        client.wait(lambda m: m.get("method") == "workspace/diagnostic/refresh", since=since)


def test_training_code_that_stays_is_marked_on_its_first_line(shared: Client, uri: str) -> None:
    shared.open(uri, LOOP)
    result = [d for d in shared.diagnostics(uri, 1) if d["code"] == "t2j-training-loop"]
    assert result and result[0]["range"]["start"]["line"] == result[0]["range"]["end"]["line"] == 5


def test_typing_a_file_gives_what_opening_it_gives(lent: Callable[..., Client]) -> None:
    client = lent(PULL)
    typed, fresh = "untitled:typed.py", "untitled:fresh.py"
    client.open(typed, "")
    line = column = broken = 0
    for number, char in enumerate(NET, 2):
        client.change(typed, number, {"range": span(line, column), "text": char})
        line, column = (line + 1, 0) if char == "\n" else (line, column + 1)
        if number % 25 == 0:
            text = NET[: number - 1]
            for item in pull(client, typed):
                # Wherever it is said to be, there is torch code.
                where = item["range"]["start"]
                shown = text.split("\n")[where["line"]][where["character"] :]
                assert shown.startswith(("x.", "torch.", "nn.", "F.")), (shown, item["message"])
            client.hover(typed, line, max(0, column - 1))
            try:
                ast.parse(text)
            except SyntaxError:
                broken += 1
    assert broken >= 5
    client.open(fresh, NET)
    for uri in (typed, fresh):
        client.state(uri, complete=True)
    assert pull(client, typed) == pull(client, fresh)
    state = [{k: v for k, v in client.state(u).items() if k not in ("uri", "version")} for u in (typed, fresh)]
    assert state[0] == state[1]


def test_a_kept_data_pipeline_is_a_hint(shared: Client, uri: str) -> None:
    text = (
        "import torch\nfrom torch.utils.data import DataLoader, TensorDataset\n\n"
        "data = TensorDataset(torch.zeros(8, 2))\nloader = DataLoader(data, batch_size=4)\n"
        "for (x,) in loader:\n    print(torch.relu(x))\n"
    )
    shared.open(uri, text)
    result = shared.diagnostics(uri, 1)
    assert {(d["code"], d["severity"]) for d in result} == {("t2j-kept", 4)}
    assert 4 in {d["range"]["start"]["line"] for d in result}


@pytest.mark.parametrize(
    ("line", "codes"),
    [
        ("y = [u.sign_() for u in x.split(2)]", ["t2j-in-place"]),
        ('torch.onnx.export(x.register_hook(print), "x.pt")', ["t2j-refused"]),
        ("y = torch._foreach_erf([torch._foreach_lgamma([x])])", ["t2j-no-rule", "t2j-no-rule"]),
    ],
)
def test_one_place_is_reported_once(line: str, codes: list[str], shared: Client, uri: str) -> None:
    shared.open(uri, f"import torch\n\n\ndef f(x: torch.Tensor):\n    {line}\n")
    assert [d["code"] for d in shared.diagnostics(uri, 1)] == codes


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("torch._foreach_erf([torch.zeros(2)])", "t2j has no rule for torch._foreach_erf"),
        ("print(torch)", "the module torch itself is used as a value"),
        ("f(1).softmax(0)", "'f(1)' is taken for a tensor, because only tensors have .softmax()"),
    ],
)
def test_a_message_names_what_it_is_about_once(line: str, message: str, shared: Client, uri: str) -> None:
    shared.open(uri, f"import torch\nfrom elsewhere import f\n\ny = {line}\n")
    assert [d["message"] for d in shared.diagnostics(uri, 1)] == [message]


@pytest.mark.parametrize("code", ["t2j-note", "note", "close"])
def test_codes_are_ignored_with_their_prefix_without_it_and_by_their_former_name(
    code: str, shared: Client, uri: str
) -> None:
    shared.open(uri, NET.replace("return torch.svd(x)", f"return torch.svd(x)  # t2j: ignore[{code}]"))
    assert [d["code"] for d in shared.diagnostics(uri, 1)] == ["t2j-refused"]


@pytest.mark.parametrize("pulls", [False, True])
def test_a_gap_is_a_problem_of_the_conversion_while_that_is_open(
    pulls: bool, start: Callable[..., Client], tmp_path: Path
) -> None:
    client = start(PULL if pulls else None)
    source, converted = (tmp_path / "net.py").as_uri(), (tmp_path / "net_jax.py").as_uri()
    (tmp_path / "net.py").write_text(NET)

    def gaps(uri: str, since: int) -> list[tuple[str, int]]:
        result = pull(client, uri) if pulls else client.diagnostics(uri, since=since)
        return [(d["code"], d["severity"]) for d in result if d["code"] in ("t2j-refused", "t2j-todo")]

    client.open(source, NET)
    assert gaps(source, 0) == [("t2j-refused", 2)]
    code = client.command("t2j.previewFile", source)["code"]
    since = client.now
    client.open(converted, code)
    if pulls:
        client.wait(lambda m: m.get("method") == "workspace/diagnostic/refresh", since=since)
    assert gaps(source, since) == [("t2j-refused", 4)]
    assert gaps(converted, since) == [("t2j-todo", 2)]
    mended = [line for line in code.split("\n") if "register_hook" not in line and "TODO" not in line]
    since = client.now
    client.change(converted, 2, {"text": "\n".join(mended)})
    assert gaps(converted, since) == []
    since = client.now
    client.notify("textDocument/didClose", {"textDocument": {"uri": converted}})
    if pulls:
        client.wait(lambda m: m.get("method") == "workspace/diagnostic/refresh", since=since)
    assert gaps(source, since) == [("t2j-refused", 2)]
