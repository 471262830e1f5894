"""One scripted session in Neovim, with the configuration of its page.

Open, trust, hover, convert, verdict, a planted mistake, its diagnostic, its values, its quick fix.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from .editors import NET, blocks, editor, run

pytest.importorskip("pygls", reason="the language server's extra is not installed")

SCRIPT = Path(__file__).with_name("session.lua")


def test_a_session_from_open_to_the_quick_fix_of_a_planted_mistake(tmp_path: Path) -> None:
    command = [editor("nvim"), "--headless", "-n", "-c", f"luafile {SCRIPT}"]
    (configuration,) = blocks("neovim.md", "lua")
    plugin = tmp_path / "xdg_config_home" / "nvim" / "plugin" / "t2j.lua"
    plugin.parent.mkdir(parents=True)
    plugin.write_text(configuration, encoding="utf-8")
    seen = run(command, tmp_path, SCRIPT)
    assert "not trusted" in seen["refused"] and seen["trusted"] == [str(tmp_path / "work")]
    assert "jax.nn.gelu(self.fc(x), approximate=False)" in seen["hover"]
    assert seen["expression"] == '        name = "𝔘é"; y = jax.nn.gelu(self.fc(x), approximate=False)'
    assert {"Rewrite class Net in place as JAX…", "Rewrite function Net.forward in place as JAX…"} <= set(
        seen["offered"]
    )
    assert (seen["first"], seen["last"]) == ("equivalent", "equivalent")
    assert seen["found"] == seen["planted"]
    assert NET.split("\n")[seen["there"] - 1].strip().endswith("F.gelu(self.fc(x))")
    assert seen["explained"].count("jax") and seen["paused"] == "paused: by command"
    assert seen["ended"]
    assert "approximate=False" in (tmp_path / "work" / "net_jax.py").read_text(encoding="utf-8")
