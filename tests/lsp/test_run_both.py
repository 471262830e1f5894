"""*Run both*: whole programs run from the editor, their verdict in the lens, and the first difference at its lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .client import Client, Json, ServerError
from .pairs import TIMEOUT, Pair, different
from .programs import line_of
from .test_lenses import lenses

PROGRAM = """import torch
import torch.nn as nn


def train(model, x, y):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(300):
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        print(f"loss {loss.item():.6f}")


def main():
    x = torch.linspace(-1, 1, 40).reshape(20, 2)
    train(nn.Linear(2, 1), x, x.sum(dim=1, keepdim=True))


if __name__ == "__main__":
    main()
"""
LIBRARY = PROGRAM.partition("\n\ndef main")[0] + "\n"
SCRIPT = """import torch
import torch.nn as nn

x = torch.linspace(-1, 1, 40).reshape(20, 2)
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    optimizer.zero_grad()
    loss = ((model(x) - 1) ** 2).mean()
    loss.backward()
    optimizer.step()
    print(loss.item())
"""
OPTIONS: Json = {"trusted": True, "showsChecks": True, "settings": {"check": {"enable": False}, "run": {"steps": 20}}}


@pytest.fixture(scope="module")
def trusted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A server in a trusted workspace, which checks nothing by itself and runs 20 steps."""
    with Client(log=tmp_path_factory.mktemp("trusted") / "log") as client:
        client.initialize(None, None, OPTIONS)
        client.settings = OPTIONS["settings"]
        yield client


def runs(client: Client, uri: str) -> list[tuple[int, str]]:
    """The lines and titles of the lenses that run both programs."""
    return [(line, title) for line, title, command in lenses(client, uri) if command == "t2j.run"]


def test_programs_main_and_training_functions_have_the_lens(trusted: Client, tmp_path: Path) -> None:
    for name, text, expected in (
        ("program", PROGRAM, [0, line_of(PROGRAM, "def train"), line_of(PROGRAM, "def main")]),
        ("script", SCRIPT, [0]),
        ("called", LIBRARY + "\n\ntrain(nn.Linear(2, 1), torch.ones(3, 2), 0.5)\n", [0, line_of(LIBRARY, "def train")]),
        ("library", LIBRARY, []),
    ):
        uri = (tmp_path / f"{name}.py").as_uri()
        trusted.open(uri, text)
        assert runs(trusted, uri) == [(line, "Run both") for line in expected], name


def test_a_planted_mistake_is_shown_at_its_line_in_both_files_and_goes_when_it_is_mended(
    trusted: Client, tmp_path: Path
) -> None:
    pair = Pair(trusted, tmp_path, PROGRAM)
    trusted.state(pair.uri)
    pair.convert()
    pair.replace("optax.sgd(0.1)", "optax.sgd(0.11)")
    since = trusted.now
    answer = trusted.command("t2j.run", pair.uri, timeout=TIMEOUT)
    assert (answer["verdict"], answer["stopped"], answer["steps"]) == ("different", True, 20)
    line = line_of(pair.code, 'print(f"loss')
    (mistake,) = different(trusted, pair.converted, since)
    assert (mistake["range"]["start"]["line"], mistake["severity"]) == (line, 1)
    assert "the program differs from PyTorch" in mistake["message"] and "'loss" in mistake["message"]
    (other,) = different(trusted, pair.uri, since)
    assert other["range"]["start"]["line"] == line_of(PROGRAM, 'print(f"loss')
    assert mistake["relatedInformation"][0]["location"]["range"]["start"] == other["range"]["start"] | {"character": 0}
    shown = runs(trusted, pair.uri)
    assert len(shown) == 3 and all(title.startswith("≠ programs differ: ") for _, title in shown)
    assert all(title.endswith(f" · net_jax.py:{line + 1} · CPU") for _, title in shown)
    # The mistake is mended: what was said is about another text.
    since = trusted.now
    pair.replace("optax.sgd(0.11)", "optax.sgd(0.1)")
    assert different(trusted, pair.converted, since, verdict=False) == []
    assert all(title.endswith("edited since") for _, title in runs(trusted, pair.uri))
    answer = trusted.command("t2j.run", pair.uri, timeout=TIMEOUT)
    assert answer["verdict"] == "equivalent", answer
    (_, title), *_ = runs(trusted, pair.uri)
    assert title.startswith("✓ ran both for 20 steps: 20 printed texts, 2 parameters · ") and title.endswith("CPU")
    assert trusted.state(pair.uri)["run"]["message"] == f"net.py: {title}"


def test_a_program_without_a_conversion_is_converted_and_one_with_gaps_is_not_run(
    trusted: Client, tmp_path: Path
) -> None:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    trusted.open(path.as_uri(), SCRIPT)
    answer = trusted.command("t2j.run", path.as_uri(), timeout=TIMEOUT)
    assert answer["verdict"] == "equivalent" and not answer["stopped"], answer
    gaps = SCRIPT + "traced = torch.jit.trace(torch.relu, x)\n"
    trusted.change(path.as_uri(), 2, {"text": gaps})
    answer = trusted.command("t2j.run", path.as_uri(), timeout=TIMEOUT)
    assert answer["message"] == "script.py: ? programs not compared: 1 place of it left as PyTorch: nothing was run"


def test_a_lens_says_that_data_was_made_up(start: Callable[..., Client], tmp_path: Path) -> None:
    client = start(options={"trusted": True, "settings": {"run": {"data": "synthetic"}}})
    client.settings = {"run": {"data": "synthetic"}}
    path = tmp_path / "script.py"
    path.write_text(SCRIPT + "print(len(open('missing.txt').read()))\n")
    client.open(path.as_uri(), path.read_text())
    assert client.command("t2j.run", path.as_uri(), timeout=TIMEOUT)["synthetic"] == [
        "missing.txt: a text of made-up words"
    ]
    (_, title), *_ = runs(client, path.as_uri())
    assert title.startswith("✓ ran both: ") and "synthetic data" in title


def test_a_run_is_stopped_and_the_next_one_goes_on(trusted: Client, tmp_path: Path) -> None:
    path = tmp_path / "endless.py"
    path.write_text("import torch\n\nx = torch.ones(3)\nwhile True:\n    x = torch.sin(x)\n")
    trusted.open(path.as_uri(), path.read_text())
    since = trusted.now
    request = trusted.start("workspace/executeCommand", {"command": "t2j.run", "arguments": [path.as_uri()]})
    running = lambda p: p["state"] == "checking" and p.get("message") == "running the PyTorch program"  # noqa: E731
    trusted.wait_notification("t2j/status", running, since, TIMEOUT)
    trusted.command("t2j.cancelCheck")
    with pytest.raises(ServerError, match="cancelled"):
        trusted.result(request, TIMEOUT)
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    assert trusted.command("t2j.run", script.as_uri(), timeout=TIMEOUT)["verdict"] == "equivalent"


def test_nothing_is_run_in_a_workspace_that_is_not_trusted(shared: Client, tmp_path: Path) -> None:
    marker, path = tmp_path / "ran", tmp_path / "script.py"
    path.write_text(SCRIPT + f"open({str(marker)!r}, 'w').close()\n")
    shared.open(path.as_uri(), path.read_text())
    assert runs(shared, path.as_uri()) == []
    with pytest.raises(ServerError, match="not trusted"):
        shared.command("t2j.run", path.as_uri())
    assert not marker.exists()
