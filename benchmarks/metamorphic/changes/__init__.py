"""The kinds of change; each module registers its own."""

from . import (
    annotations,
    arguments,
    comments,
    control,
    imports,
    layers,
    names,
    output,
    programs,
    scripts,
    settings,
    spellings,
    statements,
    structure,
    texts,
    training,
)

__all__ = [
    "annotations",
    "arguments",
    "comments",
    "control",
    "imports",
    "layers",
    "names",
    "output",
    "programs",
    "scripts",
    "settings",
    "spellings",
    "statements",
    "structure",
    "texts",
    "training",
]
