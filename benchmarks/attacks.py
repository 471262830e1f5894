"""The table of attacks on this system: as root, as an ordinary user, and with less than the system offers.

    python -m benchmarks.attacks [--as SYSTEM] [--only PROGRAM,...] [--quick] [--table]

Each program of `tests/attacks/programs` is first run outside of a check, to see that it works; then in one, by the
command line or a language server, as `tests/attacks/table.py` says. Printed is whether it came to what the table
promises for the system. ``--quick`` runs all rows but the server's in one pair of warm workers instead of one command
each. The exit status is 0 if every row is as promised, 1 if one is not, 3 if this system can't stand for another.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import get_args

from t2j_lsp.check.process.containment import offered, probe
from tests.attacks.engines import Outside, by_command, by_pool, by_server, pool_of, serving
from tests.attacks.table import ATTACKS, SYSTEMS, Attack, System, markdown
from tests.attacks.world import World

CANNOT = 3


def main(arguments: list[str] | None = None) -> int:
    """Run the table; see the module's docstring."""
    parser = argparse.ArgumentParser(description="Run the table of attacks.")
    parser.add_argument("--as", dest="system", choices=get_args(System), help="one kind of system (default: all)")
    parser.add_argument("--only", default="", help="these programs, with commas between")
    parser.add_argument("--quick", action="store_true", help="warm workers instead of one command for each row")
    parser.add_argument("--table", action="store_true", help="print the table of docs/checking.md and run nothing")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)  # Already started as that system.
    options = parser.parse_args(arguments)
    if options.table:
        print(markdown())
        return 0
    chosen = [a for a in ATTACKS if not options.only or a.program in options.only.split(",")]
    if options.here:
        return run(options.system, chosen, options.quick)
    codes = []
    for system in [options.system] if options.system else SYSTEMS:
        codes.append(start(system, [a.program for a in chosen], options.quick))
    return max(codes)


def start(system: System, only: Sequence[str], quick: bool) -> int:
    """Runs rows in a process of their own, which is started as it would be on that system."""
    if system in ("root", "bare-root") and os.getuid() != 0:
        print(f"{SYSTEMS[system]}: not run, since this is no root")
        return CANNOT
    command = [sys.executable, "-m", "benchmarks.attack_systems", system, sys.executable, "-m", "benchmarks.attacks"]
    command += ["--here", "--as", system, "--only", ",".join(only), *(["--quick"] if quick else [])]
    return subprocess.run(command, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}, check=False).returncode


def run(system: System, attacks: Sequence[Attack], quick: bool) -> int:
    """Every row in this process. Gives the exit status."""
    print(f"{SYSTEMS[system]} (uid {os.getuid()}; layers: {', '.join(offered()) or 'none'})")
    for text in probe().not_held:
        print(f"  reported as not held: {text}")
    if not fits(system):
        print("  not run: this system offers other layers than that name promises")
        return CANNOT
    broken = shown = 0
    with ExitStack() as stack:
        outside = stack.enter_context(Outside())
        for attack, via, check in rows(attacks, quick, stack):
            works = attack.control or outside.damage(attack)
            damage = check(attack)
            promised = attack.held(system)
            good = bool(works) and promised == (not damage)
            shown, broken = shown + 1, broken + (not good)
            what = "held" if not damage else f"got through ({'; '.join(damage)[:300]})"
            note = (
                "as promised" if good else "NOT AS PROMISED" if works else "NOT SHOWN: it does not work outside either"
            )
            print(f"  {note}: {attack.program} ({via}): {what}", flush=True)
    print(f"  {shown} rows, {broken} not as promised")
    return 1 if broken else 0


def fits(system: System) -> bool:
    """Whether this process is on such a system."""
    view = {"bubblewrap", "namespace"} & {*offered()}
    if system in ("root", "user"):
        return bool(view) and (os.getuid() == 0) == (system == "root")
    return not view and (system == "none") == (not offered())


def rows(
    attacks: Sequence[Attack], quick: bool, stack: ExitStack
) -> list[tuple[Attack, str, Callable[[Attack], list[str]]]]:
    """What to run, and how: each row once for each way that the table gives it."""
    runs: list[tuple[Attack, str, Callable[[Attack], list[str]]]] = []
    by_library = [a for a in attacks if "library" in a.via or quick and "command line" in a.via]
    if by_library:
        world = stack.enter_context(World())
        pool = stack.enter_context(pool_of(world))
        runs += [(a, "warm workers", lambda attack: by_pool(attack, world, pool)) for a in by_library]
    runs += [(a, "command line", _command) for a in attacks if "command line" in a.via and not quick]
    served = [a for a in attacks if "server" in a.via]
    if served:
        attacked = stack.enter_context(World())
        client = stack.enter_context(serving(attacked))
        runs += [(a, "server", lambda attack: by_server(attack, attacked, client)) for a in served]
    return runs


def _command(attack: Attack) -> list[str]:
    with World() as world:
        return by_command(attack, world)


if __name__ == "__main__":
    sys.exit(main())
