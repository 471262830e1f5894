"""What statements put into lists of a class's own, and what gives a module a part under another name."""

from __future__ import annotations

import ast

from t2j_lsp.translate.rule.names import REDUCTIONS


def registers(node: ast.AST, known: set[str]) -> bool:
    """Whether something gives a module a part under another name, as ``add_module`` and ``ModuleList(parts)`` do."""
    match node:
        case ast.Call(func=ast.Name(id="setattr")) | ast.Attribute(attr="_modules" | "__dict__"):
            return True
        case ast.Call(func=ast.Attribute(attr="add_module" | "register_module" | "setattr")):
            return True
        case ast.Call(func=ast.Attribute(value=holder, attr="append" | "insert"), args=[*_, part]):
            return ast.unparse(part) in known and isinstance(part, ast.Name) and ast.unparse(holder) not in known
        case ast.Call(func=func, args=arguments) if ast.unparse(func).endswith(
            ("Sequential", "ModuleList", "ModuleDict")
        ):
            return any(ast.unparse(a.value if isinstance(a, ast.Starred) else a) in known for a in arguments)
    return False


def is_reduced(node: ast.expr) -> bool:
    """Whether a value is computed from what only arrays give: ``out.sum() / n``."""
    match node:
        case ast.BinOp(left=left, right=right):
            return is_reduced(left) or is_reduced(right)
        case ast.UnaryOp(operand=inner):
            return is_reduced(inner)
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in REDUCTIONS
    return False
