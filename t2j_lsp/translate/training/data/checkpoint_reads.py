"""Checkpoints: files that are read for a module or an optimizer go to JAX, whatever settings in them say of data."""

from __future__ import annotations

import ast

from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.facts import Qual
from t2j_lsp.translate.rule.library import Trait, names_with

_READS = names_with(Trait.READS_FILES)
_LOADS = "load_state_dict"


def reads_checkpoint(inference: Inference, statement: ast.stmt) -> bool:
    """Whether what a statement reads from a file, or a part, is loaded as a state: ``saved = torch.load(file)``."""
    if _LOADS not in inference.source.words:
        return False
    match statement:
        case ast.Assign(targets=[ast.Name() as name], value=ast.Call(func=func)):
            fact = inference.fact(func)
            return isinstance(fact, Qual) and fact.name in _READS and _is_loaded(inference, name)
    return False


def _is_loaded(inference: Inference, name: ast.Name) -> bool:
    source = inference.source
    home = source.home(name)
    for read in source.names.get(name.id, ()):
        if not isinstance(read.ctx, ast.Load) or source.home(read) is not home:
            continue
        part: ast.AST | None = read
        while isinstance(around := source.parents.get(part) if part is not None else None, ast.Subscript):
            part = around
        match around:
            case ast.Call(func=ast.Attribute(attr=attr), args=[first, *_]) if attr == _LOADS and first is part:
                return True
            case ast.Assign(targets=[ast.Name() as other], value=value) if value is part and other.id != name.id:
                if _is_loaded(inference, other):
                    return True
    return False
