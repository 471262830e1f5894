"""The kinds of change; each module registers its own."""

from . import annotations, arguments, comments, imports, layers, names, spellings, statements, structure, texts

__all__ = [
    "annotations",
    "arguments",
    "comments",
    "imports",
    "layers",
    "names",
    "spellings",
    "statements",
    "structure",
    "texts",
]
