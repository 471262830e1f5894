"""Hover over a real server: this call in JAX, at the right place in every encoding, also on edited and broken lines."""

from __future__ import annotations

import io
import json
import re
import tokenize
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

import pytest

from t2j_lsp.lsp.features.hover_text import AS_A_RULE
from t2j_lsp.translate import translate
from t2j_lsp.translate.output.outcomes import plain

from .client import Client, ServerError, at, capabilities, span
from .hover_styles import STYLES
from .programs import NET, line_of, place_of

HERE = Path(__file__).resolve().parents[1]


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
    noted, hook = place_of(NET, "torch.svd"), place_of(NET, "x.register_hook")
    assert "Signs (phases)" in text_of(shared.hover(uri, noted[0], noted[1] + 8))
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


# --- what a statement became ------------------------------------------------------------------------------------------

STEP = "\ndef train_step("
SPOTS = {
    "optimizer.zero_grad()": (STEP, "nothing to clear", "torch.optim.Optimizer.zero_grad.html"),
    "loss.backward()": (STEP, "nnx.value_and_grad(lambda model: ", "transforms.html#flax.nnx.value_and_grad"),
    "optimizer.step()": (STEP, "optimizer.update(model, grads)", "torch.optim.Optimizer.step.html"),
    "scheduler.step()": ("stays as it is", "`LRScheduler(optimizer: nnx.Optimizer", "lr_scheduler.LRScheduler.html"),
    "model.train()": ("stays as it is", "model.train()", "torch.nn.Module.html#torch.nn.Module.train"),
    "model.eval()": ("stays as it is", "model.eval()", "torch.nn.Module.html#torch.nn.Module.eval"),
    "self.apply(self.start)": (
        "nnx.iter_modules(self):",
        "self.start(module, rngs=rngs)",
        "module.html#flax.nnx.iter_mod",
    ),
    "@torch.no_grad()": ("goes", "def ", "torch.no_grad.html"),
    "@torch.jit.script": ("goes", "def fused(x: jax.Array):", "torch.jit.script.html"),
    # What stands in its place: what was in it, and in front of it the batch as arrays.
    "with torch.no_grad()": ("torch.no", "JAX takes gradients only of", "torch.no_grad.html"),
    "x[:, None]": ("x[:, None]", "clipped", "Common_Gotchas_in_JAX.html"),
    "x[mask] = 0": ("x = set_where(x, mask, 0)", "JAX arrays never change", "works under jit"),
    "x += 1": ("stays as it is", "x += 1", "JAX arrays never change"),
    "x.add_(x)": ("x = x + x", "exact", "torch.Tensor.add"),
    "torch.manual_seed(args.seed)": ("rngs", "torch.manual", "nnx.Rngs"),
}


@pytest.fixture(scope="module")
def styles(shared: Client) -> dict[str, str]:
    """The address of each style, analysed."""
    uris = {style: f"untitled:style_{style}.py" for style in STYLES}
    for style, uri in uris.items():
        shared.open(uri, STYLES[style])
        shared.state(uri, complete=True)
    return uris


def end_of(text: str, needle: str) -> tuple[int, int]:
    """A place on the last name of a text: on `step` in `optimizer.step()`."""
    line, column = place_of(text, needle)
    inside = needle.removeprefix("with ").partition("(")[0].rstrip(")")
    return line, column + needle.index(inside) + max(inside.rfind(".") + 1, 1)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("spot", SPOTS)
def test_a_hover_shows_what_the_statement_became(spot: str, style: str, shared: Client, styles: dict[str, str]) -> None:
    text = STYLES[style]
    shown = text_of(shared.hover(styles[style], *end_of(text, spot)))
    for expected in SPOTS[spot]:
        assert expected in shown, shown
    assert "As a rule" not in shown


def test_a_helper_is_shown_with_its_signature_and_why_the_stock_function_does_not_do(
    shared: Client, styles: dict[str, str]
) -> None:
    text = STYLES["script"]
    shown = text_of(shared.hover(styles["script"], *end_of(text, "F.interpolate(x")))
    assert "`interpolate(x: jax.Array, size: int | Sequence[int] | None = None," in shown
    assert "Resizes the axes after the first two" in shown and "jax.image.resize smooths where it shrinks" in shown


