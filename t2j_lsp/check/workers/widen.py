"""Rewrites explicit narrow float types to float64, so that a program that says ``.float()`` can be decided in float64.

Both sides are rewritten alike when they run in float64, and neither when they run in the user's precision.
"""

from __future__ import annotations

import ast

_NARROW = frozenset({"float32", "float16", "bfloat16", "half"})
_OWNERS = frozenset({"torch", "jnp", "np", "numpy", "jax.numpy", "onp"})
_NARROW_TENSORS = frozenset({"FloatTensor", "HalfTensor", "BFloat16Tensor"})
_CASTS = frozenset({"float", "half", "bfloat16"})
_COMPLEX = frozenset({"complex64", "cfloat", "chalf", "complex32"})


class _Widen(ast.NodeTransformer):
    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        owner = ast.unparse(node.value) if isinstance(node.value, ast.Name | ast.Attribute) else ""
        if owner in _OWNERS:
            if node.attr in _NARROW or (owner == "torch" and node.attr == "float"):
                node.attr = "float64"
            elif owner == "torch" and node.attr in _NARROW_TENSORS:
                node.attr = "DoubleTensor"
            elif node.attr in _COMPLEX:
                node.attr = "complex128"
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """``x.dtype == jnp.int32``, or ``in`` a list with it, holds of int64, which JAX has in float64 alone."""
        self.generic_visit(node)
        match node:
            case ast.Compare(
                left=ast.Attribute(attr="dtype"),
                ops=[ast.Eq() | ast.NotEq() as op],
                comparators=[ast.Attribute(value=ast.Name(id="jnp"), attr="int32") as narrow],
            ):
                either = ast.copy_location(ast.Tuple([narrow, _int64(narrow)], ast.Load()), narrow)
                node.ops = [ast.In() if isinstance(op, ast.Eq) else ast.NotIn()]
                node.comparators = [either]
            case ast.Compare(
                left=ast.Attribute(attr="dtype"),
                ops=[ast.In() | ast.NotIn()],
                comparators=[ast.Tuple(elts=items) | ast.List(elts=items) | ast.Set(elts=items)],
            ):
                items += [_int64(one) for one in items if ast.unparse(one) == "jnp.int32"][:1]
        return node

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


def _int64(narrow: ast.expr) -> ast.expr:
    """``jnp.int64`` in the place of ``jnp.int32``."""
    owner = ast.copy_location(ast.Name("jnp", ast.Load()), narrow)
    return ast.copy_location(ast.Attribute(owner, "int64", ast.Load()), narrow)


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
    return ast.Module(body=[_Widen().visit(s) for s in tree.body], type_ignores=[])
