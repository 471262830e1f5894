"""Texts that do not parse, or have lines out of all measure: what is whole in them works, and the rest is said."""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Callable
from pathlib import Path

import pytest

from t2j_lsp.lsp.analysis.analyst import Analyst
from t2j_lsp.lsp.analysis.intact import MAX_NODES, intact
from t2j_lsp.lsp.analysis.model import Analysis, ConversionSettings
from t2j_lsp.translate import translate

from .client import Client, ServerError, applied, at, capabilities, span
from .programs import NET, line_of, place_of

SETTINGS = ConversionSettings()
HEAD = "import torch\n\n\ndef f(x: torch.Tensor):\n    x.register_hook(print)\n    return torch.relu(x)\n\n\n"
"""Seven lines that can be analysed."""
BROKEN = {
    "Net": NET.replace("F.gelu(self.fc(x))", "F.gelu(self.fc(x)"),
    "watch": NET.replace("def watch(x: torch.Tensor):", "def watch(x: torch.Tensor:"),
    "order": NET.replace("return torch.svd(x)", "return torch.svd(x"),
}


def analysed(text: str) -> Analysis:
    return Analyst().full("a", text, SETTINGS, None)


def said(analysis: Analysis) -> list[tuple[str, int]]:
    return [(f.code, f.span.line) for f in analysis.findings if f.code in ("syntax", "too-large")]


@pytest.mark.parametrize("name", list(BROKEN))
def test_what_parses_is_analysed_as_in_the_whole_file(name: str) -> None:
    whole, part = analysed(NET), analysed(BROKEN[name])
    assert part.broken and not whole.broken and len(said(part)) == 1
    first = next(d for d in whole.definitions if d.name == name)
    outside = [r for r in whole.rewrites if not first.line <= r.span.line <= first.end_line]
    assert [r for r in part.rewrites if not first.line <= r.span.line <= first.end_line] == outside
    names = {d.name.partition(".")[0] for d in part.definitions}
    assert names == {"Net", "watch", "order"} - ({name} if name != "Net" else set())


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("def f(:\n    pass\n\n\ndef g():\n    pass\n", [(1, 2)]),
        ("@d(\ndef f():\n    pass\n\n\n@d\ndef g():\n    pass\n", [(1, 3)]),
        ("x = (\n1,\n2,\n)\ny = = 3\n", [(5, 5)]),
        ('x = """\ndef f(:\n"""\ny = = 3\n', [(4, 4)]),
        ('def f():\n    return """x\n\n\ndef g():\n    pass\n', [(1, 2)]),
        ("if x:\n    y = 1\nelse:\n    y = = 2\nz = 3\n", [(1, 4)]),
        ("class A:\n    x = 1\n\n    def f(self):\n        (\n\n    def g(self):\n        pass\n", [(4, 5)]),
        ("class A(:\n    x = 1\n\n\nb = 2\n", [(1, 2)]),
        ("x = 1 \\\n  + = 2\ny = 3\n", [(1, 2)]),
        ("y = " + "(" * 2000 + "1" + ")" * 2000 + "\nz = 3\n", [(1, 1)]),
        ("\ufeffdef f(:\n    pass\r\n\r\nz = 3\r\n", [(1, 2)]),
    ],
)
def test_statements_that_do_not_parse_are_left_out_alone(text: str, lines: list[tuple[int, int]]) -> None:
    with pytest.raises(SyntaxError):
        intact(text, broken=False)
    made = intact(text, broken=True)
    assert [(one.first, one.last) for one in made.left] == lines
    assert len(made.text.splitlines()) == len(text.splitlines()) and made.tree.body or not made.text.strip("\ufeff\r\n")


def test_a_message_of_the_parser_counts_lines_as_the_file_does() -> None:
    made = intact("x = 1\n\n\ndef f():\n\n\ny = 2\n", broken=True)
    assert [(one.line, one.reason) for one in made.left] == [
        (4, "expected an indented block after function definition on line 4")
    ]