def test_axes_that_move_are_said(shared: Client, styles: dict[str, str]) -> None:
    text = STYLES["function"]
    assert "channels are last" in text_of(shared.hover(styles["function"], *end_of(text, "F.relu(self")))
    assert "(\\*spatial, in, out)" in text_of(shared.hover(styles["function"], *end_of(text, "nn.Conv2d(3")))
    assert "(in, out); PyTorch's weight is (out, in)" in text_of(
        shared.hover(styles["function"], *end_of(text, "nn.Linear(width"))
    )
    assert "Axes" not in text_of(shared.hover(styles["function"], *end_of(text, "torch.optim.SGD(")))


def test_gradients_that_are_added_up_are_shown_as_the_variable_they_live_in(shared: Client, uri: str) -> None:
    text = (HERE / "translate" / "scripts" / "accumulate.py").read_text()
    shared.open(uri, text)
    shared.state(uri, complete=True)
    cleared = text_of(shared.hover(uri, *end_of(text, "optimizer.zero_grad(")))
    assert "grads = zero_gradients(model)" in cleared and "in a variable of the loop" in cleared
    assert "nothing to clear" not in cleared
    stepped = text_of(shared.hover(uri, *end_of(text, "optimizer.step()")))
    assert "apply_gradients(model, optimizer, grads)" in stepped and "optax.MultiSteps" in stepped


def test_training_code_that_stays_says_so_and_why(shared: Client, uri: str) -> None:
    shared.open(uri, STYLES["function"].replace("optimizer.step()", "optimizer.step(lambda: loss)"))
    shared.state(uri)
    text = "\n".join(STYLES["function"].split("\n"))
    shown = text_of(shared.hover(uri, *end_of(text, "optimizer.zero_grad()")))
    assert "manual" in shown and "several times for one step" in shown and "```" not in shown


def test_a_hover_before_the_first_analysis_waits_for_it(start: Callable[..., Client]) -> None:
    client = start()
    client.hover("untitled:warm.py", 0, 0)
    client.open("untitled:warm.py", NET)
    client.state("untitled:warm.py")  # the analysis process is there
    client.open("untitled:b.py", NET)
    line, column = place_of(NET, "F.gelu")
    asked = client.start("textDocument/hover", at("untitled:b.py", line, column + 3))
    other = client.start("textDocument/hover", at("untitled:warm.py", line, column + 3))
    assert "jax.nn.gelu(self.fc(x), approximate=False)" in text_of(client.result(other))
    assert "jax.nn.gelu(self.fc(x), approximate=False)" in text_of(client.result(asked))


def test_a_waiting_hover_can_be_cancelled(start: Callable[..., Client]) -> None:
    client = start()
    client.open("untitled:b.py", NET)
    asked = client.start("textDocument/hover", at("untitled:b.py", *place_of(NET, "F.gelu")))
    client.notify("$/cancelRequest", {"id": asked})
    with pytest.raises(ServerError, match="cancelled"):
        client.result(asked)
    client.state("untitled:b.py")
    assert client.hover("untitled:b.py", *place_of(NET, "F.gelu")) is not None


# --- nothing is shown that the conversion does not write --------------------------------------------------------------

FILES = [*(HERE / "translate" / "scripts").glob("*.py"), *(HERE.parent / "examples").glob("*.py")]
PROGRAMS = {**{path.name: path.read_text() for path in sorted(FILES)}, **STYLES}


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_line_of_code_in_a_hover_stands_in_the_conversion(name: str, shared: Client) -> None:
    """On every token: the code of a hover is in the output, or said to be the rule's."""
    text, uri = PROGRAMS[name], f"untitled:tokens_{name}.py"
    shared.open(uri, text)
    shared.state(uri, complete=True)
    output = plain(translate(text).code)
    since = len(shared.messages)
    tokens = [t for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.string.strip()]
    asked = [shared.start("textDocument/hover", at(uri, t.start[0] - 1, t.start[1])) for t in tokens]
    shared.result(asked[-1])
    answers = {m["id"]: m.get("result") for m in shared.messages[since:] if "id" in m and "method" not in m}
    shown = [text_of(answers[identity]) for identity in asked if answers[identity] is not None]
    assert len(shown) > 20
    for hover in set(shown):
        for block in re.findall(r"^(`{3,})python\n(.*?)\n\1$", hover, re.DOTALL | re.MULTILINE):
            lines = [line for line in block[1].split("\n") if not line.startswith("# ...")]
            if AS_A_RULE not in hover:
                assert all(plain(line) in output for line in lines), hover
