"""Programs in which nothing is trained: what they freeze, as a model that only gives features, is so anyway."""

from __future__ import annotations

import ast
import sys

from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.source.scopes import is_main

_DIFFERENTIATES = frozenset({"backward", "grad", "autograd", "func", "functorch", "optim", "exec"})
_TRAIN_NOTHING = sys.stdlib_module_names | {
    *("torch", "torchvision", "numpy", "PIL", "matplotlib", "cv2", "tqdm", "pandas", "scipy", "sklearn", "jax", "flax"),
}
"""Packages to which a program can give a model without having it trained."""


def trains_nothing(context: Context) -> bool:
    """Whether a file is a program of its own that takes no gradients, and uses no other file that might."""
    source, options = context.source, context.options
    if not _DIFFERENTIATES.isdisjoint(source.words) or not any(map(_runs, source.tree.body)):
        return False
    for node in source.nodes:
        match node:
            case ast.Import():
                modules = [alias.name for alias in node.names]
            case ast.ImportFrom():
                modules = [node.module or ""] if not node.level else [""]
            case _:
                continue
        if not all(_is_known(module.partition(".")[0], context) for module in modules):
            return False
    names = source.symbols.names
    return options.used_elsewhere is None or not options.used_elsewhere(names)


def _is_known(package: str, context: Context) -> bool:
    """Whether a package trains nothing: one of a list, or what is converted along of one."""
    libraries = context.options.libraries
    along = {new.partition(".")[0] for _, new in libraries.modules} if libraries is not None else set()
    own = context.options.resolve is not None and context.options.resolve(0, package) is not None
    return package in along or package in _TRAIN_NOTHING and not own


def _runs(node: ast.stmt) -> bool:
    """Whether a statement of the module level makes a file a program."""
    match node:
        case ast.If():
            return is_main(node)
        case ast.Expr(value=ast.Call()) | ast.For() | ast.While() | ast.With():
            return True
    return False
