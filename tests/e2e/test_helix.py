"""Helix in a terminal of ours, with the configuration of its page: the server starts, hovers and converts the file."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from .editors import NET, ROOT, blocks

pytest.importorskip("pygls", reason="the language server's extra is not installed")

SECONDS = 60
ESCAPES = re.compile(rb"\x1b(\[[0-?]*[ -/]*[@-~]|[()][A-Z0-9]|[=>78MDE]|\][^\x07]*\x07|P[^\x1b]*\x1b\\)")


class Terminal:
    """A program in a pseudo terminal, what it wrote, and keys for it."""

    def __init__(self, command: list[str], folder: Path, variables: dict[str, str]) -> None:
        self.screen, inside = pty.openpty()
        fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
        self.process = subprocess.Popen(
            command, cwd=folder, env=variables, stdin=inside, stdout=inside, stderr=inside, start_new_session=True
        )
        os.close(inside)
        self.seen = ""

    def keys(self, text: str) -> None:
        self.seen = ""
        os.write(self.screen, text.encode())

    def escape(self) -> None:
        """The escape key alone: together with the next one it would be another key."""
        self.keys("\x1b")
        self.shows("never", 0.5)

    def shows(self, wanted: str, seconds: float = SECONDS) -> bool:
        """Whether a text is written within the time; blanks don't count, since terminals skip them."""
        end = time.monotonic() + seconds
        raw = b""
        while wanted.replace(" ", "") not in self.seen and time.monotonic() < end:
            if not select.select([self.screen], [], [], 0.2)[0]:
                continue
            try:
                raw += os.read(self.screen, 1 << 16)
            except OSError:
                break  # The program has ended.
            self.seen = re.sub(r"\s", "", ESCAPES.sub(b"", raw).decode("utf-8", "replace"))
        return wanted.replace(" ", "") in self.seen

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.screen)


def test_helix_takes_the_page_s_configuration_and_converts_a_file(tmp_path: Path) -> None:
    helix = shutil.which("hx") or shutil.which("helix")
    if helix is None:
        pytest.skip("helix is not installed (apt-get install hx)")
    work, config = tmp_path / "work", tmp_path / "config" / "helix"
    for folder in (work, config, tmp_path / "bin"):
        folder.mkdir(parents=True)
    (work / "net.py").write_text(NET.replace("𝔘é", "u"), encoding="utf-8")
    server = tmp_path / "bin" / "t2j"
    server.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m t2j_lsp "$@" 2>>"{tmp_path}/server.log"\n')
    server.chmod(0o755)
    (config / "languages.toml").write_text(blocks("helix.md", "toml")[0], encoding="utf-8")
    variables = {
        **os.environ,
        "HOME": str(tmp_path),
        "PATH": os.pathsep.join([str(server.parent), os.environ.get("PATH", "")]),
        "PYTHONPATH": str(ROOT),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "T2J_STATE": str(tmp_path / "state"),
        "TERM": "xterm-256color",
    }
    terminal = Terminal([helix, "net.py"], work, variables)
    try:
        assert terminal.shows("F.gelu"), terminal.seen[-2000:]
        terminal.keys("/gelu\r")
        for _ in range(20):  # The server may still start.
            terminal.keys(" k")
            if terminal.shows("jax.nn.gelu(self.fc(x), approximate=False)", 3):
                break
            terminal.escape()
        else:
            pytest.fail(f"no hover: {terminal.seen[-2000:]}")
        terminal.escape()
        terminal.keys("gg")
        terminal.keys(" a")
        assert terminal.shows("Convert file to JAX"), terminal.seen[-2000:]
        terminal.keys("\r")
        for _ in range(20):  # The conversion takes a moment; what it made is open and not yet written.
            terminal.keys(":write-all\r")
            terminal.shows("never", 1)
            if (work / "net_jax.py").exists() and (work / "net_jax.py").stat().st_size:
                break
        assert "jax.nn.gelu(self.fc(x), approximate=False)" in (work / "net_jax.py").read_text(encoding="utf-8")
    finally:
        terminal.close()
