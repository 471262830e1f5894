"""Rewrites explicit narrow float types to float64, so that a program that says ``.float()`` can be decided in float64.

Both sides are rewritten alike when they run in float64, and neither when they run in the user's precision.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeGuard

_NARROW = frozenset({"float32", "float16", "bfloat16", "half"})
_LIBRARIES = frozenset({"torch", "numpy", "jax.numpy"})
_OWNERS = {"jnp": "jax.numpy", "np": "numpy", "onp": "numpy", **{name: name for name in _LIBRARIES}}
"""The usual names of libraries that have dtypes; a program may give them others."""
_NARROW_TENSORS = frozenset({"FloatTensor", "HalfTensor", "BFloat16Tensor"})
_CASTS = frozenset({"float", "half", "bfloat16"})
_COMPLEX = frozenset({"complex64", "cfloat", "chalf", "complex32"})


class _Widen(ast.NodeTransformer):
    def __init__(self, tree: ast.Module) -> None:
        self.owners = _OWNERS | dict(_imported(tree))

    def _library(self, node: ast.expr) -> str | None:
        """The library that a name stands for: ``jnp``, or ``jn`` of ``import jax.numpy as jn``."""
        return self.owners.get(ast.unparse(node)) if isinstance(node, ast.Name | ast.Attribute) else None

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if (library := self._library(node.value)) is not None:
            node.attr = _wide(library, node.attr)
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        """``from torch import float32`` brings float64 under that name."""
        for alias in node.names:
            wide = _wide(node.module, alias.name) if node.module in _LIBRARIES and not node.level else alias.name
            if wide != alias.name:
                alias.name, alias.asname = wide, alias.asname or alias.name
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """``x.dtype == jnp.int32``, or ``in`` a list with it, holds of int64, which JAX has in float64 alone."""
        self.generic_visit(node)
        match node:
            case ast.Compare(
                left=ast.Attribute(attr="dtype"),
                ops=[ast.Eq() | ast.NotEq() as op],
                comparators=[narrow],
            ) if self._is_int32(narrow):
                either = ast.copy_location(ast.Tuple([narrow, _int64(narrow)], ast.Load()), narrow)
                node.ops = [ast.In() if isinstance(op, ast.Eq) else ast.NotIn()]
                node.comparators = [either]
            case ast.Compare(
                left=ast.Attribute(attr="dtype"),
                ops=[ast.In() | ast.NotIn()],
                comparators=[ast.Tuple(elts=items) | ast.List(elts=items) | ast.Set(elts=items)],
            ):
                items += [_int64(one) for one in items if self._is_int32(one)][:1]
        return node

    def _is_int32(self, node: ast.expr) -> TypeGuard[ast.Attribute]:
        return isinstance(node, ast.Attribute) and node.attr == "int32" and self._library(node.value) == "jax.numpy"

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        function = node.func
        if isinstance(function, ast.Attribute) and function.attr in _CASTS and not node.args and not node.keywords:
            function.attr = "double"
        for keyword in node.keywords:
            if keyword.arg in ("dtype", "param_dtype"):
                _widen_text(keyword.value)
        if isinstance(function, ast.Attribute) and function.attr in ("astype", "to", "type"):
            for argument in node.args:
                _widen_text(argument)
        return node


def _imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """The names that a program gives these libraries, with the libraries."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from ((one.asname, one.name) for one in names if one.asname and one.name in _LIBRARIES)
            case ast.ImportFrom(module="jax", names=names, level=0):
                yield from ((one.asname or one.name, "jax.numpy") for one in names if one.name == "numpy")


def _wide(library: str, name: str) -> str:
    """The name of the wide type for that of a narrow one; other names stay."""
    if name in _NARROW or library == "torch" and name == "float":
        return "float64"
    if library == "torch" and name in _NARROW_TENSORS:
        return "DoubleTensor"
    return "complex128" if name in _COMPLEX else name


def _int64(narrow: ast.Attribute) -> ast.expr:
    """``jnp.int64`` in the place of ``jnp.int32``."""
    return ast.copy_location(ast.Attribute(narrow.value, "int64", ast.Load()), narrow)


def enables_x64(text: str) -> bool:
    """Whether a program sets ``jax_enable_x64``: then its own precision has 64-bit types."""
    if "x64" not in text.lower():
        return False
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Call(ast.Attribute(attr="update"), [ast.Constant("jax_enable_x64"), ast.Constant(True)]):
                return True
            case ast.Assign([ast.Subscript(slice=ast.Constant("JAX_ENABLE_X64"))], ast.Constant(value)):
                return str(value).lower() in ("1", "true")
    return False


def _widen_text(node: ast.expr) -> None:
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return
    if node.value in _NARROW:
        node.value = "float64"
    elif node.value.startswith("torch.") and node.value.rpartition(".")[2] in _NARROW_TENSORS:
        node.value = f"{node.value.rpartition('.')[0]}.DoubleTensor"


def widen(tree: ast.Module, path: str) -> ast.Module:
    """The tree with narrow float types replaced by float64 and narrow complex types by complex128."""
    widened = _Widen(tree)
    return ast.Module(body=[widened.visit(s) for s in tree.body], type_ignores=[])
