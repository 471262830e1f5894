"""Whether the machine is plugged in, as its system says it. Needs no package: psutil holds C code for one platform."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SUPPLIES = Path("/sys/class/power_supply")
PMSET_TIMEOUT = 5.0


def plugged_in() -> bool | None:
    """True on mains power, False on a battery, None where there is no battery or nothing is known.

    Raises OSError or a subprocess error where the system can't be asked.
    """
    if sys.platform == "win32":
        return _windows()
    if sys.platform == "darwin":
        done = subprocess.run(["pmset", "-g", "ps"], capture_output=True, text=True, timeout=PMSET_TIMEOUT, check=True)
        return from_pmset(done.stdout)
    return from_supplies(SUPPLIES)


def from_supplies(folder: Path) -> bool | None:
    """Linux: https://docs.kernel.org/admin-guide/abi-testing.html#abi-sys-class-power-supply-supply-name-online."""
    supplies = list(folder.iterdir()) if folder.is_dir() else []
    # The battery of a mouse says nothing of the machine.
    own = [one for one in supplies if _said(one / "scope") != "Device"]
    batteries = [one for one in own if _said(one / "type") == "Battery"]
    if not batteries:
        return None
    if any(_said(one / "online") == "1" for one in own if one not in batteries):
        return True
    states = {_said(one / "status") for one in batteries}
    return False if "Discharging" in states else True if states & {"Charging", "Full", "Not charging"} else None


def from_pmset(said: str) -> bool | None:
    """macOS: the first line of ``pmset -g ps``, such as "Now drawing from 'Battery Power'"."""
    first = said.partition("\n")[0]
    return False if "Battery Power" in first else True if "AC Power" in first else None


def _said(file: Path) -> str:
    return file.read_text().strip() if file.is_file() else ""


def _windows() -> bool | None:
    """https://learn.microsoft.com/windows/win32/api/winbase/ns-winbase-system_power_status."""
    if sys.platform != "win32":
        return None
    import ctypes

    # Two bytes first: the line's state (0 off, 1 on, 255 unknown), and the battery's (128 where there is none).
    status = (ctypes.c_ubyte * 12)()
    if not ctypes.windll.kernel32.GetSystemPowerStatus(ctypes.byref(status)) or status[1] & 128:
        return None
    return {0: False, 1: True}.get(status[0])
