"""The same session in Emacs with Eglot, which resolves no actions, creates no files and counts columns its own way."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from .editors import editor, run

pytest.importorskip("pygls", reason="the language server's extra is not installed")

SCRIPT = Path(__file__).with_name("session.el")
START = ["--batch", "--no-init-file"]


def test_a_session_from_open_to_the_quick_fix_of_a_planted_mistake(tmp_path: Path) -> None:
    emacs = editor("emacs")
    if subprocess.run([emacs, *START, "--eval", "(require 'eglot)"], capture_output=True).returncode:
        pytest.skip("emacs has no eglot (apt-get install elpa-eglot)")
    seen = run([emacs, *START, "--load", str(SCRIPT)], tmp_path, SCRIPT)
    assert "jax.nn.gelu(self.fc(x), approximate=False)" in seen["hover"]
    assert seen["expression"] == '        name = "𝔘é"; y = jax.nn.gelu(self.fc(x), approximate=False)'
    assert {"Convert class Net to JAX", "Convert file to JAX (net_jax.py)"} <= set(seen["offered"])
    assert (seen["first"], seen["last"]) == ("equivalent", "equivalent")
    assert seen["found"] == seen["planted"]
    assert seen["fixed"] is True and seen["ended"] is True
