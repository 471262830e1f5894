"""From a planted mistake to the edit that mends it, over a real server with real workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .client import Client, Json, applied, capabilities, span
from .pairs import SOURCE, TIMEOUT, Pair, different
from .programs import line_of

TORCH = """import torch
import torch.nn as nn
import torch.nn.functional as F


class Norm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.out = nn.Linear(dim, 3)

    def forward(self, x):
        h = self.norm(x)
        return self.out(F.gelu(h))


class Stats(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(6, momentum=0.2)

    def forward(self, x):
        return self.bn(x)


def attend(q: torch.Tensor, k: torch.Tensor):
    scores = q * k
    weights = torch.softmax(scores, dim=1)
    return weights * 2


def centre(x: torch.Tensor):
    mean = x.mean(1, keepdim=True)
    return (x - mean) / (x.var(1, keepdim=True) + 1e-3)
"""
PLANTED = {
    "Norm": ("jax.nn.gelu(h, approximate=False)", "jax.nn.gelu(h)", "Set approximate=False"),
    "Stats": ("momentum=0.8", "momentum=0.2", "Set momentum=0.8"),
    "attend": ("scores, axis=1", "scores, axis=0", "Set axis=1"),
    "centre": (", ddof=1", "", "Set ddof=1"),
}
HAND = """import jax
import jax.numpy as jnp


# t2j: of="Norm", weights={"g": "norm.weight", "b": "norm.bias", "w": "out.weight.T", "c": "out.bias"}
def norm(params, inputs):
    mu = inputs.mean(-1, keepdims=True)
    var = jnp.var(inputs, -1, keepdims=True)
    unit = (inputs - mu) / jnp.sqrt(var + 1e-6)
    active = unit * params["g"] + params["b"]
    active = jax.nn.gelu(active)
    return active @ params["w"] + params["c"]


def attend(q, k):
    é, logits = "é", jnp.multiply(k, q)  # ä
    probabilities = jax.nn.softmax(logits)
    return probabilities + probabilities


def centre(x):
    mu, sigma2 = x.mean(1), jnp.var(x, 1, keepdims=True, ddof=1)
    return (x - mu) / (sigma2 + 1e-3)
"""


@pytest.fixture(scope="module")
def trusted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A server in a trusted workspace for a client without a panel."""
    with Client(log=tmp_path_factory.mktemp("mends") / "log") as client:
        client.settings = {"check": {"delay": 0.05}}
        client.initialize(None, None, {"trusted": True, "settings": client.settings})
        yield client


def offered(client: Client, uri: str, mistake: Json) -> dict[str, Json]:
    """The quick fixes at a difference by title."""
    actions = client.actions(uri, mistake["range"], ["quickfix"], [mistake])
    return {a["title"]: a for a in actions if a.get("diagnostics") == [mistake]}


def edits_of(action: Json) -> tuple[str, list[Json]]:
    (change,) = action["edit"]["documentChanges"]
    return change["textDocument"]["uri"], change["edits"]


def mend_all(client: Client, pair: Pair, since: int, report: Json, limit: int) -> list[str]:
    """Apply the preferred fix of one difference after the other, until nothing differs."""
    titles: list[str] = []
    while report["verdict"] == "different":
        assert len(titles) < limit, titles
        mistake = different(client, pair.converted, since)[0]
        fix = next(a for a in offered(client, pair.converted, mistake).values() if a.get("isPreferred"))
        assert "Likely cause: " in mistake["message"]
        titles.append(fix["title"])
        uri, edits = edits_of(fix)
        assert uri == pair.converted
        pair.code = applied(pair.code, edits)
        pair.version += 1
        since = client.now
        client.change(pair.converted, pair.version, *({"range": e["range"], "text": e["newText"]} for e in edits))
        report = pair.checked(since)
    return titles


def test_a_conversion_edited_by_hand_is_mended_edit_by_edit(trusted: Client, tmp_path: Path) -> None:
    pair = Pair(trusted, tmp_path, TORCH)
    trusted.state(pair.uri)
    since = trusted.now
    pair.convert()
    right = pair.code
    assert pair.checked(since)["verdict"] == "equivalent"
    since = trusted.now
    for old, new, _ in PLANTED.values():
        assert pair.code.count(old) == 1, (old, pair.code)
        pair.replace(old, new)
    report = pair.checked(since, "different")
    assert {o["name"] for o in report["objects"] if o["verdict"] == "different"} == set(PLANTED)
    by_name = {o["name"]: o["divergence"] for o in report["objects"]}
    for name, (_, _, title) in PLANTED.items():
        assert by_name[name]["fix"]["title"] == title, by_name[name]
    titles = mend_all(trusted, pair, since, report, len(PLANTED))
    assert sorted(titles) == sorted(title for *_, title in PLANTED.values())
    assert pair.code.count("approximate=False") == right.count("approximate=False")


def test_jax_of_ones_own_is_mended_though_no_line_is_as_the_rules_write_it(trusted: Client, tmp_path: Path) -> None:
    text = TORCH[: TORCH.index("class Stats")] + TORCH[TORCH.index("def attend") :]
    pair = Pair(trusted, tmp_path, text)
    trusted.state(pair.uri)
    since = trusted.now
    pair.code = HAND
    (tmp_path / "net_jax.py").write_text(HAND)
    trusted.open(pair.converted, HAND)
    report = pair.checked(since)
    assert {o["name"]: o["verdict"] for o in report["objects"]} == dict.fromkeys(
        ("Norm", "attend", "centre"), "different"
    )
    titles = mend_all(trusted, pair, since, report, 6)
    assert "Set approximate=False" in titles and "Use 1e-05" in titles and "Set keepdims=True" in titles
    assert "jnp.sqrt(var + 1e-05)" in pair.code and "softmax(logits, axis=1)" in pair.code
    assert "x.mean(1, keepdims=True)" in pair.code


def test_both_files_show_the_difference_and_offer_the_edit(trusted: Client, tmp_path: Path) -> None:
    pair = Pair(trusted, tmp_path)
    trusted.state(pair.uri)
    pair.convert()
    since = trusted.now
    pair.replace(", approximate=False", "")
    outer, place = (different(trusted, uri, since)[0] for uri in (pair.converted, pair.uri))
    assert outer["message"].partition(": ")[2] == place["message"].partition(": ")[2]
    assert "Likely cause: jax.nn.gelu approximates with tanh" in place["message"]
    assert outer["range"]["start"]["line"] == line_of(pair.code, "jax.nn.gelu")
    assert place["range"]["start"]["line"] == line_of(SOURCE, "F.gelu")
    for one, other, line in ((outer, pair.uri, place), (place, pair.converted, outer)):
        (related,) = one["relatedInformation"]
        assert related["location"]["uri"] == other
        assert related["location"]["range"]["start"]["line"] == line["range"]["start"]["line"]
    fixes = offered(trusted, pair.uri, place)
    assert set(fixes) == {"Set approximate=False in net_jax.py"}
    assert edits_of(fixes["Set approximate=False in net_jax.py"])[0] == pair.converted
    fixes = offered(trusted, pair.converted, outer)
    assert set(fixes) == {"Set approximate=False", "Write this as the rules convert it"}
    assert [t for t, a in fixes.items() if a.get("isPreferred")] == ["Set approximate=False"]
    # An edit takes the difference away, and with it what was offered.
    pair.replace("y * 2", "y * 2.0")
    trusted.state(pair.converted)
    assert offered(trusted, pair.converted, outer) == {}


def test_a_panel_is_offered_to_clients_that_have_one(start: Callable[..., Client], tmp_path: Path) -> None:
    caps: Any = capabilities(workspace__workspaceEdit__documentChanges=False)
    client = start(caps, {"trusted": True, "panels": True, "settings": {"check": {"delay": 0.05}}})
    pair = Pair(client, tmp_path)
    client.state(pair.uri)
    code = "import jax\n\n\ndef scale(x):\n    return x * 4\n"
    (tmp_path / "net_jax.py").write_text(code)
    report = client.command("t2j.check", pair.uri, "scale", timeout=TIMEOUT)
    assert report["verdict"] == "different"
    # The conversion is not open: the edit is one of the file on disk.
    (mistake,) = different(client, pair.uri, 0)
    fixes = offered(client, pair.uri, mistake)
    assert set(fixes) == {"Use 3 instead of 4 in net_jax.py", "Explain this difference"}
    command = fixes["Explain this difference"]["command"]
    assert (command["command"], command["arguments"]) == ("t2j.showDifference", [pair.uri, "scale"])
    (edits,) = fixes["Use 3 instead of 4 in net_jax.py"]["edit"]["changes"].values()
    assert applied(code, edits) == code.replace("4", "3")
    assert client.actions(pair.uri, span(0, 0), ["quickfix"]) == []
