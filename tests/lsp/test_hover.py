"""Hover over a real server: this call in JAX, at the right place in every encoding, also on edited and broken lines."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

import pytest

from .client import Client, capabilities, span
from .programs import NET, line_of, place_of


def text_of(hover: object) -> str:
    assert isinstance(hover, dict)
    return str(hover["contents"]["value"])


def test_a_call_is_shown_in_jax_with_links(shared: Client, uri: str) -> None:
    shared.open(uri, NET)
    shared.state(uri)
    line, column = place_of(NET, "F.gelu")
    hover = shared.hover(uri, line, column + 3)
    text = text_of(hover)
    assert "```python\njax.nn.gelu(self.fc(x), approximate=False)\n```" in text
    assert "exact" in text and "torch.nn.functional.gelu.html" in text and "jax.nn.gelu.html" in text
    assert hover["range"] == span(line, column, line, column + len("F.gelu(self.fc(x))"))


def test_a_caveat_and_a_refusal_are_said(shared: Client, uri: str) -> None:
    shared.open(uri, NET)
    shared.state(uri)
    median, hook = place_of(NET, "torch.median"), place_of(NET, "x.register_hook")
    assert "divides the gradient" in text_of(shared.hover(uri, median[0], median[1] + 8))
    refused = text_of(shared.hover(uri, hook[0], hook[1] + 4))
    assert "custom" in refused and "manual" in refused and "```" not in refused


def test_nothing_is_said_where_nothing_is_known(shared: Client, uri: str) -> None:
    shared.open(uri, NET)
    shared.state(uri)
    assert shared.hover(uri, line_of(NET, "class Net"), 7) is None
    assert shared.hover(uri, 999, 0) is None
    assert shared.hover("untitled:never opened", 0, 0) is None


def test_a_client_without_markdown_gets_plain_text(start: Callable[..., Client]) -> None:
    client = start(capabilities(textDocument__hover={"contentFormat": ["plaintext"]}))
    client.open("untitled:a.py", NET)
    client.state("untitled:a.py")
    line, column = place_of(NET, "F.gelu")
    hover = client.hover("untitled:a.py", line, column + 3)
    assert hover["contents"]["kind"] == "plaintext"
    assert "jax.nn.gelu(self.fc(x), approximate=False)" in hover["contents"]["value"]
    assert "`" not in hover["contents"]["value"] and "**" not in hover["contents"]["value"]


@pytest.mark.parametrize(
    ("encodings", "used"), [(["utf-8"], "utf-8"), (["utf-32", "utf-16"], "utf-32"), ([], "utf-16")]
)
def test_columns_are_those_of_the_client(encodings: list[str], used: str, start: Callable[..., Client]) -> None:
    client = start(capabilities(general={"positionEncodings": encodings}) if encodings else capabilities(general=None))
    source = "import torch\ns = '𝔘é字'; y = torch.zeros(2); z = torch.ones(3)\n"
    client.open("untitled:a.py", source)
    client.state("untitled:a.py")
    codec, width = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}[used]

    def character(needle: str) -> int:
        line = source.split("\n")[1]
        return len(line[: line.index(needle)].encode(codec)) // width

    for needle, form in (("torch.zeros(2)", "jnp.zeros(2)"), ("torch.ones(3)", "jnp.ones(3)")):
        at = character(needle)
        hover = client.hover("untitled:a.py", 1, at + 7)
        assert form in text_of(hover)
        assert hover["range"] == span(1, at, 1, at + len(needle))
    # An edit behind an astral character lands where the client meant it.
    at = character("torch.zeros(2)")
    client.change("untitled:a.py", 2, {"range": span(1, at + 6, 1, at + 11), "text": "full"})
    client.change("untitled:a.py", 3, {"range": span(1, at + 12, 1, at + 12), "text": ", 7."})
    client.state("untitled:a.py")
    assert "jnp.full(2, 7.)" in text_of(client.hover("untitled:a.py", 1, at + 7))


def test_an_edited_line_shows_the_rule_until_it_is_analysed(shared: Client, uri: str) -> None:
    shared.open(uri, NET)
    shared.state(uri)
    line, column = place_of(NET, "torch.softmax")
    shared.change(uri, 2, {"range": span(line, column, line, column + 13), "text": "torch.flatten(("})
    # The text is broken now: nothing can be analysed, and the name is still known.
    assert "reshape" in text_of(shared.hover(uri, line, column + 8))
    gelu = place_of(NET, "F.gelu")
    assert "jax.nn.gelu(self.fc(x), approximate=False)" in text_of(shared.hover(uri, gelu[0], gelu[1] + 3))
    shared.change(uri, 3, {"range": span(0, 0), "text": "# one\n# two\n"})
    assert "jax.nn.gelu(self.fc(x), approximate=False)" in text_of(shared.hover(uri, gelu[0] + 2, gelu[1] + 3))


def test_code_in_a_hover_cant_end_its_block_or_give_orders(shared: Client, uri: str) -> None:
    source = 'import torch\nx = torch.full((2,), len("```\\n[run](command:evil)"))\n'
    shared.open(uri, source)
    shared.state(uri)
    text = text_of(shared.hover(uri, 1, 8))
    assert text.count("````") == 2 and text.index("````python") < text.index("command:evil") < text.rindex("````")


@pytest.mark.parametrize("break_", ["\r\n", "\r", "\n"])
def test_every_line_end_counts_and_no_other(break_: str, shared: Client, uri: str) -> None:
    source = f"import torch{break_}s = 'a\f\u2028\x85'{break_}y = torch.zeros(2){break_}"
    shared.open(uri, source)
    shared.state(uri)
    assert "jnp.zeros(2)" in text_of(shared.hover(uri, 2, 8))


def test_links_to_commands_run_what_the_hover_shows(start: Callable[..., Client], tmp_path: Path) -> None:
    client = start(options={"commandLinks": True})
    uri = (tmp_path / "net.py").as_uri()
    client.open(uri, NET)
    client.state(uri)
    line, column = place_of(NET, "F.gelu")
    links = dict(re.findall(r"\[([^]]*)\]\(command:([^)]*)\)", text_of(client.hover(uri, line, column + 3))))
    command, _, arguments = links["Convert here"].partition("?")
    client.command(command, *json.loads(unquote(arguments)))
    edit = client.wait(lambda m: m.get("method") == "workspace/applyEdit")["params"]["edit"]
    assert "jax.nn.gelu(self.fc(x), approximate=False)" in json.dumps(edit)
    command, _, arguments = links["rule"].partition("?")
    assert (command, json.loads(unquote(arguments))) == ("t2j.explainName", ["torch.nn.functional.gelu"])


def test_a_name_from_a_repository_makes_no_link(start: Callable[..., Client], tmp_path: Path) -> None:
    client = start(options={"commandLinks": True})
    uri = (tmp_path / "net.py").as_uri()
    client.open(uri, 'import torch\n\ny = torch.abs("](command:evil)", x)\n')
    client.state(uri)
    text = text_of(client.hover(uri, 2, 8))
    assert "command:evil" not in re.sub(r"```.*?```", "", text, flags=re.S)
