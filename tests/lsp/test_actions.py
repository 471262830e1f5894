"""Code actions over a real server: what is offered where, and what the text is afterwards."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest

from .client import Client, Json, ServerError, applied, capabilities, span
from .programs import LOOP, NET, line_of, place_of


def opened(client: Client, uri: str, text: str = NET) -> None:
    client.open(uri, text)
    client.state(uri)


def titled(actions: list[Json], start: str, kind: str = "refactor.rewrite.t2j") -> Json:
    result = [a for a in actions if a["title"].startswith(start) and a["kind"] == kind]
    assert result, [a["title"] for a in actions]
    return result[0]


def changed(text: str, uri: str, edit: Json) -> str:
    """A text after a versioned edit of it alone."""
    (change,) = edit["documentChanges"]
    assert change["textDocument"]["uri"] == uri
    return applied(text, change["edits"])


def test_an_expression_a_function_and_a_class_are_offered_and_resolved(shared: Client, uri: str) -> None:
    opened(shared, uri)
    line, column = place_of(NET, "F.gelu")
    offered = shared.actions(uri, span(line, column + 2))
    assert all("edit" not in a for a in offered)
    alone = changed(NET, uri, shared.resolve(titled(offered, "Rewrite torch.nn.functional.gelu"))["edit"])
    assert "y = jax.nn.gelu(self.fc(x), approximate=False)" in alone and "class Net(nn.Module)" in alone
    method = changed(NET, uri, shared.resolve(titled(offered, "Rewrite function Net.forward"))["edit"])
    assert "def __call__(self, x):" in method and "jax.nn.softmax(y, axis=-1)" in method
    whole = changed(NET, uri, shared.resolve(titled(offered, "Rewrite class Net"))["edit"])
    assert "class Net(nnx.Module):" in whole and "x.register_hook(print)" in whole
    for text in (alone, method, whole):
        compile(text, uri, "exec")


def test_an_edit_has_the_version_it_was_made_for(shared: Client, uri: str) -> None:
    shared.open(uri, NET, version=41)
    shared.state(uri)
    line, column = place_of(NET, "torch.softmax")
    action = shared.resolve(titled(shared.actions(uri, span(line, column)), "Rewrite torch.softmax"))
    assert action["edit"]["documentChanges"][0]["textDocument"]["version"] == 41


def test_an_action_offered_for_an_older_text_is_refused(shared: Client, uri: str) -> None:
    opened(shared, uri)
    line, column = place_of(NET, "torch.softmax")
    action = titled(shared.actions(uri, span(line, column)), "Rewrite torch.softmax")
    shared.change(uri, 2, {"range": span(0, 0), "text": "\n"})
    with pytest.raises(ServerError, match="edited"):
        shared.resolve(action)


def test_an_edit_made_while_an_action_is_resolved_wins(shared: Client, uri: str) -> None:
    opened(shared, uri)
    line, column = place_of(NET, "torch.softmax")
    action = titled(shared.actions(uri, span(line, column)), "Rewrite class Net")
    request = shared.start("codeAction/resolve", action)
    shared.change(uri, 2, {"range": span(0, 0), "text": "\n"})
    with pytest.raises(ServerError, match="edited"):
        shared.result(request)


def test_what_is_not_exact_is_annotated_and_asks(shared: Client, uri: str) -> None:
    opened(shared, uri)
    line, column = place_of(NET, "torch.svd")
    diagnostics = [d for d in shared.diagnostics(uri) if d["code"] == "t2j-note"]
    offered = shared.actions(uri, span(line, column), diagnostics=diagnostics)
    fix = shared.resolve(titled(offered, "Rewrite torch.svd", "quickfix"))
    assert fix["diagnostics"] == diagnostics and fix["isPreferred"]
    (annotation,) = fix["edit"]["changeAnnotations"].values()
    assert annotation["needsConfirmation"] and "Signs (phases)" in annotation["description"]
    edits = fix["edit"]["documentChanges"][0]["edits"]
    assert all(e["annotationId"] in fix["edit"]["changeAnnotations"] for e in edits)
    assert "return svd_with_v(x)" in changed(NET, uri, fix["edit"])


def test_what_is_refused_is_disabled_with_the_reason_or_left_out(shared: Client, start: Callable[..., Client]) -> None:
    line, column = place_of(NET, "x.register_hook")
    opened(shared, "untitled:refused.py")
    offered = shared.actions("untitled:refused.py", span(line, column + 3))
    assert "custom_vjp" in titled(offered, "Rewrite torch.Tensor.register_hook")["disabled"]["reason"]
    assert "custom_vjp" in titled(offered, "Rewrite torch.Tensor.register_hook", "quickfix")["disabled"]["reason"]
    other = start(capabilities(textDocument__codeAction__disabledSupport=None))
    opened(other, "untitled:a.py")
    left = other.actions("untitled:a.py", span(line, column + 3))
    assert left and not any("disabled" in a for a in left)


def test_a_loop_that_cant_be_converted_says_why(shared: Client, uri: str) -> None:
    opened(shared, uri, LOOP)
    offered = shared.actions(uri, span(line_of(LOOP, "loss.backward"), 6))
    assert "register_hook" in titled(offered, "Rewrite this loop")["disabled"]["reason"]


def test_a_loop_is_converted(shared: Client, uri: str) -> None:
    text = LOOP.replace("    loss.register_hook(print)\n", "")
    opened(shared, uri, text)
    action = titled(shared.actions(uri, span(line_of(text, "loss.backward"), 6)), "Rewrite this loop")
    edit = shared.resolve(action)["edit"]
    new = applied(text, edit["documentChanges"][0]["edits"])
    ast.parse(new)
    assert "loss.backward()" not in new and "nnx.value_and_grad" in new
    described = next(iter(edit["changeAnnotations"].values()))["description"]
    assert "optimizer, which is still PyTorch" in described


def test_a_selection_of_statements_is_converted(shared: Client, uri: str) -> None:
    opened(shared, uri)
    first = line_of(NET, "y = F.gelu")
    offered = shared.actions(uri, span(first, 0, first + 2, 0))
    new = changed(NET, uri, shared.resolve(titled(offered, "Rewrite selection"))["edit"])
    assert "jax.nn.gelu" in new and "jax.nn.softmax" in new and "def forward" in new
    assert not [a for a in shared.actions(uri, span(first, 4)) if a["title"].startswith("Rewrite selection")]


def test_a_layer_alone_needs_its_class(shared: Client, uri: str) -> None:
    opened(shared, uri)
    line, column = place_of(NET, "nn.Linear")
    assert "rngs" in titled(shared.actions(uri, span(line, column)), "Rewrite torch.nn.Linear")["disabled"]["reason"]


def test_all_that_is_exact_is_converted_at_once(shared: Client, uri: str) -> None:
    opened(shared, uri)
    (action,) = shared.actions(uri, span(0, 0), only=["source.fixAll"])
    new = changed(NET, uri, shared.resolve(action)["edit"])
    assert "class Net(nnx.Module)" in new
    assert "def watch(x: torch.Tensor)" in new and "return torch.svd(x)" in new


@pytest.mark.parametrize(
    ("only", "kinds"),
    [
        (["quickfix"], {"quickfix"}),
        (["refactor"], {"refactor.rewrite.t2j"}),
        (["refactor.rewrite.t2j"], {"refactor.rewrite.t2j"}),
        (["source"], {"source.convert.t2j", "source.fixAll.t2j"}),
        (["source.fixAll.t2j"], {"source.fixAll.t2j"}),
        (["refactor.extract"], set()),
    ],
)
def test_only_the_kinds_that_are_asked_for_come(only: list[str], kinds: set[str], shared: Client, uri: str) -> None:
    opened(shared, uri)
    line, column = place_of(NET, "torch.svd")
    assert {a["kind"] for a in shared.actions(uri, span(line, column), only=only)} == kinds


def test_a_finding_is_ignored_by_a_comment(shared: Client, uri: str) -> None:
    opened(shared, uri)
    line, column = place_of(NET, "x.register_hook")
    fix = titled(shared.actions(uri, span(line, column)), "Ignore t2j-refused", "quickfix")
    new = changed(NET, uri, fix["edit"])
    assert "x.register_hook(print)  # t2j: ignore[t2j-refused]\n" in new
    shared.change(uri, 2, {"text": new})
    assert [d["code"] for d in shared.diagnostics(uri, 2)] == ["t2j-note"]


def test_a_client_that_cant_resolve_gets_edits_at_once(start: Callable[..., Client], tmp_path: Path) -> None:
    client = start(capabilities(textDocument__codeAction__resolveSupport=None, workspace__workspaceEdit={}))
    uri = (tmp_path / "net.py").as_uri()
    opened(client, uri)
    line, column = place_of(NET, "F.gelu")
    offered = client.actions(uri, span(line, column + 2))
    edit = titled(offered, "Rewrite torch.nn.functional.gelu")["edit"]
    assert "jax.nn.gelu" in applied(NET, edit["changes"][uri])
    file = titled(offered, "Convert file", "source.convert.t2j")
    assert file["command"]["command"] == "t2j.convertFile"


def test_a_client_without_action_literals_gets_commands(start: Callable[..., Client]) -> None:
    client = start(capabilities(textDocument__codeAction={}))
    opened(client, "untitled:a.py")
    line, column = place_of(NET, "F.gelu")
    offered = client.actions("untitled:a.py", span(line, column + 2))
    command = next(c for c in offered if c["title"].startswith("Rewrite torch.nn.functional.gelu"))
    edits: list[Json] = []
    client.answers["workspace/applyEdit"] = lambda params: edits.append(params["edit"]) or {"applied": True}
    assert client.command(command["command"], *command["arguments"]) == {"applied": True}
    assert "jax.nn.gelu" in changed(NET, "untitled:a.py", edits[0])


# --- the file ---------------------------------------------------------------------------------------------------------


def test_a_file_becomes_a_new_file_beside_it(shared: Client, tmp_path: Path) -> None:
    uri = (tmp_path / "a net.py").as_uri()
    opened(shared, uri)
    (action,) = shared.actions(uri, span(0, 0), only=["source.convert.t2j"])
    assert action["title"] == "Convert file to JAX (new file a net_jax.py)"
    create, insert = shared.resolve(action)["edit"]["documentChanges"]
    assert create["kind"] == "create" and create["uri"] == (tmp_path / "a net_jax.py").as_uri()
    code = insert["edits"][0]["newText"]
    compile(code, "net", "exec")
    assert "class Net(nnx.Module)" in code and "# TODO(t2j)" in code


def test_a_file_of_the_user_where_the_conversion_goes_is_not_replaced(shared: Client, tmp_path: Path) -> None:
    uri, target = (tmp_path / "net.py").as_uri(), tmp_path / "net_jax.py"
    opened(shared, uri)
    target.write_text("mine\n")
    (refused,) = shared.actions(uri, span(0, 0), only=["source.convert.t2j"])
    assert "exists and t2j does not know it" in refused["disabled"]["reason"]
    for command in ("t2j.convertFile", "t2j.previewFile"):
        with pytest.raises(ServerError, match="exists and t2j does not know it"):
            shared.command(command, uri)
    assert target.read_text() == "mine\n"


def test_the_server_writes_the_file_for_a_client_that_cant(start: Callable[..., Client], tmp_path: Path) -> None:
    client = start(capabilities(workspace__workspaceEdit={"documentChanges": True}))
    uri = (tmp_path / "net.py").as_uri()
    opened(client, uri)
    result = client.command("t2j.convertFile", uri)
    assert result["applied"] and result["gaps"] == 1
    assert "class Net(nnx.Module)" in (tmp_path / "net_jax.py").read_text()
    client.wait(lambda m: m.get("method") == "window/showDocument")


def test_an_untitled_buffer_is_converted_in_place(shared: Client, uri: str) -> None:
    opened(shared, uri)
    (action,) = shared.actions(uri, span(0, 0), only=["source.convert.t2j"])
    assert action["title"] == "Rewrite this buffer in place as JAX…"
    command = shared.resolve(action)["command"]
    assert "class Net(nnx.Module)" in rewritten(shared, NET, uri, command, "Rewrite")


def test_a_file_without_torch_is_offered_nothing(shared: Client, uri: str) -> None:
    opened(shared, uri, "import numpy as np\n\n\ndef f(x):\n    return np.sum(x)\n")
    assert shared.actions(uri, span(4, 12)) == []
    assert shared.request("textDocument/codeLens", {"textDocument": {"uri": uri}}) == []


# --- rewriting in place -----------------------------------------------------------------------------------------------

MESSAGE = "window/showMessageRequest"


def rewritten(client: Client, text: str, uri: str, command: Json, said: str | None) -> str:
    """The text after a command that asks by a message, to which the user says this."""
    edits: list[Json] = []
    client.answers["workspace/applyEdit"] = lambda params: edits.append(params["edit"]) or {"applied": True}
    client.answers[MESSAGE] = lambda params: {"title": said} if said else None
    answer = client.command(command["command"], *command["arguments"])
    assert answer["applied"] is bool(edits)
    return changed(text, uri, edits[0]) if edits else text


def test_names_tell_what_makes_a_new_file_and_what_rewrites_this_one(shared: Client, tmp_path: Path) -> None:
    uri = (tmp_path / "net.py").as_uri()
    opened(shared, uri)
    line, column = place_of(NET, "F.gelu")
    offered = shared.actions(uri, {**span(line, column, line + 2, 0)})
    rewriting = {a["title"] for a in offered if not a["kind"].startswith("source.convert")}
    assert rewriting == {
        "Rewrite torch.nn.functional.gelu in place as JAX",
        "Rewrite class Net in place as JAX…",
        "Rewrite function Net.forward in place as JAX…",
        "Rewrite selection in place as JAX…",
        "Rewrite all that is exact in place as JAX…",
    }
    (file,) = shared.actions(uri, span(0, 0), only=["source.convert.t2j"])
    assert file["title"] == "Convert file to JAX (new file net_jax.py)"


def test_an_edit_in_place_asks_where_the_client_can_annotate(shared: Client, tmp_path: Path) -> None:
    uri = (tmp_path / "net.py").as_uri()
    opened(shared, uri)
    offered = shared.actions(uri, span(line_of(NET, "y = F.gelu"), 6))
    edit = shared.resolve(titled(offered, "Rewrite function Net.forward"))["edit"]
    (annotation,) = edit["changeAnnotations"].values()
    assert annotation["needsConfirmation"] and "Rewrite function Net.forward of net.py" in annotation["description"]
    assert all(e["annotationId"] for e in edit["documentChanges"][0]["edits"])
    line, column = place_of(NET, "F.gelu")
    alone = titled(shared.actions(uri, span(line, column + 2)), "Rewrite torch.nn.functional.gelu")
    assert "changeAnnotations" not in shared.resolve(alone)["edit"]


@pytest.mark.parametrize("said", ["Rewrite", "Cancel", None])
def test_a_client_without_annotations_is_asked_by_a_message(
    start: Callable[..., Client], tmp_path: Path, said: str | None
) -> None:
    client = start(capabilities(workspace__workspaceEdit={"documentChanges": True}))
    uri = (tmp_path / "net.py").as_uri()
    opened(client, uri)
    offered = client.actions(uri, span(line_of(NET, "y = F.gelu"), 6))
    action = client.resolve(titled(offered, "Rewrite class Net"))
    assert "edit" not in action
    text = rewritten(client, NET, uri, action["command"], said)
    assert ("class Net(nnx.Module)" in text) is (said == "Rewrite")
    asked = client.wait(lambda m: m.get("method") == MESSAGE)["params"]
    assert asked["message"].startswith("Rewrite class Net of net.py in place as JAX?\nThis changes net.py itself")
    assert "net_jax.py instead" in asked["message"]


def test_a_client_that_asks_itself_gets_the_question_and_confirms(start: Callable[..., Client], tmp_path: Path) -> None:
    client = start(options={"asksBeforeRewriting": True})
    uri = (tmp_path / "net.py").as_uri()
    opened(client, uri)
    edits: list[Json] = []
    client.answers["workspace/applyEdit"] = lambda params: edits.append(params["edit"]) or {"applied": True}
    offered = client.actions(uri, span(line_of(NET, "return torch.svd"), 6))
    command = titled(offered, "Rewrite function order")["command"]
    answer = client.command(command["command"], *command["arguments"])
    question = answer["question"]
    assert answer["applied"] is False and not edits
    assert question["text"] == "Rewrite function order of net.py in place as JAX?"
    assert "Signs (phases)" in question["detail"]
    other, scope, _, revision = command["arguments"]
    assert client.command("t2j.convert", other, scope, True, revision) == {"applied": True}
    # The user saw what differs, and is not asked a second time.
    assert "changeAnnotations" not in edits[0] and "svd_with_v(x)" in changed(NET, uri, edits[0])
    client.change(uri, 2, {"range": span(0, 0), "text": "\n"})
    with pytest.raises(ServerError, match="edited since"):
        client.command("t2j.convert", other, scope, True, revision)


def test_what_is_exact_is_rewritten_on_save_without_a_question(shared: Client, uri: str) -> None:
    opened(shared, uri)
    context = {"diagnostics": [], "only": ["source.fixAll"], "triggerKind": 2}
    params = {"textDocument": {"uri": uri}, "range": span(0, 0), "context": context}
    (action,) = shared.request("textDocument/codeAction", params)
    assert action["title"] == "Rewrite all that is exact in place as JAX"
    assert "changeAnnotations" not in shared.resolve(action)["edit"]
