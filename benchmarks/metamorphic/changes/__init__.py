"""The kinds of change; each module registers its own."""

from . import annotations, arguments, comments, imports, names

__all__ = ["annotations", "arguments", "comments", "imports", "names"]
