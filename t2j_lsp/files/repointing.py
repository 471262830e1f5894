"""Imports of converted files by converted files: ``from net import Net`` is ``from net_jax import Net`` there."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path


def conversions_beside(source: Path, target: Path, code: str) -> dict[str, str]:
    """The modules that a converted file imports, and their conversions that are named as the file itself is.

    Where ``test_net.py`` is written to ``test_net_jax.py``, and ``net_jax.py`` is beside it, ``net`` is ``net_jax``.
    """
    if not target.stem.startswith(source.stem) or target.stem == source.stem:
        return {}
    suffix = target.stem.removeprefix(source.stem)
    modules = {}
    for name in _imported(code):
        last = name.rpartition(".")[2]
        written, original = target.with_name(f"{last}{suffix}.py"), source.with_name(f"{last}.py")
        if last and written.is_file() and original.is_file() and written.resolve() != target.resolve():
            modules[name] = f"{name}{suffix}"
    return modules


def repointed(code: str, modules: Mapping[str, str]) -> str:
    """The code with imports of other modules; names that it binds stay."""
    if not modules:
        return code
    lines = code.splitlines(keepends=True)
    for node in sorted(ast.walk(ast.parse(code)), key=lambda n: -getattr(n, "lineno", 0)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module in modules:
            head = f"from {'.' * node.level}"
            new = f"{head}{modules[node.module]} "
            lines[node.lineno - 1] = lines[node.lineno - 1].replace(f"{head}{node.module} ", new, 1)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                whole = isinstance(node, ast.Import) or not node.module
                if whole and alias.name in modules:
                    bound = "" if alias.asname else f" as {alias.name}"
                    line = lines[alias.lineno - 1]
                    start = len(line.encode()[: alias.col_offset].decode())
                    end = start + len(alias.name)
                    lines[alias.lineno - 1] = f"{line[:start]}{modules[alias.name]}{bound}{line[end:]}"
    return "".join(lines)


def _imported(code: str) -> set[str]:
    """The modules that a file imports by names without dots in them."""
    modules = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and node.module:
            modules.add(node.module)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            modules |= {alias.name for alias in node.names if "." not in alias.name}
    return modules
