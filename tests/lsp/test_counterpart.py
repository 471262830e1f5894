"""From a line of PyTorch to its conversion and back, in a real server."""

from __future__ import annotations

from pathlib import Path

import pytest

from t2j_lsp.contract import Span
from t2j_lsp.lsp.analysis.counterparts import counterpart

from .client import Client, at
from .pairs import Pair
from .programs import place_of


def place(client: Client, uri: str, text: str, needle: str) -> list[tuple[str, int, int]]:
    """Where a client is led from a text: the file, and the line and column there."""
    result = client.request("textDocument/implementation", at(uri, *place_of(text, needle)))
    return [(one["uri"], one["range"]["start"]["line"], one["range"]["start"]["character"]) for one in result]


def test_a_line_leads_to_its_counterpart_and_back(shared: Client, tmp_path: Path) -> None:
    pair = Pair(shared, tmp_path)
    assert place(shared, pair.uri, pair.text, "class Net") == []
    shared.state(pair.uri, complete=True)
    pair.convert()
    for source, converted in (
        ("class Net", "class Net"),
        ("def forward", "def __call__"),
        ("self.fc = ", "self.fc = "),
        ("y = F.gelu", "y = jax.nn.gelu"),
        ("return x * 3", "def scale"),
        ("def scale", "def scale"),
    ):
        assert place(shared, pair.uri, pair.text, source) == [(pair.converted, *place_of(pair.code, converted))]
    for converted, source in (
        ("def __call__", "def forward"),
        ("self.fc = ", "self.fc = "),
        ("return y", "def forward"),
    ):
        assert place(shared, pair.converted, pair.code, converted) == [(pair.uri, *place_of(pair.text, source))]
    assert place(shared, pair.uri, pair.text, "import torch") == []
    assert place(shared, "untitled:a.py", "x", "x") == []
    # The conversion is edited: its present text counts, also where it does not parse.
    pair.replace("def scale(", "é = broken(\n\n\ndef scale(")
    assert place(shared, pair.uri, pair.text, "def scale") == [(pair.converted, *place_of(pair.code, "def scale"))]


@pytest.mark.parametrize(
    ("text", "other", "line", "wanted"),
    [
        ("x = f(1)\nx = f(2)\n", "import jax\nx = g(1)\nx = g(2)\n", 2, Span(3, 0, 3, 8)),
        ("x = f(1)\nx = f(2)\n", "import jax\nx = g(1)\n", 2, None),
        ("class A:\n    @p\n    def f(s): pass\n", "class A:\n    def f(s): pass\n", 2, Span(2, 4, 2, 18)),
        ("class A:\n    def f(s):\n        a, b = s\n", "class A:\n    pass\n", 3, Span(1, 0, 1, 8)),
        ("def f(x):\n    if x:\n        y = 1\n", "def f(x):\n    y = 1\n", 3, Span(2, 4, 2, 9)),
        ("def f(x): pass\n", "", 1, None),
        ("def f(x):\n    y = (\n", "def f(x):\n    y = 1\n", 1, None),
    ],
)
def test_what_counts_as_the_counterpart(text: str, other: str, line: int, wanted: Span | None) -> None:
    assert counterpart(text, other, line) == wanted
