"""Functions of a count that JAX can trace: learning rates that an optimizer of optax asks for under jit."""

from __future__ import annotations

import ast


def traced_body(function: ast.Lambda) -> str | None:
    """The body of ``lambda step: max(0.0, 1 - step / total)`` for an array; None where that isn't sure."""
    if len(function.args.args) != 1 or function.args.defaults or function.args.kwonlyargs or function.args.vararg:
        return None
    tree = ast.parse(ast.unparse(function.body), mode="eval")
    try:
        return ast.unparse(_Traced().visit(tree))
    except _NotTraced:
        return None


class _NotTraced(Exception):
    """Something in it may ask for the value of the count."""


class _Traced(ast.NodeTransformer):
    def generic_visit(self, node: ast.AST) -> ast.AST:
        plain = ast.Expression | ast.BinOp | ast.UnaryOp | ast.operator | ast.unaryop | ast.Constant | ast.Name
        if isinstance(node, ast.Not) or not isinstance(node, plain | ast.Attribute | ast.expr_context):
            raise _NotTraced
        return super().generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        match node:
            case ast.Call(func=ast.Name(id="max" | "min" as name), args=[_, _], keywords=[]):
                function = f"{name}imum"
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="math"), attr="cos" | "sin" | "exp" | "sqrt" as function),
                args=[_],
                keywords=[],
            ):
                pass
            case _:
                raise _NotTraced
        given = [self.visit(one) for one in node.args]
        return ast.Call(ast.Attribute(ast.Name("jnp", ast.Load()), function, ast.Load()), given, [])
