"""The same session in Emacs with Eglot and the configuration of its page.

Eglot resolves no actions, creates no files and counts columns its own way.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from .editors import blocks, editor, run

pytest.importorskip("pygls", reason="the language server's extra is not installed")

SCRIPT = Path(__file__).with_name("session.el")
START = ["--batch", "--no-init-file"]


def test_a_session_from_open_to_the_quick_fix_of_a_planted_mistake(tmp_path: Path) -> None:
    emacs = editor("emacs")
    if subprocess.run([emacs, *START, "--eval", "(require 'eglot)"], capture_output=True).returncode:
        pytest.skip("emacs has no eglot (apt-get install elpa-eglot)")
    (configuration,) = blocks("emacs.md", "elisp")
    page = tmp_path / "init.el"
    page.write_text(f";; -*- lexical-binding: t -*-\n{configuration}", encoding="utf-8")
    seen = run([emacs, *START, "--load", str(page), "--load", str(SCRIPT)], tmp_path, SCRIPT)
    assert "not trusted" in seen["refused"] and str(tmp_path / "work") in (tmp_path / "custom.el").read_text()
    assert "jax.nn.gelu(self.fc(x), approximate=False)" in seen["hover"]
    assert seen["expression"] == '        name = "𝔘é"; y = jax.nn.gelu(self.fc(x), approximate=False)'
    assert {"Rewrite class Net in place as JAX…", "Convert file to JAX (new file net_jax.py)"} <= set(seen["offered"])
    assert (seen["first"], seen["last"]) == ("equivalent", "equivalent")
    assert seen["found"] == seen["planted"]
    assert seen["status"] == "paused" and "gelu" in seen["explained"]
    assert seen["fixed"] is True and seen["ended"] is True
