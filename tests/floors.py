"""The picture of imports, those for types counted: on which floors the rooms of a part stand, and circles.

    python -m tests.floors [PART ...]

A room is a package of the part, or a module that stands loose in it. A room's floor is one above the highest of
those that it imports; the rooms of a circle share one.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from graphlib import TopologicalSorter

from .borders import MODULES, imported, within

PARTS = ("t2j_lsp.translate", "t2j_lsp.translate.training", "t2j_lsp.check", "t2j_lsp.lsp")
Graph = Mapping[str, set[str]]
"""Who imports whom."""


def modules_of(part: str) -> Graph:
    """The imports among the modules of a part. What a package's own ``__init__`` passes on is the package's."""
    inside = {module: file for module, file in MODULES.items() if within(module, part)}
    return {m: {t for _, t in imported(file, m) if t in inside and t != m} for m, file in inside.items()}


def rooms_of(part: str) -> Graph:
    """The imports among the rooms of a part, without its own ``__init__``."""
    rooms: dict[str, set[str]] = {}
    for module, targets in modules_of(part).items():
        if module != part:
            own = _room(part, module)
            rooms.setdefault(own, set()).update({_room(part, t) for t in targets if t != part} - {own})
    return rooms


def _room(part: str, module: str) -> str:
    return module[len(part) + 1 :].partition(".")[0]


def circles(imports: Graph) -> list[list[str]]:
    """The groups of nodes each of which reaches every other, and itself."""
    reached = {name: _reached(name, imports) for name in imports}
    groups = {name: {o for o in far if name in reached.get(o, ())} for name, far in reached.items() if name in far}
    return [list(group) for group in sorted({tuple(sorted(group)) for group in groups.values()})]


def _reached(name: str, imports: Graph) -> set[str]:
    seen: set[str] = set()
    waiting = list(imports.get(name, ()))
    while waiting:
        one = waiting.pop()
        if one not in seen:
            seen.add(one)
            waiting += imports.get(one, ())
    return seen


def floors(imports: Graph) -> list[list[str]]:
    """The nodes by floor, lowest first."""
    group_of = {name: circle[0] for circle in circles(imports) for name in circle}
    grouped: dict[str, set[str]] = {}
    for name, targets in imports.items():
        own = group_of.get(name, name)
        grouped.setdefault(own, set()).update({group_of.get(t, t) for t in targets} - {own})
    floor: dict[str, int] = {}
    for name in TopologicalSorter(grouped).static_order():
        floor[name] = 1 + max((floor[t] for t in grouped.get(name, ())), default=-1)
    height = max(floor.values(), default=-1) + 1
    return [sorted(n for n in imports if floor[group_of.get(n, n)] == level) for level in range(height)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=PARTS, metavar="PART")
    for part in parser.parse_args().parts:
        rooms, modules = rooms_of(part), modules_of(part)
        levels, imports = floors(rooms), sum(map(len, modules.values()))
        print(f"{part}: {len(modules)} modules with {imports} imports of each other, {len(rooms)} rooms")
        print(f"  {len(levels)} floors of rooms, {len(floors(modules))} of single modules")
        for level, names in enumerate(levels):
            print(f"    {level + 1}  {', '.join(names)}")
        print(f"  circles of rooms: {circles(rooms) or 'none'}, of modules: {circles(modules) or 'none'}")


if __name__ == "__main__":
    main()
