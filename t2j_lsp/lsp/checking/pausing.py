"""Whether checks in the background wait: because somebody said so, or because the machine runs on its battery."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

log = logging.getLogger("t2j.lsp")

LOOK = 20.0
"""Seconds between looks at the battery while checks wait for it."""
BY_COMMAND, BY_BATTERY = "by command", "on battery"


def sensors_battery() -> Any:
    """What psutil knows of the battery: an object with ``power_plugged``; None without a battery, or without psutil."""
    try:
        import psutil  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        return None
    return psutil.sensors_battery() if hasattr(psutil, "sensors_battery") else None


class Pause:
    """The two reasons to wait. ``battery`` is asked off the event loop."""

    def __init__(self, battery: Callable[[], Any]) -> None:
        self.battery = battery
        self.by_command = False
        self.on_battery = False
        self._despite_battery = False

    @property
    def reason(self) -> str | None:
        """Why checks in the background wait; None where they don't."""
        return BY_COMMAND if self.by_command else BY_BATTERY if self.on_battery else None

    def pause(self) -> None:
        self.by_command = True

    def resume(self) -> None:
        """Go on; where the battery held checks up, until the machine was plugged in."""
        self._despite_battery |= self.on_battery
        self.by_command = self.on_battery = False

    async def look(self, allowed: bool) -> None:
        """Look at the battery; ``allowed`` is the setting that lets checks run on it."""
        try:
            battery = await asyncio.to_thread(self.battery)
        except (OSError, RuntimeError, NotImplementedError, ValueError) as error:
            log.warning("the battery can't be read: %s", type(error).__name__)
            battery = None
        unplugged = getattr(battery, "power_plugged", None) is False
        self._despite_battery &= unplugged
        self.on_battery = unplugged and not allowed and not self._despite_battery
