"""When background checks run: newest first, one at a time, after the last edit, and not while they are to pause."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from t2j_lsp.lsp.checking.battery import from_pmset, from_supplies, plugged_in
from t2j_lsp.lsp.checking.pausing import BY_BATTERY, BY_COMMAND, Pause

from .client import Client
from .pairs import Pair
from .programs import place_of

SMALL = "import torch\n\n\ndef scale(x: torch.Tensor):\n    return x * 3\n"
STATUS, CHECKED = "t2j/status", "t2j/checked"
LAUNCHER = """
import os, pathlib, sys
from t2j_lsp.lsp.checking import service

state = pathlib.Path(os.environ["T2J_TEST_BATTERY"])
service.CheckService.battery = staticmethod(lambda: state.read_text() == "plugged")
service.LOOK = 0.05
from t2j_lsp.cli import main
sys.exit(main(["serve"]))
"""
"""A server whose battery is a file; the rest is as it is shipped."""


@pytest.fixture(scope="module")
def battery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("battery") / "state"
    file.write_text("plugged")
    return file


@pytest.fixture(scope="module")
def server(battery: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A trusted server whose workers stay warm for this module."""
    log = tmp_path_factory.mktemp("pausing") / "log"
    with Client(log=log, env={"T2J_TEST_BATTERY": str(battery)}, program=("-c", LAUNCHER)) as client:
        client.settings = {"check": {"delay": 0.0}}
        client.initialize(None, None, {"trusted": True, "settings": client.settings})
        yield client


@pytest.fixture
def client(server: Client, battery: Path) -> Iterator[Client]:
    """The server, plugged in and not paused, before and after each test."""
    yield server
    battery.write_text("plugged")
    server.command("t2j.resumeChecks")
    configure(server, {"delay": 0.0})


def configure(client: Client, check: dict[str, Any]) -> None:
    client.settings = {"check": check}
    client.notify("workspace/didChangeConfiguration", {"settings": None})
    client.command("t2j.debugInfo")


def pair(client: Client, folder: Path, name: str, text: str = SMALL) -> Pair:
    (folder / name).mkdir()
    made = Pair(client, folder / name, text)
    client.state(made.uri)
    return made


def statuses(client: Client, since: int) -> list[Any]:
    return [m["params"] for m in client.messages[since:] if m.get("method") == STATUS]


def checks(client: Client, since: int) -> list[str]:
    return [m["params"]["uri"] for m in client.messages[since:] if m.get("method") == CHECKED]


def wait_status(client: Client, since: int, state: str, reason: str | None = None) -> Any:
    return client.wait_notification(STATUS, lambda p: (p["state"], p.get("reason")) == (state, reason), since)


def test_paused_by_command_only_what_is_asked_for_is_checked(client: Client, tmp_path: Path) -> None:
    waiting, asked = pair(client, tmp_path, "waiting"), pair(client, tmp_path, "asked")
    since = client.now
    assert client.command("t2j.pauseChecks") == {"paused": True, "reason": BY_COMMAND}
    wait_status(client, since, "paused", BY_COMMAND)
    waiting.convert()
    assert client.command("t2j.check", asked.uri, timeout=240)["verdict"] == "equivalent"
    assert checks(client, since) == [asked.uri]
    # After the check the status says again that the others wait, and where the last one ran.
    last = [s for s in statuses(client, since) if s["state"] != "analysing"][-1]
    assert (last["state"], last["reason"], last["device"]) == ("paused", BY_COMMAND, "cpu")
    since = client.now
    assert client.command("t2j.resumeChecks") == {"paused": False, "reason": None}
    assert waiting.checked(since)["verdict"] == "equivalent"
    assert not any(s["state"] == "paused" for s in statuses(client, since))


def test_a_running_check_is_stopped_by_a_pause_and_runs_again_later(client: Client, tmp_path: Path) -> None:
    made = pair(client, tmp_path, "made")
    since = client.now
    made.convert()
    client.wait_notification(STATUS, lambda p: p["state"] == "checking", since)
    client.command("t2j.pauseChecks")
    wait_status(client, since, "paused", BY_COMMAND)
    assert checks(client, since) == []
    client.command("t2j.resumeChecks")
    assert made.checked(since)["verdict"] == "equivalent"
    assert checks(client, since) == [made.uri]


def test_checks_wait_for_the_charger(client: Client, battery: Path, tmp_path: Path) -> None:
    waiting, asked = pair(client, tmp_path, "waiting"), pair(client, tmp_path, "asked")
    battery.write_text("unplugged")
    since = client.now
    waiting.convert()
    assert wait_status(client, since, "paused", BY_BATTERY)["reason"] == "on battery"
    assert client.command("t2j.check", asked.uri, timeout=240)["verdict"] == "equivalent"
    assert checks(client, since) == [asked.uri]
    since = client.now
    battery.write_text("plugged")
    assert waiting.checked(since)["verdict"] == "equivalent"
    assert statuses(client, since)[-1]["state"] == "idle"


@pytest.mark.parametrize("how", ["setting", "command"])
def test_on_battery_checks_run_where_they_may(client: Client, battery: Path, tmp_path: Path, how: str) -> None:
    made = pair(client, tmp_path, how)
    battery.write_text("unplugged")
    since = client.now
    made.convert()
    wait_status(client, since, "paused", BY_BATTERY)
    since = client.now
    if how == "setting":
        configure(client, {"delay": 0.0, "onBattery": True})
    else:
        client.command("t2j.resumeChecks")
    assert made.checked(since)["verdict"] == "equivalent"


