"""Whether checks in the background wait: because somebody said so, or because the machine runs on its battery."""

from __future__ import annotations

import asyncio
import logging
import subprocess
from collections.abc import Callable

log = logging.getLogger("t2j.lsp")

LOOK = 20.0
"""Seconds between looks at the battery while checks wait for it."""
BY_COMMAND, BY_BATTERY = "by command", "on battery"


class Pause:
    """The two reasons to wait. ``battery`` says whether the machine is plugged in, and is asked off the event loop."""

    def __init__(self, battery: Callable[[], bool | None]) -> None:
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
            plugged = await asyncio.to_thread(self.battery)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            log.warning("the battery can't be read: %s", type(error).__name__)
            plugged = None
        unplugged = plugged is False
        self._despite_battery &= unplugged
        self.on_battery = unplugged and not allowed and not self._despite_battery
