"""Methods of the class that a module derives from, read and not called: ``each(x, super().forward)``."""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.translate.rule.definitions import ClassInfo
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.pieces import ATOM, Piece

from .context import Context
from .module_refusals import REFUSED, REFUSED_OF_LAYERS


def base_method(ctx: Context, node: ast.Attribute) -> Piece | None:
    """``super().forward`` as a value; a gap where PyTorch's module has the method and Flax's has not."""
    info = ctx.scope.class_info
    if info is None or not info.is_module or not symbols.is_super(node.value):
        return None
    if (reason := refused_of_base(info, node.attr)) is not None:
        ctx.report.gap(node, f"torch.nn.Module.{node.attr}", "refused", reason)
        return Piece(ctx.source.segment(node), ATOM)
    name = called_in_flax(info, node.attr)
    return Piece(f"super().{name}", ATOM) if name != node.attr else None


def called_in_flax(info: ClassInfo, name: str) -> str:
    """What a method of the base is called by ``super()``: its forward pass is ``__call__`` in Flax."""
    return "__call__" if name == "forward" and not info.has_own_call else name


def refused_of_base(info: ClassInfo, name: str) -> str | None:
    """Why a method that a class has of PyTorch's module or layer alone, and takes by ``super()``, has no form."""
    if any(name in other.methods for other in info.ancestry()[1:]):
        return None
    of_layer = any(base in LAYERS for base in info.torch_bases)
    return (REFUSED | REFUSED_OF_LAYERS if of_layer else REFUSED).get(name)