def test_an_edit_of_either_file_makes_the_verdict_stale_at_once(client: Client, tmp_path: Path) -> None:
    made = pair(client, tmp_path, "made")
    since = client.now
    made.convert()
    made.checked(since)
    for edit in ("conversion", "source"):
        client.command("t2j.pauseChecks")
        assert client.state(made.uri)["check"]["stale"] is False
        if edit == "conversion":
            made.replace("x * 3", "x * 4")
        else:
            client.change(made.uri, 2, {"text": SMALL.replace("x * 3", "x * 4")})
        # No check has run since: nothing but the edit can have made it stale.
        assert client.state(made.uri)["check"]["stale"] is True
        since = client.now
        client.command("t2j.resumeChecks")
        made.checked(since, "different" if edit == "conversion" else "equivalent")


def test_the_newest_is_checked_first_and_one_at_a_time(client: Client, tmp_path: Path) -> None:
    client.command("t2j.pauseChecks")
    made = [pair(client, tmp_path, name) for name in ("first", "second", "third")]
    for one in made:
        one.convert()
    made[0].replace("x * 3", "3 * x")
    client.command("t2j.debugInfo")
    since = client.now
    client.command("t2j.resumeChecks")
    made[1].checked(since)
    assert checks(client, since) == [made[0].uri, made[2].uri, made[1].uri]
    seen = [m["params"] for m in client.messages[since:] if m.get("method") == "$/progress"]
    steps = [(p["value"]["kind"], p["token"]) for p in seen if p["value"]["kind"] != "report"]
    client.wait_notification("$/progress", lambda p: (p["value"]["kind"], p["token"]) == ("end", steps[-1][1]), since)
    for begin, end in zip(steps[::2], steps[1::2], strict=False):
        assert (begin[0], end[0], begin[1] == end[1]) == ("begin", "end", True), steps


def test_a_burst_of_edits_is_checked_once(client: Client, tmp_path: Path) -> None:
    made, other = pair(client, tmp_path, "made"), pair(client, tmp_path, "other")
    since = client.now
    made.convert()
    made.checked(since)
    configure(client, {"delay": 2.0})
    since = client.now
    place_of(made.code, "x * 3")
    for length in range(1, 21):
        made.replace("x * 3" if length == 1 else f"x * 3{'0' * (length - 2)}", f"x * 3{'0' * (length - 1)}")
    assert made.checked(since)["verdict"] == "different"
    client.command("t2j.check", other.uri, timeout=240)
    assert checks(client, since) == [made.uri, other.uri]


@pytest.mark.parametrize("known", [None, True])
def test_without_a_sure_sign_of_a_battery_nothing_waits(known: bool | None) -> None:
    pause = Pause(lambda: known)
    asyncio.run(pause.look(allowed=False))
    assert pause.reason is None


def test_a_resume_on_battery_holds_until_the_machine_was_plugged_in() -> None:
    state = {"plugged": False}
    pause = Pause(lambda: state["plugged"])

    def reason() -> str | None:
        asyncio.run(pause.look(allowed=False))
        return pause.reason

    pause.resume()
    assert reason() == BY_BATTERY  # Nothing was held up by the battery when it was said.
    pause.resume()
    assert pause.reason is None and reason() is None
    state["plugged"] = True
    assert reason() is None
    state["plugged"] = False
    assert reason() == BY_BATTERY


def test_a_battery_that_cant_be_read_holds_nothing_up() -> None:
    def broken() -> Any:
        raise FileNotFoundError("/sys/class/power_supply/BAT0/status")

    pause = Pause(broken)
    asyncio.run(pause.look(allowed=False))
    assert pause.reason is None


MAINS = {"type": "Mains", "online": "1"}
UNPLUGGED = {**MAINS, "online": "0"}
DISCHARGING = {"type": "Battery", "status": "Discharging"}
MOUSE = {"type": "Battery", "status": "Discharging", "scope": "Device"}
USB = {"type": "USB", "online": "1"}


@pytest.mark.parametrize(
    ("supplies", "plugged"),
    [
        ({}, None),
        ({"AC": MAINS}, None),
        ({"mouse": MOUSE}, None),
        ({"AC": MAINS, "BAT0": {"type": "Battery", "status": "Full"}}, True),
        ({"AC": UNPLUGGED, "BAT0": DISCHARGING}, False),
        ({"ADP1": MAINS, "BAT0": DISCHARGING}, True),
        ({"AC": UNPLUGGED, "USB": USB, "BAT0": {"type": "Battery", "status": "Not charging"}}, True),
        ({"BAT0": {"type": "Battery", "status": "Charging"}, "BAT1": DISCHARGING}, False),
        ({"BAT0": {"type": "Battery", "status": "Unknown"}}, None),
    ],
)
def test_linux_says_it_in_files(supplies: dict[str, dict[str, str]], plugged: bool | None, tmp_path: Path) -> None:
    for name, files in supplies.items():
        (tmp_path / name).mkdir()
        for file, text in files.items():
            (tmp_path / name / file).write_text(f"{text}\n")
    assert from_supplies(tmp_path) is plugged


def test_a_machine_without_the_files_says_nothing(tmp_path: Path) -> None:
    assert from_supplies(tmp_path / "power_supply") is None
    assert plugged_in() in (True, False, None)


def test_macos_says_it_in_the_first_line_of_pmset() -> None:
    battery = " -InternalBattery-0 (id=1)\t95%; discharging; 4:00 remaining present: true\n"
    assert from_pmset(f"Now drawing from 'Battery Power'\n{battery}") is False
    assert from_pmset("Now drawing from 'AC Power'\n") is True
    assert from_pmset("") is None
