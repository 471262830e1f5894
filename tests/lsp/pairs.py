"""A PyTorch file and its conversion, open in a client whose server checks them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .client import Client, span
from .programs import place_of

SOURCE = """import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 4)

    def forward(self, x):
        y = F.gelu(self.fc(x))
        return y * 2


def scale(x: torch.Tensor):
    return x * 3
"""
TIMEOUT = 240.0


class Pair:
    """A file and its conversion, open in a client."""

    def __init__(self, client: Client, folder: Path, text: str = SOURCE) -> None:
        self.client = client
        self.path = folder / "net.py"
        self.path.write_text(text)
        self.uri, self.converted = self.path.as_uri(), (folder / "net_jax.py").as_uri()
        self.text = text
        self.code = ""
        self.version = 1
        client.open(self.uri, text)

    def convert(self) -> None:
        """Convert the file as an editor would, and open the result."""
        (action,) = self.client.actions(self.uri, span(0, 0), only=["source.convert.t2j"])
        self.code = self.client.resolve(action)["edit"]["documentChanges"][1]["edits"][0]["newText"]
        (self.path.parent / "net_jax.py").write_text(self.code)
        self.client.open(self.converted, self.code)

    def replace(self, old: str, new: str) -> None:
        """Edit the conversion where it says ``old``."""
        line, column = place_of(self.code, old)
        self.version += 1
        change = {"range": span(line, column, line, column + len(old)), "text": new}
        self.client.change(self.converted, self.version, change)
        self.code = self.code.replace(old, new, 1)

    def checked(self, since: int, verdict: str | None = None) -> Any:
        def fits(params: Any) -> bool:
            return params["uri"] == self.uri and (verdict is None or params["verdict"] == verdict)

        return self.client.wait_notification("t2j/checked", fits, since, TIMEOUT)


def different(client: Client, uri: str, since: int, verdict: bool = True) -> list[Any]:
    """The differences among the next diagnostics of a document that have some, or none."""

    def fits(params: Any) -> bool:
        return params["uri"] == uri and verdict == any(d["code"] == "t2j-differs" for d in params["diagnostics"])

    result = client.wait_notification("textDocument/publishDiagnostics", fits, since, TIMEOUT)["diagnostics"]
    return [d for d in result if d["code"] == "t2j-differs"]
