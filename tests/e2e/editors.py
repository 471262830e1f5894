"""What the editors' tests share: the file they open, the server they start, and how one editor is run to its end."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 150
CONFIGURATION = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")

NET = """import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 4)

    def forward(self, x):
        name = "𝔘é"; y = F.gelu(self.fc(x))
        return y * 2
"""


def editor(name: str) -> str:
    """The editor's path; skips the test where it is not installed."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed (apt-get install {name})")
    return path


def blocks(page: str, language: str) -> list[str]:
    """The fenced blocks of a language on an editor's page."""
    text = (ROOT / "docs" / "editors" / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def run(command: list[str], folder: Path, script: Path) -> dict[str, Any]:
    """Run an editor on a script of ours; what the script wrote as JSON. A failure says what went wrong.

    The editor finds the server as ``t2j`` on its path, as its page has it.
    """
    home = folder / "work"
    home.mkdir()
    (home / "net.py").write_text(NET, encoding="utf-8")
    result, server = folder / "result.json", folder / "bin" / "t2j"
    server.parent.mkdir()
    server.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m t2j_lsp "$@" 2>>"{folder}/server.log"\n')
    server.chmod(0o755)
    paths = {name: str(folder / name.lower()) for name in CONFIGURATION}
    variables = {
        **os.environ,
        **paths,
        "HOME": str(folder),
        "PATH": os.pathsep.join([str(server.parent), os.environ.get("PATH", "")]),
        "PYTHONPATH": str(ROOT),
        "T2J_STATE": str(folder / "state"),
    }
    variables |= {"T2J_FOLDER": str(home), "T2J_RESULT": str(result), "LC_ALL": "C.UTF-8"}
    done = subprocess.run(command, cwd=home, env=variables, capture_output=True, text=True, timeout=SECONDS)
    log = (folder / "server.log").read_text() if (folder / "server.log").exists() else ""
    assert result.exists(), f"{script.name} wrote no result\n{done.stdout[-3000:]}\n{done.stderr[:3000]}\n{log[-3000:]}"
    answer: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    assert "error" not in answer, f"{answer}\n{done.stderr[-2000:]}\n{log[-3000:]}"
    return answer
