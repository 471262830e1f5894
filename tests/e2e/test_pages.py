"""The editors' pages: their blocks are what the editors take, and the server takes what the blocks give it."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

import pytest

from t2j_lsp.lsp.settings import CLIENT_NAMES, from_client

from .editors import ROOT, blocks

PAGES = ("neovim.md", "emacs.md", "helix.md", "zed.md", "sublime.md")
HELIX_SERVER = {"command", "args", "config", "timeout", "environment", "required-root-patterns"}
"""https://docs.helix-editor.com/languages.html#language-server-configuration"""
ZED_SERVER = {"binary", "initialization_options", "settings"}
"""https://zed.dev/docs/configuring-languages#configuring-language-servers"""
SUBLIME_CLIENT = {"enabled", "command", "selector", "initializationOptions", "settings", "env", "priority_selector"}
"""https://lsp.sublimetext.io/client_configuration/"""


def taken(options: dict[str, Any], trusted: bool = False) -> None:
    """The server understands initialization options: trust that must be asked for, and settings without problems."""
    assert set(options) <= {"trusted", "settings"}
    assert options["trusted"] is trusted
    known(options.get("settings", {}))


def known(settings: dict[str, Any]) -> None:
    read = from_client(settings)
    assert read.problems == () and set(read.values) == {CLIENT_NAMES[name] for name in flat(settings)}


def flat(settings: dict[str, Any], prefix: str = "") -> list[str]:
    texts = []
    for name, value in settings.items():
        texts += flat(value, f"{prefix}{name}.") if isinstance(value, dict) else [f"{prefix}{name}"]
    return texts


def test_helix_knows_the_keys_and_the_server_the_options() -> None:
    (block,) = blocks("helix.md", "toml")
    data = tomllib.loads(block)
    assert set(data) == {"language-server", "language"}
    server = data["language-server"]["t2j"]
    assert set(server) <= HELIX_SERVER and (server["command"], server["args"]) == ("t2j", ["serve"])
    (language,) = data["language"]
    assert set(language) == {"name", "language-servers"} and language["language-servers"][0] == "t2j"
    taken(server["config"])


def test_zed_knows_the_keys_and_the_server_the_options() -> None:
    (block,) = blocks("zed.md", "json")
    data = json.loads(block)
    assert set(data) == {"lsp", "languages"}
    ((name, server),) = data["lsp"].items()
    assert set(server) <= ZED_SERVER and server["binary"] == {"path": "t2j", "arguments": ["serve"]}
    assert data["languages"]["Python"]["language_servers"][0] == name
    taken(server["initialization_options"])


def test_sublime_knows_the_keys_and_the_server_the_options() -> None:
    everywhere, project, key = map(json.loads, blocks("sublime.md", "json"))
    ((name, client),) = everywhere["clients"].items()
    assert set(client) <= SUBLIME_CLIENT and client["command"] == ["t2j", "serve"]
    taken(client["initializationOptions"])
    known({name.removeprefix("t2j."): value for name, value in client["settings"].items()})
    taken(project["settings"]["LSP"][name]["initializationOptions"], trusted=True)
    assert key["args"]["session_name"] == name


@pytest.mark.parametrize("page", PAGES)
def test_every_page_is_linked_and_links_to_what_is_there(page: str) -> None:
    assert f"(editors/{page})" in (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert f"docs/editors/{page}" in (ROOT / "README.md").read_text(encoding="utf-8")
    folder = ROOT / "docs" / "editors"
    text = (folder / page).read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", prose):
        assert (folder / target).is_file(), target
    assert re.search(r"^## Trust$", text, re.MULTILINE) and re.search(r"^## What works$", text, re.MULTILINE)