def test_after_a_good_text_a_broken_one_does_not_replace_its_analysis() -> None:
    analyst = Analyst()
    analyst.full("a", NET, SETTINGS, None)
    with pytest.raises(SyntaxError):
        analyst.quick("a", BROKEN["watch"], SETTINGS, None)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("y = [" + ", ".join(["torch.relu(x)"] * 20_000) + "]", "line 9 has 20,000 calls"),
        ("y = [" + ", ".join(["1.5"] * 200_000) + "]", "line 9 has 200,003 values"),
        ("; ".join(["y = torch.relu(x)"] * 5_000), "line 9 has 5,000 calls"),
        ("y = " + "-" * 2000 + "1", "nested more than 200 levels deep"),
        ("y = " + " + ".join(["x"] * 2000), "nested more than 200 levels deep"),
        ("y = x" + ".T" * 2000, "nested more than 200 levels deep"),
        ("y = " + "-" * 100_000 + "1", "nested too deeply"),
    ],
)
def test_a_line_out_of_measure_is_said_and_the_rest_is_analysed(line: str, reason: str) -> None:
    analyst = Analyst()
    text = f"{HEAD}{line}\n"
    full = analyst.full("a", text, SETTINGS, None)
    (result,) = [f for f in full.findings if f.code in ("syntax", "too-large")]
    assert (result.span.line, reason in result.reason) == (9, True)
    assert {f.code for f in full.findings} == {"refused", result.code}
    for number in range(2):
        quick = analyst.quick("a", text.replace("relu(x)\n", f"svd(x), {number}\n"), SETTINGS, None)
        assert quick is not None
        assert [f.code for f in quick.findings] == ["refused", "note", result.code]
    again = analyst.quick("a", HEAD, SETTINGS, None)
    assert again is not None and [f.code for f in again.findings] == ["refused"]


@pytest.mark.parametrize("line", ["y = '" + "a, (" * 300_000 + "'", "# " + "f(" * 500_000])
def test_a_long_line_with_little_on_it_is_analysed(line: str) -> None:
    assert said(analysed(f"{HEAD}{line}\n")) == []


@pytest.mark.parametrize("call", ["torch.relu(x)", "torch._foreach_erf(x)", "'ü', torch.relu(x)", "x.clamp(min=0)"])
def test_calls_on_one_line_cost_what_as_many_cost_elsewhere(call: str) -> None:
    """Twice as many calls take about twice the work: counted, not timed."""

    def work(number: int) -> int:
        profile = cProfile.Profile()
        profile.runcall(translate, f"{HEAD}y = [{', '.join([call] * number)}]\n")
        return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]

    work(10)
    assert work(400) / work(200) < 2.3


def test_the_limit_of_a_line_is_far_from_what_people_write() -> None:
    text = f"{HEAD}y = [{', '.join(['torch.relu(x)'] * (MAX_NODES // 10))}]\n"
    assert said(analysed(text)) == [] and analysed(text).converted > MAX_NODES // 10


# --- over a real server -----------------------------------------------------------------------------------------------


def test_a_file_opened_with_a_syntax_error_works_where_it_parses(start: Callable[..., Client], tmp_path: Path) -> None:
    client = start(capabilities(textDocument__diagnostic={}))
    path = tmp_path / "net.py"
    text = BROKEN["watch"]
    path.write_text(text)
    uri = path.as_uri()
    client.open(uri, text)
    items = client.request("textDocument/diagnostic", {"textDocument": {"uri": uri}})["items"]
    syntax, other = sorted(items, key=lambda d: d["code"], reverse=True)
    assert (syntax["code"], syntax["severity"], other["code"]) == ("t2j-syntax", 3, "t2j-note")
    assert syntax["range"]["start"]["line"] == line_of(text, "def watch")
    assert syntax["message"] == "lines 16 to 18 are not analysed: invalid syntax"
    line, column = place_of(text, "F.gelu")
    assert "jax.nn.gelu" in client.request("textDocument/hover", at(uri, line, column + 3))["contents"]["value"]
    offered = client.actions(uri, span(line, column + 3))
    action = next(a for a in offered if "class Net" in a["title"])
    edit = client.resolve(action)["edit"]
    new = applied(text, edit["documentChanges"][0]["edits"])
    assert "class Net(nnx.Module)" in new and "def watch(x: torch.Tensor:\n    x.register_hook(print)" in new
    whole = next(a for a in offered if a["kind"] == "source.convert.t2j")
    assert whole["disabled"]["reason"].startswith(f"line {line_of(text, 'def watch') + 1}: ")
    with pytest.raises(ServerError, match=r"net\.py, line 16: "):
        client.command("t2j.convertFile", uri)
    assert client.state(uri)["broken"]
    client.change(uri, 2, {"text": NET})
    items = client.request("textDocument/diagnostic", {"textDocument": {"uri": uri}})["items"]
    assert {d["code"] for d in items} == {"t2j-refused", "t2j-note"} and not client.state(uri)["broken"]


def test_a_class_with_a_broken_method_is_shown_and_not_converted(shared: Client, uri: str) -> None:
    head = "return y\n\n    def head(self, x):\n        return F.gelu(x)\n"
    text = BROKEN["Net"].replace("return torch.softmax(y, dim=-1)\n", head)
    shared.open(uri, text)
    shared.diagnostics(uri, 1)
    line, column = place_of(text, "F.gelu(x)")
    assert "jax.nn.gelu" in shared.hover(uri, line, column + 3)["contents"]["value"]
    action = next(a for a in shared.actions(uri, span(line, column + 3)) if "class Net" in a["title"])
    assert action["disabled"]["reason"].endswith("was never closed")
