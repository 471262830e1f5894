"""The VS Code extension's manifest: its settings are the server's, and everything in it is used."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from t2j_lsp import __version__
from t2j_lsp.lsp.settings import CHOICES, CLIENT_NAMES, Settings

CLIENT = Path(__file__).resolve().parents[1] / "vscode-client"
MANIFEST: dict[str, Any] = json.loads((CLIENT / "package.json").read_text(encoding="utf-8"))
CONTRIBUTES: dict[str, Any] = MANIFEST["contributes"]
SOURCES = {path.name: path.read_text(encoding="utf-8") for path in sorted((CLIENT / "src").glob("*.ts"))}
CODE = "\n".join(SOURCES.values())
OWN = {"interpreter", "importStrategy", "serverArguments", "trace.server"}
"""Settings of the extension itself; ``trace.server`` is the language client's."""
SELF_EXPLAINING = {"trace.server", "check.device"}
"""Settings whose choices say what they are."""


def settings() -> dict[str, dict[str, Any]]:
    result = {}
    for section in CONTRIBUTES["configuration"]:
        for name, about in section["properties"].items():
            result[name.removeprefix("t2j.")] = about
    return result


def commands() -> set[str]:
    return {one["command"] for one in CONTRIBUTES["commands"]}


def test_every_setting_of_the_server_is_there_with_its_default_and_choices() -> None:
    assert set(settings()) == set(CLIENT_NAMES) | OWN
    for name, field in CLIENT_NAMES.items():
        about, default = settings()[name], getattr(Settings(), field)
        assert about["default"] == (list(default) if isinstance(default, tuple) else default), name
        assert tuple(about.get("enum", ())) == CHOICES.get(field, ()), name


def test_the_extensions_own_settings_are_read() -> None:
    for name in OWN - {"trace.server"}:
        assert f'"{name}"' in CODE, name


def test_every_setting_is_described_and_has_a_scope() -> None:
    for name, about in settings().items():
        assert about["markdownDescription"].endswith("."), name
        assert about["scope"] in ("resource", "window", "machine-overridable"), name
        if "enum" in about:
            words = about["enum"] if name in SELF_EXPLAINING else about["markdownEnumDescriptions"]
            assert len(words) == len(about["enum"]), name


def test_what_could_run_a_program_is_restricted_in_untrusted_workspaces() -> None:
    restricted = set(MANIFEST["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"])
    programs = {"interpreter", "importStrategy", "serverArguments", "check.torchPython", "check.jaxPython"}
    assert {f"t2j.{name}" for name in programs} <= restricted
    for name in restricted:
        assert settings()[name.removeprefix("t2j.")]["scope"] == "machine-overridable", name


def test_every_command_is_registered_and_every_registered_one_is_contributed() -> None:
    registered = set(re.findall(r'^\s*"(t2j\.[\w.]+)": ', SOURCES["extension.ts"], re.M))
    assert registered == commands()


def test_menus_name_commands_and_views_that_are_there() -> None:
    for place, entries in CONTRIBUTES["menus"].items():
        for entry in entries:
            assert entry["command"] in commands(), (place, entry)
    views = {view["id"] for group in CONTRIBUTES["views"].values() for view in group}
    assert set(CONTRIBUTES["views"]) == {one["id"] for one in CONTRIBUTES["viewsContainers"]["activitybar"]}
    assert {one["view"] for one in CONTRIBUTES["viewsWelcome"]} <= views
    for view in views:
        assert f'createTreeView("{view}"' in CODE


def test_what_conditions_ask_for_is_set_somewhere() -> None:
    asked = set(re.findall(r"\bt2j\.(?:state|convertible|migration\.ready)\b", json.dumps(CONTRIBUTES)))
    assert asked == set(re.findall(r'"setContext", "(t2j\.[\w.]+)"', CODE))


def test_every_step_of_the_walkthrough_is_ticked_by_what_it_asks_for() -> None:
    (walkthrough,) = CONTRIBUTES["walkthroughs"]
    steps = [step["id"] for step in walkthrough["steps"]]
    assert [step["completionEvents"] for step in walkthrough["steps"]] == [[f"onContext:t2j.done.{id}"] for id in steps]
    named = re.search(r"STEPS = \[(.*?)\]", SOURCES["walkthrough.ts"])
    assert named is not None and re.findall(r'"(\w+)"', named[1]) == steps
    assert set(re.findall(r'walkthrough\.done\("(\w+)"\)', SOURCES["extension.ts"])) == set(steps)


def walkthrough_links() -> Iterator[str]:
    for walkthrough in CONTRIBUTES["walkthroughs"]:
        for step in walkthrough["steps"]:
            yield from re.findall(r"command:([\w.]+)", step["description"])
    for welcome in CONTRIBUTES["viewsWelcome"]:
        yield from re.findall(r"command:([\w.]+)", welcome["contents"])


def test_links_of_the_walkthrough_run_commands() -> None:
    views = {f"{view['id']}.focus" for group in CONTRIBUTES["views"].values() for view in group}
    assert set(walkthrough_links()) <= commands() | views


@pytest.mark.parametrize(
    "file",
    [
        MANIFEST["icon"],
        *(one["icon"] for one in CONTRIBUTES["viewsContainers"]["activitybar"]),
        *(step["media"]["markdown"] for w in CONTRIBUTES["walkthroughs"] for step in w["steps"]),
    ],
)
def test_files_that_the_manifest_names_are_there(file: str) -> None:
    assert (CLIENT / file).is_file()


def test_texts_of_the_walkthrough_name_settings_and_commands_that_are_there() -> None:
    titles = {one["title"] for one in CONTRIBUTES["commands"]}
    pages = "\n".join(path.read_text(encoding="utf-8") for path in CLIENT.glob("media/walkthrough/*.md"))
    pages += (CLIENT / "README.md").read_text(encoding="utf-8")
    for name in re.findall(r"`t2j\.([\w.]+)`", pages):
        assert name in settings(), name
    for title in re.findall(r"\*t2j: ([^*]+)\*", pages):
        assert title in titles, title


def test_the_extension_and_the_package_have_one_version() -> None:
    assert MANIFEST["version"] == __version__


def test_the_locked_packages_name_no_registry() -> None:
    assert '"resolved"' not in (CLIENT / "package-lock.json").read_text(encoding="utf-8")
