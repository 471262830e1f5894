"""Which modules a program makes by itself, in order, and what else of it is looked at when it has ended."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from .streams import Streams

MAX_NUMBERS = 100_000
_LARGEST = 10**300


class Constructions:
    """Notes the modules that are made while no other module's constructor runs.

    ``plain`` are classes that are no modules on the other side: what their constructors draw and make is the program's.
    """

    def __init__(self, streams: Streams, on_made: Callable[[Any], None], plain: Collection[str] = ()) -> None:
        self.streams = streams
        self.on_made = on_made
        self.plain = plain

    @contextmanager
    def making(self, kind: type) -> Iterator[None]:
        """The constructor of a class runs."""
        if kind.__name__ in self.plain:
            yield
            return
        self.streams.constructing += 1
        try:
            yield
        finally:
            self.streams.constructing -= 1

    def made(self, module: Any) -> None:
        """A constructor ended."""
        if not self.streams.constructing and type(module).__name__ not in self.plain:
            self.on_made(module)


def assigned_names(text: str) -> dict[int, str]:
    """The name that a value made in a line is given there: ``model`` for the lines of ``model = Net(...)``."""
    names: dict[int, str] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, ast.Name | ast.Attribute):
                for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                    names.setdefault(line, ast.unparse(target))
    return names


def collected(namespace: Mapping[str, Any], number: Callable[[Any], float | None]) -> dict[str, list[float]]:
    """The lists and dicts of numbers among the names of a program, flat."""
    by_name: dict[str, list[float]] = {}
    for name, value in namespace.items():
        if not name.startswith("_") and isinstance(value, list | dict):
            numbers = _numbers(value, number)
            if numbers:
                by_name[name] = numbers
    return by_name


def _numbers(value: Any, number: Callable[[Any], float | None]) -> list[float] | None:
    """The numbers in a container, or None where it holds something else."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        values: list[float] = []
        for item in value:
            numbers = _numbers(item, number)
            if numbers is None or len(values) > MAX_NUMBERS:
                return None
            values += numbers
        return values
    if isinstance(value, bool | int | float):
        return [float(value)] if isinstance(value, float) or abs(value) < _LARGEST else None
    found_number = number(value)
    return None if found_number is None else [found_number]
