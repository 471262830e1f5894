"""``t2j.explainDifference`` over a real server with real workers: the values, what may not run, and cancelling."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .client import Client, ServerError, span
from .pairs import SOURCE, TIMEOUT, Pair
from .programs import line_of

SLOW = """import torch


# t2j: x=f32[2, 3]
def slow(x: torch.Tensor):
    for _ in range(10**9):
        x = torch.sin(x)
    return x


def scale(x: torch.Tensor):
    return x * 3
"""


@pytest.fixture(scope="module")
def trusted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with Client(log=tmp_path_factory.mktemp("explain") / "log") as client:
        # Nothing is checked but what is asked for.
        client.settings = {"check": {"enable": False}}
        client.initialize(None, None, {"trusted": True, "panels": True, "settings": client.settings})
        yield client


def test_nothing_is_compared_in_a_workspace_that_is_not_trusted(shared: Client, tmp_path: Path) -> None:
    pair = Pair(shared, tmp_path)
    with pytest.raises(ServerError, match="not trusted"):
        shared.command("t2j.explainDifference", pair.uri, "Net")


def test_the_values_of_both_sides_with_the_first_that_parts(trusted: Client, tmp_path: Path) -> None:
    pair = Pair(trusted, tmp_path)
    trusted.state(pair.uri)
    pair.convert()
    pair.replace(", approximate=False", "")
    with pytest.raises(ServerError, match="no difference is known"):
        trusted.command("t2j.explainDifference", pair.uri)
    since = trusted.now
    result = trusted.command("t2j.explainDifference", pair.converted, "Net", timeout=TIMEOUT)
    assert (result["name"], result["verdict"], result["device"]) == ("Net", "different", "cpu")
    assert (result["torch"]["uri"], result["jax"]["uri"]) == (pair.uri, pair.converted)
    first = result["steps"][result["first"]]
    assert first["target"] == "y" and not first["agree"] and first["max_rel_err"] > 0
    assert (first["torch"]["uri"], first["torch"]["line"]) == (pair.uri, line_of(SOURCE, "F.gelu"))
    assert (first["jax"]["uri"], first["jax"]["line"]) == (pair.converted, line_of(pair.code, "jax.nn.gelu"))
    assert first["torch"]["text"] == "y = F.gelu(self.fc(x))" and first["jax"]["text"] == "y = jax.nn.gelu(self.fc(x))"
    assert {"shape", "dtype", "min", "max", "mean", "std", "values"} <= set(first["torch"])
    histogram = first["histogram"]
    assert len(histogram["edges"]) == len(histogram["torch"]) + 1 == len(histogram["jax"]) + 1
    assert all(step["agree"] for step in result["steps"][: result["first"]])
    assert "y = F.gelu(self.fc(x))" in result["text"] and result["what"] in result["text"]
    titles = [
        m["params"]["value"]["title"]
        for m in trusted.messages[since:]
        if m.get("method") == "$/progress" and m["params"]["value"]["kind"] == "begin"
    ]
    assert titles == ["Comparing the values of Net"]
    # Without a name, the first object that is known to differ.
    assert trusted.command("t2j.explainDifference", pair.uri, timeout=TIMEOUT)["name"] == "Net"


def test_of_what_agrees_every_step_agrees_and_a_conversion_need_not_be_a_file(trusted: Client, tmp_path: Path) -> None:
    pair = Pair(trusted, tmp_path)
    result = trusted.command("t2j.explainDifference", pair.uri, "scale", timeout=TIMEOUT)
    assert (result["verdict"], result["first"], result["cause"], result["jax"]["uri"]) == (
        "equivalent",
        None,
        None,
        None,
    )
    assert result["steps"] and all(step["agree"] for step in result["steps"])
    (step,) = [s for s in result["steps"] if s["target"] == "return"]
    assert step["torch"]["uri"] == pair.uri and step["jax"]["uri"] is None and step["jax"]["text"]


def test_what_can_not_be_compared_says_why(trusted: Client, tmp_path: Path) -> None:
    pair = Pair(trusted, tmp_path, "import torch\n\n\ndef f(x: torch.Tensor, way):\n    return way.of(x)\n")
    with pytest.raises(ServerError, match="f was not compared: no working inputs"):
        trusted.command("t2j.explainDifference", pair.uri, "f", timeout=TIMEOUT)
    with pytest.raises(ServerError, match="no class or function g"):
        trusted.command("t2j.explainDifference", pair.uri, "g", timeout=TIMEOUT)
    with pytest.raises(ServerError, match=r"only \.py|no difference"):
        trusted.command("t2j.explainDifference", "untitled:x.py", "f")


@pytest.mark.parametrize("way", ["progress", "request", "edit"])
def test_a_comparison_that_is_not_wanted_any_more_stops(trusted: Client, tmp_path: Path, way: str) -> None:
    pair = Pair(trusted, tmp_path, SLOW)
    since = trusted.now
    arguments = {"command": "t2j.explainDifference", "arguments": [pair.uri, "slow"]}
    request = trusted.start("workspace/executeCommand", arguments)
    begun = trusted.wait_notification("$/progress", lambda p: p["value"]["kind"] == "begin", since, TIMEOUT)
    trusted.wait_notification("$/progress", lambda p: p["value"].get("message") == "checking slow", since, TIMEOUT)
    if way == "progress":
        trusted.notify("window/workDoneProgress/cancel", {"token": begun["token"]})
    elif way == "request":
        trusted.notify("$/cancelRequest", {"id": request})
    else:
        trusted.change(pair.uri, 2, {"range": span(0, 0), "text": "# edited\n"})
    with pytest.raises(ServerError, match="cancelled"):
        trusted.result(request, TIMEOUT)
    # The workers are free for the next question.
    assert trusted.command("t2j.explainDifference", pair.uri, "scale", timeout=TIMEOUT)["verdict"] == "equivalent"
